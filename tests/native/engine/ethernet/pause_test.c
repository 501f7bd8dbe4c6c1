// pause_test.c: pause frames of a port: what ethtool's messages and a driver's counters contain, and what of
// it reaches the ledger and the report. The kernel's own answers: tests/vm/pause_test.go.
#include "engine/ethernet/pause.h"
#include "ethernet_rig.h"
#include "pipeline/session.h"

#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <net/if.h>

// ---- messages ---------------------------------------------------------------------------------------------

typedef struct message {
    _Alignas(struct nlmsghdr) uint8_t bytes[512];
    uint32_t len;
} message;

static uint32_t add(message *m, uint16_t type, const void *data, uint32_t len) {
    struct nlattr a = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
    uint32_t at = m->len;
    memcpy(m->bytes + at, &a, sizeof a);
    if (len > 0) memcpy(m->bytes + at + NLA_HDRLEN, data, len);
    m->len += NLA_ALIGN(a.nla_len);
    return at;
}

static void lengthen(message *m, uint32_t at) {
    struct nlattr a;
    memcpy(&a, m->bytes + at, sizeof a);
    a.nla_len = (uint16_t)(m->len - at);
    memcpy(m->bytes + at, &a, sizeof a);
}

static void finish(message *m, uint16_t type) {
    struct nlmsghdr h = {.nlmsg_len = m->len, .nlmsg_type = type};
    struct genlmsghdr g = {.cmd = ETHTOOL_MSG_PAUSE_GET_REPLY, .version = 1};
    memcpy(m->bytes, &h, sizeof h);
    memcpy(m->bytes + NLMSG_HDRLEN, &g, sizeof g);
}

// The kernel's answer for a device: its header, three flags, and the counters that it has (bit 0: sent, bit
// 1: received).
static message answer(uint8_t rx, uint8_t tx, int counters) {
    message m = {.len = NLMSG_LENGTH(GENL_HDRLEN)};
    uint32_t index = 7;
    uint64_t sent = 2, received = UINT64_C(0x100000001);
    uint8_t autoneg = 1;
    uint32_t header = add(&m, NLA_F_NESTED | ETHTOOL_A_PAUSE_HEADER, NULL, 0);
    add(&m, ETHTOOL_A_HEADER_DEV_INDEX, &index, sizeof index);
    add(&m, ETHTOOL_A_HEADER_DEV_NAME, "eth0", 5);
    lengthen(&m, header);
    add(&m, ETHTOOL_A_PAUSE_AUTONEG, &autoneg, 1);
    add(&m, ETHTOOL_A_PAUSE_RX, &rx, 1);
    add(&m, ETHTOOL_A_PAUSE_TX, &tx, 1);
    uint32_t stats = add(&m, NLA_F_NESTED | ETHTOOL_A_PAUSE_STATS, NULL, 0);
    if (counters & 1) add(&m, ETHTOOL_A_PAUSE_STAT_TX_FRAMES, &sent, sizeof sent);
    if (counters & 2) add(&m, ETHTOOL_A_PAUSE_STAT_RX_FRAMES, &received, sizeof received);
    lengthen(&m, stats);
    finish(&m, 0x14);
    return m;
}

static void messages(void) {
    dqi_pause_reading r;
    message m = answer(1, 0, 3);
    DQ_CHECK(dqi_pause_parse(m.bytes, m.len, &r));
    DQ_CHECK(r.obeys && !r.asks && r.counted);
    DQ_EQ(r.received, UINT64_C(0x100000001));
    DQ_EQ(r.sent, 2);
    m = answer(0, 1, 0);
    DQ_CHECK(dqi_pause_parse(m.bytes, m.len, &r) && !r.obeys && r.asks && !r.counted);
    m = answer(1, 1, 1);
    DQ_CHECK(dqi_pause_parse(m.bytes, m.len, &r) && r.counted && r.sent == 2 && r.received == 0);
    finish(&m, NLMSG_ERROR);
    DQ_CHECK(!dqi_pause_parse(m.bytes, m.len, &r));
    m = answer(1, 1, 3);
    for (uint32_t len = 0; len < m.len; len++) { // truncated anywhere: its header has a larger length
        uint8_t *cut = malloc(len + 1);
        memcpy(cut, m.bytes, len);
        DQ_CHECK(!dqi_pause_parse(cut, len, &r));
        free(cut);
    }
    for (uint32_t at = NLMSG_LENGTH(GENL_HDRLEN); at < m.len; at++) { // any byte of the attributes spoiled
        message bad = m;
        bad.bytes[at] ^= 0xff;
        dqi_pause_parse(bad.bytes, bad.len, &r);
    }
}

static void names(void) {
    char all[4][ETH_GSTRING_LEN] = {"rx_packets", "rx_pause_ctrl_phy_old", "rx_pause_ctrl_phy"};
    memset(all[3], 'x', ETH_GSTRING_LEN); // without an end
    DQ_EQ(dqi_pause_find(all[0], 4, "rx_pause_ctrl_phy"), 2);
    DQ_EQ(dqi_pause_find(all[0], 4, "tx_pause_ctrl_phy"), 4);
    DQ_EQ(dqi_pause_find(all[0], 0, "rx_packets"), 0);
}

// Devices of every kernel that have no pause frames.
static void absent(void) {
    dqi_pause_reading r;
    DQ_CHECK(!dqi_pause_read(if_nametoindex("lo"), &r));
    DQ_CHECK(!dqi_pause_read(1u << 30, &r));
}

// ---- a port -----------------------------------------------------------------------------------------------

static dqi_pause_reading now;
static bool gone;

static bool read_now(uint32_t netdev, dqi_pause_reading *out) {
    DQ_EQ(netdev, if_nametoindex("lo"));
    *out = now;
    return !gone;
}

static rig opened(uint32_t netdev) {
    fake_netdev = netdev;
    return rig_open((rig_conf){.device_queues = 1, .queues = 1, .nseg = 1, .size = {2048}});
}

static const char *noted(const rig *r) {
    for (uint32_t k = 0; k < r->s->core.n_notes; k++)
        if (strstr(r->s->core.notes[k], "pause frames")) return r->s->core.notes[k];
    return "";
}

static void expect(const rig *r, uint64_t received, uint64_t sent) {
    dq_line l = line_of(r, DQ_LINE_WIRE, 0);
    DQ_EQ(l.extra[DQ_EXTRA_NIC_PAUSE_RECEIVED], received);
    DQ_EQ(l.extra[DQ_EXTRA_NIC_PAUSE_SENT], sent);
}

// The ledger has the frames since the open, also those of the last 100 ms, and none after the stop.
static void of_the_run(void) {
    now = (dqi_pause_reading){true, true, true, 1000, 50};
    rig r = opened(if_nametoindex("lo"));
    const char *text = noted(&r);
    DQ_CHECK(strstr(text, "lo stops sending when its peer asks and asks its peer to stop"));
    DQ_CHECK(strstr(text, "ethtool -A lo rx off tx off"));
    expect(&r, 0, 0);
    now.received = 1007;
    now.sent = 52;
    dqi_pause_refresh(r.i->engine, true);
    expect(&r, 7, 2);
    now.received = 3; // the driver was reloaded
    dqi_pause_refresh(r.i->engine, true);
    expect(&r, 7, 2);
    gone = true;
    now.received = 2000;
    dqi_pause_refresh(r.i->engine, true);
    expect(&r, 7, 2);
    gone = false;
    now.received = 1009;
    dqi_eth_stop(r.i);
    expect(&r, 9, 2);
    now.received = 3000;
    dqi_pause_refresh(r.i->engine, true);
    expect(&r, 9, 2);
    rig_close(&r);
}

// The device is read at most every 100 ms.
static void not_too_often(void) {
    now = (dqi_pause_reading){true, false, true, 0, 0};
    rig r = opened(if_nametoindex("lo"));
    dqi_port *p = r.i->engine;
    DQ_CHECK(strstr(noted(&r), "lo stops sending when its peer asks; hint"));
    p->pause.read_ns = INT64_MAX; // read just now
    now.received = 5;
    dqi_pause_refresh(p, false);
    expect(&r, 0, 0);
    p->pause.read_ns = 0; // long ago
    dqi_pause_refresh(p, false);
    expect(&r, 5, 0);
    rig_close(&r);
}

static void silent(void) {
    now = (dqi_pause_reading){false, false, true, 0, 0}; // off: counted all the same
    rig r = opened(if_nametoindex("lo"));
    DQ_CHECK(noted(&r)[0] == 0);
    now.sent = 3;
    dqi_pause_refresh(r.i->engine, true);
    expect(&r, 0, 3);
    rig_close(&r);
    now = (dqi_pause_reading){true, true, false, 0, 0}; // on, and the driver has no counters
    r = opened(if_nametoindex("lo"));
    DQ_CHECK(noted(&r)[0] != 0);
    dqi_pause_refresh(r.i->engine, true);
    expect(&r, 0, 0);
    rig_close(&r);
    r = opened(0); // no network device: read_now is not called
    DQ_CHECK(noted(&r)[0] == 0);
    dqi_eth_stop(r.i);
    expect(&r, 0, 0);
    rig_close(&r);
}

int main(void) {
    messages();
    names();
    absent();
    dqi_pause_read = read_now;
    of_the_run();
    not_too_often();
    silent();
    return 0;
}
