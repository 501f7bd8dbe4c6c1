// capture_link.c: Ethernet frames from what was captured on other links: IP packets, and Linux's cooked form
// (tcpdump -i any). The header that they get has the addresses 0, but for the sender's where it is known.
#include "capture/capture_file.h"
#include "packet/packet.h"

#include <string.h>

enum { // link types
    RAW_BSD = 12,
    RAW_OPENBSD = 14,
    RAW = 101,
    SLL = 113,
    IPV4 = 228,
    IPV6 = 229,
    SLL2 = 276,
};

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define SLL_LEN        16
#define SLL2_LEN       20

// Puts a header in front of what begins `skip` bytes further on.
static bool put_header(dqi_capture_packet *p, uint32_t skip, uint16_t type, const uint8_t *src) {
    uint8_t header[DQI_ETH_LEN] = {0};
    if (p->len < skip) return false;
    if (src) memcpy(header + 6, src, 6);
    dqi_put_be16(header + 12, type);
    p->data += skip;
    p->data -= sizeof header;
    memcpy(p->data, header, sizeof header);
    p->len = p->len - skip + DQI_ETH_LEN;
    p->orig = p->orig - skip + DQI_ETH_LEN;
    return true;
}

bool dqi_capture_frame(dqi_capture_packet *p) {
    bool v6 = p->len > 0 && p->data[0] >> 4 == 6;
    uint8_t src[6];
    switch (p->link) {
    case DQI_LINK_ETHERNET:
        return true;
    case RAW_BSD:
    case RAW_OPENBSD:
    case RAW:
    case IPV4:
    case IPV6:
        return put_header(p, 0, v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4, NULL);
    case SLL:
        if (p->len < SLL_LEN) return false;
        memcpy(src, p->data + 6, 6);
        return put_header(p, SLL_LEN, dqi_be16(p->data + 14), dqi_be16(p->data + 4) == 6 ? src : NULL);
    case SLL2:
        if (p->len < SLL2_LEN) return false;
        memcpy(src, p->data + 12, 6);
        return put_header(p, SLL2_LEN, dqi_be16(p->data), p->data[11] == 6 ? src : NULL);
    default:
        return false;
    }
}

const char *dqi_capture_link_name(uint32_t type) {
    static const struct {
        uint32_t type;
        const char *name;
    } names[] = {{0, "BSD loopback"},    {9, "PPP"},        {105, "802.11"},    {127, "802.11 with radiotap"},
                 {189, "USB of Linux"},  {195, "802.15.4"}, {227, "SocketCAN"}, {253, "netlink"},
                 {249, "USB of Windows"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].type == type) return names[k].name;
    return "link type";
}
