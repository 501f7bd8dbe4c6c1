// ethernet_test.c: the common part of raw Ethernet engines (ethernet.h) over a driver that hands out frames
// from a list.
#include "core/clock.h"
#include "ethernet_rig.h"
#include "pipeline/actions.h"
#include "pipeline/session.h"

#include <pthread.h>
#include <string.h>

// ---- frames -----------------------------------------------------------------------------------------------

static uint8_t bytes[DEVICE_QUEUES][DEPTH][256];

// A UDP frame of len bytes to a port, number seq, on a device queue; its tag lies beside it when tci is not
// 0.
static dqi_piece *add(uint32_t from, uint32_t seq, uint32_t len, uint16_t port, uint16_t tci) {
    fake_queue *f = &fake[from];
    uint8_t *p = bytes[from][f->n] + 16;
    memset(p, 0, len);
    memcpy(p, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45", 15);
    p[16] = (uint8_t)((len - 14) >> 8), p[17] = (uint8_t)(len - 14);
    memcpy(p + 22, "\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2", 12);
    p[36] = (uint8_t)(port >> 8), p[37] = (uint8_t)port;
    p[38] = (uint8_t)((len - 34) >> 8), p[39] = (uint8_t)(len - 34);
    memcpy(p + 42, &seq, sizeof seq);
    for (uint32_t i = 46; i < len; i++)
        p[i] = (uint8_t)(seq + i);
    f->pieces[f->n] = (dqi_piece){.data = p,
                                  .len = len,
                                  .buf = DQI_NO_BUF,
                                  .vlan_tci = tci,
                                  .vlan_tpid = tci ? 0x8100 : 0,
                                  .ts = seq + 1};
    return &f->pieces[f->n++];
}

static uint32_t seq_of(const dq_burst *b, uint32_t i) {
    uint32_t seq;
    memcpy(&seq, b->session->core.base + b->off[0][i] + 42, sizeof seq);
    return seq;
}

static dq_rule to(uint16_t port, uint32_t id, uint16_t queue) {
    return (dq_rule){.match = {.set = DQ_MATCH_UDP_DST, .udp_dst = {port, port}},
                     .order = id,
                     .flow_id = id,
                     .n_queues = 1,
                     .queues = {queue}};
}

// Flows bring the frames of one device queue to three queues, whichever thread reads them, each in order.
static void spread_over_queues(void) {
    rig r = rig_open((rig_conf){.device_queues = 1, .queues = 3, .nseg = 1, .size = {256}});
    dq_diag d = {{0}};
    dq_rule rules[] = {to(1001, 11, 1), to(1002, 22, 2)};
    must(dq_iface_change_rules(r.i, NULL, 0, rules, 2, NULL, &d), &d);
    for (uint32_t k = 0; k < 30; k++)
        add(0, k, 60 + k, (uint16_t)(1000 + k % 3), 0);
    for (int k = 2; k >= 0; k--) { // the last reads for all
        dq_burst *b;
        DQ_EQ(take(r.q[k], &b), 10);
        for (uint32_t i = 0; i < b->n; i++) {
            DQ_EQ(seq_of(b, i), 3 * i + (uint32_t)k);
            DQ_EQ(b->flow[i], 11 * (uint32_t)k);
            DQ_EQ(b->len[0][i], 60 + 3 * i + (uint32_t)k);
            DQ_EQ(b->ts[i], 3 * i + (uint32_t)k + 1);
        }
        dq_burst_unref(b);
        dq_line l = line_of(&r, DQ_LINE_RX, (uint32_t)k);
        DQ_EQ(l.in, 10);
        DQ_EQ(l.extra[DQ_EXTRA_COPIED], 10);
    }
    rig_close(&r);
}

// Flow ids of the frames to ports from 1000 on.
static void check_flows(rig *r, const uint32_t *ids, uint32_t n) {
    dq_burst *b;
    for (uint32_t k = 0; k < n; k++)
        add(0, k, 60, (uint16_t)(1000 + k), 0);
    DQ_EQ(take(r->q[0], &b), n);
    for (uint32_t k = 0; k < n && k < b->n; k++)
        DQ_EQ(b->flow[k], ids[k]);
    dq_burst_unref(b);
}

// A driver receives what changes and no more; where it refuses, frames meet the rules that there were.
static void rules_told(void) {
    enum { MANY = 400 }; // enough for a table in layers
    rig r = rig_open((rig_conf){.device_queues = 1, .queues = 1, .nseg = 1, .size = {256}});
    dq_diag d = {{0}};
    dq_rule many[MANY], more = to(1001, 1001, 0);
    for (uint16_t k = 0; k < MANY; k++)
        many[k] = to(2000 + k, 2000 + k, 0);
    reported.refuses = true; // there are none yet
    DQ_EQ(dq_iface_change_rules(r.i, NULL, 0, &more, 1, NULL, &d), DQ_NO_SPACE_AVAILABLE);
    check_flows(&r, (const uint32_t[]){0, 0}, 2);
    reported.refuses = false;
    must(dq_iface_change_rules(r.i, NULL, 0, many, MANY, NULL, &d), &d);
    must(dq_iface_change_rules(r.i, NULL, 0, &more, 1, NULL, &d), &d);
    DQ_CHECK(reported.n_gone == 0 && reported.n_add == 1 && reported.add_id == 1001);
    more = to(1000, 1000, 0);
    must(dq_iface_change_rules(r.i, (const uint64_t[]){1001, 2017}, 2, &more, 1, NULL, &d), &d);
    DQ_CHECK(reported.n_gone == 2 && reported.gone_id == 1001 && reported.n_add == 1 &&
             reported.add_id == 1000);
    check_flows(&r, (const uint32_t[]){1000, 0}, 2);
    reported.refuses = true;
    more = to(1001, 1001, 0);
    DQ_EQ(dq_iface_change_rules(r.i, (const uint64_t[]){1000}, 1, &more, 1, NULL, &d), DQ_NO_SPACE_AVAILABLE);
    DQ_CHECK(strstr(d.text, "port: full") != NULL);
    check_flows(&r, (const uint32_t[]){1000, 0}, 2);
    reported.refuses = false;
    must(dq_iface_change_rules(r.i, (const uint64_t[]){1000}, 1, &more, 1, NULL, &d), &d);
    check_flows(&r, (const uint32_t[]){0, 1001}, 2);
    DQ_EQ(dq_iface_change_rules(r.i, (const uint64_t[]){2017}, 1, NULL, 0, NULL, &d), DQ_INVALID_PARAMETER);
    rig_close(&r);
}

// A frame in pieces is spread over the segments by their sizes.
static void split_in_two(void) {
    rig r = rig_open((rig_conf){.device_queues = 1, .queues = 1, .nseg = 2, .size = {64, 100}});
    dqi_piece *p = add(0, 7, 150, 1, 0);
    fake[0].pieces[1] = (dqi_piece){.data = p->data + 50, .len = 100, .buf = DQI_NO_BUF};
    p->len = 50;
    p->more = true;
    fake[0].n = 2;
    add(0, 8, 60, 1, 0);
    add(0, 9, 165, 1, 0); // one byte too many
    dq_burst *b;
    DQ_EQ(take(r.q[0], &b), 2);
    DQ_EQ(b->len[0][0], 64);
    DQ_EQ(b->len[1][0], 86);
    DQ_EQ_BYTES(b->session->core.base + b->off[0][0], p->data, 64);
    DQ_EQ_BYTES(b->session->core.base + b->off[1][0], p->data + 64, 86);
    DQ_EQ(b->len[0][1], 60);
    DQ_EQ(b->len[1][1], 0);
    DQ_EQ(b->bytes, 210);
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_RX, 0).dropped[DQ_DROP_TOO_LONG], 1);
    rig_close(&r);
}

// A tag that the device took out is in the frame again, before the flows check it.
static void tag_put_back(void) {
    rig r =
        rig_open((rig_conf){.device_queues = 1, .queues = 1, .nseg = 1, .size = {256}, .isolation = true});
    dq_diag d = {{0}};
    dq_rule rule = {.match = {.set = DQ_MATCH_VLAN_ID, .vlan_id = 9}, .flow_id = 5, .n_queues = 1};
    must(dq_iface_change_rules(r.i, NULL, 0, &rule, 1, NULL, &d), &d);
    add(0, 1, 60, 1, 9);
    add(0, 2, 60, 1, 8);
    add(0, 3, 60, 1, 0);
    dq_burst *b;
    DQ_EQ(take(r.q[0], &b), 1);
    DQ_EQ(b->len[0][0], 64);
    DQ_EQ(b->flow[0], 5);
    DQ_EQ_BYTES(b->session->core.base + b->off[0][0], "\2\0\0\0\0\2\2\0\0\0\0\1\x81\0\0\x09\x08\0\x45", 19);
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_WIRE, 0).dropped[DQ_DROP_NO_FLOW], 2);
    rig_close(&r);
}

// Frames in the queue's own buffers stay there; the buffers of those that no flow wants go back.
static void left_in_place(void) {
    rig r = rig_open((rig_conf){
        .device_queues = 1, .queues = 1, .nseg = 1, .size = {256}, .in_place = true, .isolation = true});
    dq_diag d = {{0}};
    dq_rule rule = to(1000, 1, 0);
    must(dq_iface_change_rules(r.i, NULL, 0, &rule, 1, NULL, &d), &d);
    uint32_t ids[4];
    DQ_EQ(dqi_bufs_alloc(r.region[0], ids, 4), 4);
    for (uint32_t k = 0; k < 4; k++) {
        dqi_piece *p = add(0, k, 60, k < 2 ? 1000 : 9, 0);
        uint8_t *place = r.s->core.base + dqi_buf_off(r.region[0], ids[k]) + 40;
        memcpy(place, p->data, p->len);
        p->data = place;
        p->buf = ids[k];
    }
    uint32_t free_bufs = dqi_region_level(r.region[0]);
    dq_burst *b;
    DQ_EQ(take(r.q[0], &b), 2);
    DQ_EQ(dqi_region_level(r.region[0]), free_bufs + 2);
    for (uint32_t k = 0; k < 2; k++) {
        DQ_EQ(b->bufs[0][k], ids[k]);
        DQ_EQ(b->off[0][k], dqi_buf_off(r.region[0], ids[k]) + 40);
    }
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_RX, 0).extra[DQ_EXTRA_COPIED], 0);
    rig_close(&r);
}

// What the device has done of a flow's actions is not done again, in place or copied, whether it still marks
// or not; what it found broken is dropped, and what it left alone is software's.
static void done_by_the_device(void) {
    for (int marks = 0; marks < 2; marks++) {
        rig r = rig_open((rig_conf){
            .device_queues = 1, .queues = 1, .nseg = 1, .size = {256}, .in_place = true, .isolation = true});
        dq_diag d = {{0}};
        const dq_action pop = {.kind = DQ_ACT_VLAN_POP};
        dq_rule rule = {
            .match = {.set = DQ_MATCH_VLAN_ID, .vlan_id = 9}, .flow_id = 5, .n_queues = 1, .n_actions = 1};
        must(dq_iface_change_rules(r.i, NULL, 0, &rule, 1, &pop, &d), &d);
        dqi_port *p = dqi_port_of(r.i);
        p->transforms = true;
        p->marks = marks;
        for (uint32_t k = 0; k < 4; k++) {
            dqi_piece *piece = add(0, k, 60, 1000, k == 3 ? 9 : 0);
            if (k < 3)
                *piece =
                    (dqi_piece){.data = piece->data, .len = 60, .buf = DQI_NO_BUF, .flow = 5, .done = true};
            piece->broken = k == 1;
        }
        dqi_piece *there = &fake[0].pieces[2];
        DQ_EQ(dqi_bufs_alloc(r.region[0], &there->buf, 1), 1);
        uint8_t *place = r.s->core.base + dqi_buf_off(r.region[0], there->buf);
        there->data = memcpy(place, there->data, there->len);
        dq_burst *b = dqi_burst_get(r.q[0]->bursts);
        DQ_EQ(dqi_eth_rx(r.q[0], &b, 32), 4);
        DQ_EQ(dqi_rx_actions(r.q[0], b, 0), 1);
        dqi_add(&r.q[0]->c.out, b->n);
        DQ_EQ(b->n, 3);
        for (uint32_t k = 0; k < 3; k++) {
            DQ_EQ(seq_of(b, k), k == 0 ? 0 : k + 1);
            DQ_EQ(b->flow[k], 5);
            DQ_EQ(b->len[0][k], 60);
            DQ_EQ_BYTES(b->session->core.base + b->off[0][k] + 12, "\x08\0\x45", 3);
        }
        DQ_EQ(b->off[0][1], (uint64_t)(place - r.s->core.base));
        dq_burst_unref(b);
        dq_line l = line_of(&r, DQ_LINE_RX, 0);
        DQ_EQ(l.dropped[DQ_DROP_BAD_TUNNEL], 1);
        DQ_EQ(l.extra[DQ_EXTRA_TRANSFORMED], 3);
        rig_close(&r);
    }
}

// Appends the next part of a frame, in a buffer of its region.
static void add_part(rig *r, uint32_t region, const uint8_t *data, uint32_t len, bool more) {
    uint32_t id;
    DQ_EQ(dqi_bufs_alloc(r->region[region], &id, 1), 1);
    uint8_t *place = r->s->core.base + dqi_buf_off(r->region[region], id);
    memcpy(place, data, len);
    fake[0].pieces[fake[0].n++] = (dqi_piece){.data = place, .len = len, .buf = id, .more = more, .ts = 1};
}

// What the device has put into the buffers of both regions stays there; a frame that ends in the first is
// copied, as it has no buffer of the second, and so is one of which a part lies elsewhere.
static void left_split(void) {
    rig r =
        rig_open((rig_conf){.device_queues = 1, .queues = 1, .nseg = 2, .size = {64, 100}, .in_place = true});
    uint8_t frame[160];
    for (uint32_t k = 0; k < sizeof frame; k++)
        frame[k] = (uint8_t)k;
    const uint32_t lens[] = {160, 64, 150};
    for (uint32_t k = 0; k < 3; k++) {
        add_part(&r, 0, frame, 64, lens[k] > 64);
        if (lens[k] > 64) add_part(&r, 1, frame + 64, lens[k] - 64, false);
    }
    dqi_piece *last = &fake[0].pieces[fake[0].n - 1];
    dqi_bufs_free(r.s, &last->buf, 1);
    last->data = frame + 64, last->buf = DQI_NO_BUF;
    const dqi_piece whole[2] = {fake[0].pieces[0], fake[0].pieces[1]};
    dq_burst *b;
    DQ_EQ(take(r.q[0], &b), 3);
    for (uint32_t k = 0; k < 2; k++)
        DQ_EQ(b->bufs[k][0], whole[k].buf);
    for (uint32_t k = 0; k < 3; k++) {
        DQ_EQ(b->len[0][k], 64);
        DQ_EQ(b->len[1][k], lens[k] - 64);
        DQ_EQ_BYTES(b->session->core.base + b->off[0][k], frame, 64);
        DQ_EQ_BYTES(b->session->core.base + b->off[1][k], frame + 64, lens[k] - 64);
    }
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_RX, 0).extra[DQ_EXTRA_COPIED], 2);
    for (uint32_t k = 0; k < 2; k++)
        DQ_EQ(dqi_region_level(r.region[k]), 1024);
    rig_close(&r);
}

// No buffer, no descriptor, no reader: each is counted where it belongs.
static void shortages(void) {
    rig r = rig_open(
        (rig_conf){.device_queues = 1, .queues = 2, .nseg = 1, .size = {256}, .bufs = 16, .meta = 4});
    dq_diag d = {{0}};
    dq_rule rule = to(1001, 11, 1);
    must(dq_iface_change_rules(r.i, NULL, 0, &rule, 1, NULL, &d), &d);
    dq_burst *held[64], *b;
    uint32_t n = 0;
    for (uint32_t k = 0; k < 20; k++)
        add(0, k, 60, 1000, 0);
    DQ_EQ(take(r.q[0], &b), 16);
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_RX, 0).dropped[DQ_DROP_NO_PACKET_BUFFER], 4);
    while (n < 64 && dqi_burst_pool_level(r.q[1]->bursts) > 2)
        held[n++] = dqi_burst_get(r.q[1]->bursts);
    add(0, 20, 60, 1001, 0);
    DQ_EQ(take(r.q[0], &b), 0);
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_RX, 1).dropped[DQ_DROP_NO_BURST_BUFFER], 1);
    while (n > 0)
        dq_burst_unref(held[--n]);
    atomic_store(&r.q[1]->rx.consumed, false);
    for (uint32_t k = 0; k < 8; k++) { // a quarter of the region's 16 buffers may wait
        add(0, k, 60, 1001, 0);
        take(r.q[0], &b);
        dq_burst_unref(b);
    }
    dq_line l = line_of(&r, DQ_LINE_RX, 1);
    DQ_EQ(l.held, 4);
    DQ_EQ(line_of(&r, DQ_LINE_WIRE, 0).dropped[DQ_DROP_QUEUE_FULL], 4);
    DQ_EQ(dqi_eth_flush(r.q[1]), 4);
    must(dq_iface_drop_all(r.i, true, &d), &d);
    add(0, 9, 60, 1000, 0);
    DQ_EQ(take(r.q[0], &b), 0);
    dq_burst_unref(b);
    DQ_EQ(line_of(&r, DQ_LINE_WIRE, 0).dropped[DQ_DROP_DROP_ALL], 1);
    rig_close(&r);
}

// ---- two pollers ------------------------------------------------------------------------------------------

typedef struct poll {
    rig *r;
    uint32_t k;
    uint32_t got, next[DEVICE_QUEUES];
} poll;

static void *run_poll(void *arg) {
    poll *p = arg;
    const int64_t until = dqi_mono_ns() + INT64_C(20000000000);
    while (p->got < DEPTH && dqi_mono_ns() < until) {
        dq_burst *b;
        uint32_t n = take(p->r->q[p->k], &b);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t seq = seq_of(b, i), from = seq >> 16;
            DQ_CHECK(from < DEVICE_QUEUES && (seq & 0xffff) >= p->next[from] && (seq & 1) == p->k);
            p->next[from % DEVICE_QUEUES] = (seq & 0xffff) + 1;
        }
        p->got += n;
        dq_burst_unref(b);
        if (n == 0) dqi_yield();
    }
    return NULL;
}

// Two threads poll two queues over two device queues, whose frames go to both: none is lost, and a device
// queue's stay in order.
static void two_pollers(void) {
    for (int round = 0; round < 20; round++) {
        rig r = rig_open(
            (rig_conf){.device_queues = 2, .queues = 2, .nseg = 1, .size = {256}, .bufs = 4096, .meta = 256});
        dq_diag d = {{0}};
        dq_rule rule = to(1001, 11, 1);
        must(dq_iface_change_rules(r.i, NULL, 0, &rule, 1, NULL, &d), &d);
        for (uint32_t k = 0; k < DEPTH; k++)
            for (uint32_t l = 0; l < DEVICE_QUEUES; l++)
                add(l, l << 16 | k, 60 + k % 64, (uint16_t)(1000 + k % 2), 0);
        poll p[2] = {{.r = &r, .k = 0}, {.r = &r, .k = 1}};
        pthread_t t;
        if (pthread_create(&t, NULL, run_poll, &p[1]) != 0) exit(1);
        run_poll(&p[0]);
        pthread_join(t, NULL);
        DQ_EQ(p[0].got, DEPTH);
        DQ_EQ(p[1].got, DEPTH);
        rig_close(&r);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(spread_over_queues);
    DQ_RUN(rules_told);
    DQ_RUN(split_in_two);
    DQ_RUN(tag_put_back);
    DQ_RUN(left_in_place);
    DQ_RUN(done_by_the_device);
    DQ_RUN(left_split);
    DQ_RUN(shortages);
    DQ_RUN(two_pollers);
    return dq_done();
}
