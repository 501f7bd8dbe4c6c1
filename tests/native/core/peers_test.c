// peers_test.c: who sent each packet is kept beside the packets, by buffer, from when a consumer needs it.
#include "bed.h"
#include "core/peers.h"
#include "pipeline/session.h"

#include <arpa/inet.h>

static dqi_sockaddr address(uint32_t k) {
    return (dqi_sockaddr){.in4 = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(5000 + k)),
                                  .sin_addr.s_addr = htonl(0xc0000200 + k)}};
}

// A burst of n packets of the bed's transmit region, each 100 bytes.
static dq_burst *burst_of(bed *b, uint32_t n) {
    dq_burst *x;
    DQ_EQ(bed_make(b, b->tx[0][0], n, 100, 0, &x), DQ_OK);
    x->payload = true;
    return x;
}

static void check_peer(const dq_burst *x, uint32_t i, const char *want) {
    char text[64];
    dq_burst_peer(x, i, text, sizeof text);
    DQ_CHECK(strcmp(text, want) == 0);
}

static void kept_where_asked_for(void) {
    bed b;
    dq_diag d = {{0}};
    bed_open(&b, (bed_conf){.bufs = 8});
    dq_burst *x = burst_of(&b, 4);
    DQ_CHECK(!dqi_burst_peer_addr(x, 0));
    check_peer(x, 0, "");
    DQ_EQ(dqi_region_keep_peers(b.out, &d), DQ_OK);
    const dqi_sockaddr *first = dqi_burst_peer_addr(x, 0);
    DQ_EQ(dqi_region_keep_peers(b.out, &d), DQ_OK); // again: nothing changes
    DQ_CHECK(dqi_burst_peer_addr(x, 0) == first);
    check_peer(x, 0, ""); // not known yet
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t before[DQ_HEADROOM], *head = b.s->core.base + x->off[0][i] - DQ_HEADROOM;
        memcpy(before, head, sizeof before);
        *dqi_burst_peer_addr(x, i) = address(i);
        DQ_EQ_BYTES(head, before, sizeof before); // packet memory is the packets' alone
        DQ_EQ((uintptr_t)dqi_burst_peer_addr(x, i) % 32, 0);
    }
    check_peer(x, 3, "192.0.2.3:5003");
    dq_burst *half;
    DQ_EQ(dq_burst_pick(x, (const uint32_t[]){3, 1}, 2, &half), DQ_OK); // a selection has the same
    check_peer(half, 0, "192.0.2.3:5003");
    check_peer(half, 1, "192.0.2.1:5001");
    check_peer(half, 2, "");
    dq_burst_unref(half);
    dq_burst_unref(x);
    bed_close(&b);
}

// A copy has the sender of the original, also where that is not known, and where one of the two keeps
// nothing.
static void copied(void) {
    bed b;
    dq_diag d = {{0}};
    bed_open(&b, (bed_conf){.bufs = 8});
    dq_burst *x = burst_of(&b, 2), *y = burst_of(&b, 2);
    dqi_burst_copy_peer(y, 0, x, 0);
    DQ_EQ(dqi_region_keep_peers(b.out, &d), DQ_OK);
    *dqi_burst_peer_addr(x, 1) = address(7);
    *dqi_burst_peer_addr(y, 0) = address(8);
    dqi_burst_copy_peer(y, 1, x, 1);
    dqi_burst_copy_peer(y, 0, x, 0);
    check_peer(y, 1, "192.0.2.7:5007");
    check_peer(y, 0, "");
    dq_burst_unref(x);
    dq_burst_unref(y);
    bed_close(&b);
}

// Targets are kept once a consumer asks, by regions that keep peers then or later.
static void targets(void) {
    bed b;
    dq_diag d = {{0}};
    bed_open(&b, (bed_conf){.bufs = 8});
    dq_burst *x = burst_of(&b, 2);
    DQ_EQ(dqi_session_keep_targets(b.s), DQ_OK);
    DQ_CHECK(!dqi_burst_target(x, 0));
    DQ_EQ(dqi_region_keep_peers(b.out, &d), DQ_OK);
    const dqi_target *t = dqi_burst_target(x, 0);
    DQ_CHECK(t && t->family == 0);
    dqi_buf_target(b.out, x->bufs[0][0])->family = AF_INET;
    DQ_EQ(dqi_session_keep_targets(b.s), DQ_OK);
    DQ_CHECK(dqi_burst_target(x, 0) == t && t->family == AF_INET);
    dqi_burst_copy_peer(x, 1, x, 0);
    DQ_EQ(dqi_burst_target(x, 1)->family, AF_INET);
    dq_burst_unref(x);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(kept_where_asked_for);
    DQ_RUN(copied);
    DQ_RUN(targets);
    return dq_done();
}
