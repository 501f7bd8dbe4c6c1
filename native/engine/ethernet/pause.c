// pause.c: reads pause frames from ethtool's netlink family, which has standard counters since Linux 5.11,
// and for drivers without them from the driver's own counters, by ioctl.
#include "engine/ethernet/pause.h"
#include "core/clock.h"
#include "core/core.h"

#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_NS INT64_C(100000000) // shortest time between two readings of a device

// ---- netlink ----------------------------------------------------------------------------------------------

typedef struct request {
    struct nlmsghdr head;
    struct genlmsghdr command;
    uint8_t attributes[64];
} request;

static request ask(uint16_t family, uint8_t command, uint8_t version) {
    return (request){
        .head = {.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST},
        .command = {.cmd = command, .version = version}};
}

static void put(request *r, uint16_t type, const void *data, uint16_t len) {
    struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
    uint8_t *at = (uint8_t *)r + r->head.nlmsg_len;
    memcpy(at, &a, sizeof a);
    memcpy(at + NLA_HDRLEN, data, len);
    r->head.nlmsg_len += NLA_ALIGN(a.nla_len);
}

// Returns the data of the first attribute of this type with at least `least` bytes, and its length; NULL:
// none.
static const uint8_t *find(const uint8_t *at, size_t len, uint16_t type, size_t least, size_t *got) {
    struct nlattr a;
    for (; len >= NLA_HDRLEN; at += NLA_ALIGN(a.nla_len), len -= NLA_ALIGN(a.nla_len)) {
        memcpy(&a, at, sizeof a);
        if (a.nla_len < NLA_HDRLEN || a.nla_len > len) return NULL;
        *got = a.nla_len - NLA_HDRLEN;
        if ((a.nla_type & NLA_TYPE_MASK) == type) return *got >= least ? at + NLA_HDRLEN : NULL;
        if ((size_t)NLA_ALIGN(a.nla_len) >= len) return NULL;
    }
    return NULL;
}

// Returns the attributes of a message of len bytes, and their length; NULL: an error, or truncated.
static const uint8_t *attributes(const void *message, size_t len, size_t *got) {
    struct nlmsghdr h;
    if (len < NLMSG_LENGTH(GENL_HDRLEN)) return NULL;
    memcpy(&h, message, sizeof h);
    if (h.nlmsg_type == NLMSG_ERROR || h.nlmsg_len > len || h.nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
        return NULL;
    *got = h.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
    return (const uint8_t *)message + NLMSG_LENGTH(GENL_HDRLEN);
}

// Returns the length of the answer, which the kernel has queued when send returns; 0: none.
static size_t exchange(int fd, const request *r, void *answer, size_t room) {
    if (send(fd, r, r->head.nlmsg_len, 0) < 0) return 0;
    ssize_t n = recv(fd, answer, room, MSG_DONTWAIT);
    return n > 0 ? (size_t)n : 0;
}

// Returns the number of the family "ethtool", or 0.
static uint16_t ethtool_family(int fd) {
    _Alignas(struct nlmsghdr) uint8_t answer[8192];
    request r = ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
    uint16_t id = 0;
    size_t len, got;
    put(&r, CTRL_ATTR_FAMILY_NAME, ETHTOOL_GENL_NAME, sizeof ETHTOOL_GENL_NAME);
    const uint8_t *at = attributes(answer, exchange(fd, &r, answer, sizeof answer), &len);
    at = at ? find(at, len, CTRL_ATTR_FAMILY_ID, sizeof id, &got) : NULL;
    if (at) memcpy(&id, at, sizeof id);
    return id;
}

static bool read_flag(const uint8_t *at, size_t len, uint16_t type) {
    size_t got;
    const uint8_t *v = find(at, len, type, 1, &got);
    return v && *v != 0;
}

static bool read_count(const uint8_t *at, size_t len, uint16_t type, uint64_t *out) {
    size_t got;
    const uint8_t *v = find(at, len, type, sizeof *out, &got);
    if (v) memcpy(out, v, sizeof *out);
    return v != NULL;
}

bool dqi_pause_parse(const void *message, size_t len, dqi_pause_reading *out) {
    size_t inside;
    *out = (dqi_pause_reading){0};
    const uint8_t *at = attributes(message, len, &len);
    if (!at) return false;
    out->obeys = read_flag(at, len, ETHTOOL_A_PAUSE_RX);
    out->asks = read_flag(at, len, ETHTOOL_A_PAUSE_TX);
    const uint8_t *counts = find(at, len, ETHTOOL_A_PAUSE_STATS, 0, &inside);
    if (!counts) return true;
    out->counted = read_count(counts, inside, ETHTOOL_A_PAUSE_STAT_RX_FRAMES, &out->received);
    out->counted |= read_count(counts, inside, ETHTOOL_A_PAUSE_STAT_TX_FRAMES, &out->sent);
    return true;
}

static bool read_netlink(uint32_t netdev, dqi_pause_reading *out) {
    _Alignas(struct nlmsghdr) uint8_t answer[4096];
    struct {
        struct nlattr index_attr;
        uint32_t index;
        struct nlattr flags_attr;
        uint32_t flags;
    } header = {{NLA_HDRLEN + 4, ETHTOOL_A_HEADER_DEV_INDEX},
                netdev,
                {NLA_HDRLEN + 4, ETHTOOL_A_HEADER_FLAGS},
                ETHTOOL_FLAG_STATS};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (fd < 0) return false;
    uint16_t family = ethtool_family(fd);
    request r = ask(family, ETHTOOL_MSG_PAUSE_GET, ETHTOOL_GENL_VERSION);
    put(&r, NLA_F_NESTED | ETHTOOL_A_PAUSE_HEADER, &header, sizeof header);
    bool ok = family != 0 && dqi_pause_parse(answer, exchange(fd, &r, answer, sizeof answer), out);
    close(fd);
    return ok;
}

// ---- counters of drivers ----------------------------------------------------------------------------------

uint32_t dqi_pause_find(const char *names, uint32_t n, const char *wanted) {
    uint32_t k = 0;
    while (k < n && strncmp(names + (size_t)k * ETH_GSTRING_LEN, wanted, ETH_GSTRING_LEN) != 0)
        k++;
    return k;
}

static bool command(int fd, struct ifreq *r, void *what) {
    r->ifr_data = what;
    return ioctl(fd, SIOCETHTOOL, r) == 0;
}

static uint32_t count_counters(int fd, struct ifreq *r) {
    struct ethtool_sset_info info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1 << ETH_SS_STATS};
    uint8_t set[sizeof info + sizeof(uint32_t)];
    uint32_t n = 0;
    memcpy(set, &info, sizeof info);
    if (!command(fd, r, set)) return 0;
    memcpy(&info, set, sizeof info);
    if (info.sset_mask != 0) memcpy(&n, set + sizeof info, sizeof n);
    return n;
}

// Reads n counters and picks those of pause frames (mlx5).
static void pick(int fd, struct ifreq *r, uint32_t n, dqi_pause_reading *out) {
    struct ethtool_gstrings *names = calloc(1, sizeof *names + (size_t)n * ETH_GSTRING_LEN);
    struct ethtool_stats *values = calloc(1, sizeof *values + (size_t)n * sizeof values->data[0]);
    if (names && values) {
        names->cmd = ETHTOOL_GSTRINGS;
        names->string_set = ETH_SS_STATS;
        values->cmd = ETHTOOL_GSTATS;
        names->len = values->n_stats = n;
    }
    if (names && values && command(fd, r, names) && command(fd, r, values)) {
        uint32_t rx = dqi_pause_find((const char *)names->data, n, "rx_pause_ctrl_phy");
        uint32_t tx = dqi_pause_find((const char *)names->data, n, "tx_pause_ctrl_phy");
        out->counted = rx < n && tx < n;
        if (out->counted) {
            out->received = values->data[rx];
            out->sent = values->data[tx];
        }
    }
    free(names);
    free(values);
}

static bool read_driver(uint32_t netdev, dqi_pause_reading *out) {
    struct ifreq r = {0};
    struct ethtool_pauseparam setting = {.cmd = ETHTOOL_GPAUSEPARAM};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && if_indextoname(netdev, r.ifr_name) && command(fd, &r, &setting);
    if (ok) {
        *out = (dqi_pause_reading){.obeys = setting.rx_pause != 0, .asks = setting.tx_pause != 0};
        uint32_t n = count_counters(fd, &r);
        if (n > 0) pick(fd, &r, n, out);
    }
    if (fd >= 0) close(fd);
    return ok;
}

static bool read_device(uint32_t netdev, dqi_pause_reading *out) {
    return (read_netlink(netdev, out) && out->counted) || read_driver(netdev, out);
}

bool (*dqi_pause_read)(uint32_t netdev, dqi_pause_reading *out) = read_device;

// ---- ports ------------------------------------------------------------------------------------------------

void dqi_pause_open(dqi_port *p) {
    dqi_pause_reading r;
    char device[IF_NAMESIZE];
    if (p->netdev == 0 || !dqi_pause_read(p->netdev, &r)) return;
    p->pause.counted = r.counted;
    p->pause.received = r.received;
    p->pause.sent = r.sent;
    p->pause.read_ns = dqi_mono_ns();
    if ((!r.obeys && !r.asks) || !if_indextoname(p->netdev, device)) return;
    dqi_note(
        p->iface->session,
        "interface %s: pause frames (802.3x) are on: %s%s%s%s; hint: where losses should be seen instead, "
        "ethtool -A %s rx off tx off",
        p->iface->conf.name, device, r.obeys ? " stops sending when its peer asks" : "",
        r.obeys && r.asks ? " and" : "",
        r.asks ? " asks its peer to stop when its receive path is behind" : "", device);
}

void dqi_pause_refresh(dqi_port *p, bool now) {
    dqi_pause_reading r;
    int64_t at = dqi_mono_ns();
    if (!p->pause.counted || (!now && at - p->pause.read_ns < READ_NS)) return;
    p->pause.read_ns = at;
    if (!dqi_pause_read(p->netdev, &r) || r.received < p->pause.received || r.sent < p->pause.sent)
        return; // gone, or its driver was reloaded
    atomic_store_explicit(&p->c.extra[DQ_EXTRA_NIC_PAUSE_RECEIVED], r.received - p->pause.received,
                          memory_order_relaxed);
    atomic_store_explicit(&p->c.extra[DQ_EXTRA_NIC_PAUSE_SENT], r.sent - p->pause.sent, memory_order_relaxed);
}
