// capture_link.c: converts packets of other link types to Ethernet frames: IP, BSD loopback, and Linux cooked
// capture (tcpdump -i any). The added header has zero addresses, except for the sender's if known. Layouts:
// the LINKTYPE pages of tcpdump.org.
#include "capture/capture_file.h"
#include "packet/packet.h"

#include <string.h>

enum { // link types
    BSD_NULL = 0,
    RAW_BSD = 12,
    RAW_OPENBSD = 14,
    RAW = 101,
    BSD_LOOP = 108,
    SLL = 113,
    IPV4 = 228,
    IPV6 = 229,
    SLL2 = 276,
};

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define LEAST_TYPE     0x0600 // smaller values in the type field are lengths
#define SLL_LEN        16
#define SLL2_LEN       20

// Prepends a header to the data after the first `skip` bytes.
static bool put_header(dqi_capture_packet *p, uint32_t skip, uint16_t type, const uint8_t *src) {
    uint8_t header[DQI_ETH_LEN] = {0};
    if (src) memcpy(header + 6, src, 6);
    dqi_put_be16(header + 12, type);
    p->data += skip;
    p->data -= sizeof header;
    memcpy(p->data, header, sizeof header);
    p->len = p->len - skip + DQI_ETH_LEN;
    p->orig = p->orig < skip ? p->len : p->orig - skip + DQI_ETH_LEN;
    return true;
}

// Converts an IP packet after `skip` bytes.
static bool put_ip(dqi_capture_packet *p, uint32_t skip) {
    uint32_t version = p->len > skip ? p->data[skip] >> 4 : 0;
    if (version != 4 && version != 6) return false;
    return put_header(p, skip, version == 6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4, NULL);
}

// ---- BSD loopback -----------------------------------------------------------------------------------------

// The header is 4 bytes with the address family, in the capturing host's byte order.
static bool is_ip_family(uint32_t family) {
    // IPv4 everywhere, then IPv6 of Linux, BSD/OS and NetBSD, FreeBSD, Darwin.
    return family == 2 || family == 10 || family == 24 || family == 28 || family == 30;
}

static bool put_bsd(dqi_capture_packet *p) {
    uint32_t family;
    if (p->len < 4) return false;
    memcpy(&family, p->data, sizeof family);
    return (is_ip_family(family) || is_ip_family(__builtin_bswap32(family))) && put_ip(p, 4);
}

// ---- Linux cooked capture ---------------------------------------------------------------------------------

enum { // Linux hardware types (if_arp.h) whose protocol field is not an EtherType
    ARPHRD_CAN = 280,
    ARPHRD_FRAD = 770,
    ARPHRD_IPGRE = 778,
    ARPHRD_IEEE80211 = 801,
    ARPHRD_IEEE80211_PRISM = 802,
    ARPHRD_IEEE80211_RADIOTAP = 803,
    ARPHRD_NETLINK = 824,
};

enum { PROTOCOL_802_3 = 1, PROTOCOL_802_2 = 4 }; // Novell frames without LLC; frames with LLC

static bool is_foreign(uint32_t hardware) {
    return hardware == ARPHRD_CAN || hardware == ARPHRD_FRAD || hardware == ARPHRD_IPGRE ||
           (hardware >= ARPHRD_IEEE80211 && hardware <= ARPHRD_IEEE80211_RADIOTAP) ||
           hardware == ARPHRD_NETLINK;
}

static bool put_cooked(dqi_capture_packet *p, uint32_t head, uint32_t hardware, uint32_t protocol,
                       const uint8_t *src) {
    if (is_foreign(hardware)) return false;
    if (protocol >= LEAST_TYPE) return put_header(p, head, (uint16_t)protocol, src);
    uint32_t length = p->orig > head ? p->orig - head : p->len - head;
    if ((protocol != PROTOCOL_802_3 && protocol != PROTOCOL_802_2) || length >= LEAST_TYPE) return false;
    return put_header(p, head, (uint16_t)length, src);
}

static bool put_sll(dqi_capture_packet *p) {
    uint8_t src[6];
    if (p->len < SLL_LEN) return false;
    memcpy(src, p->data + 6, 6);
    return put_cooked(p, SLL_LEN, dqi_be16(p->data + 2), dqi_be16(p->data + 14),
                      dqi_be16(p->data + 4) == 6 ? src : NULL);
}

static bool put_sll2(dqi_capture_packet *p) {
    uint8_t src[6];
    if (p->len < SLL2_LEN) return false;
    memcpy(src, p->data + 12, 6);
    return put_cooked(p, SLL2_LEN, dqi_be16(p->data + 8), dqi_be16(p->data), p->data[11] == 6 ? src : NULL);
}

// ---- all --------------------------------------------------------------------------------------------------

bool dqi_capture_frame(dqi_capture_packet *p) {
    switch (p->link) {
    case DQI_LINK_ETHERNET:
        return true;
    case BSD_NULL:
    case BSD_LOOP:
        return put_bsd(p);
    case RAW_BSD:
    case RAW_OPENBSD:
    case RAW:
    case IPV4:
    case IPV6:
        return put_ip(p, 0);
    case SLL:
        return put_sll(p);
    case SLL2:
        return put_sll2(p);
    default:
        return false;
    }
}

bool dqi_capture_link_known(uint32_t type) {
    static const uint32_t known[] = {
        DQI_LINK_ETHERNET, BSD_NULL, BSD_LOOP, RAW_BSD, RAW_OPENBSD, RAW, IPV4, IPV6, SLL, SLL2};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k] == type) return true;
    return false;
}

const char *dqi_capture_link_name(uint32_t type) {
    static const struct {
        uint32_t type;
        const char *name;
    } names[] = {{DQI_LINK_ETHERNET, "Ethernet"},
                 {BSD_NULL, "BSD loopback"},
                 {9, "PPP"},
                 {RAW, "IP"},
                 {105, "802.11"},
                 {BSD_LOOP, "OpenBSD loopback"},
                 {SLL, "Linux cooked"},
                 {127, "802.11 with radiotap"},
                 {189, "USB of Linux"},
                 {195, "802.15.4"},
                 {220, "USB of Linux"},
                 {227, "SocketCAN"},
                 {253, "netlink"},
                 {249, "USB of Windows"},
                 {SLL2, "Linux cooked v2"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (names[k].type == type) return names[k].name;
    return "link type";
}
