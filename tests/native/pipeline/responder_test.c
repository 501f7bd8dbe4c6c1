// responder_test.c: an interface that answers for its addresses and reports its groups by itself, over the
// loop engine on the virtual clock and with workers.
#include "bed.h"

#include "neighbour/membership.h"
#include "pipeline/responder.h"

static const dq_ip four = {4, {10, 0, 0, 1}}, six = {16, {0xfe, 0x80, [15] = 1}};

// An ARP request of port 0 for 10.0.0.N.
static void arp_request(uint8_t *f, uint8_t n) {
    static const uint8_t head[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,  0xbb, 8, 6,
                                   0,    1,    8,    0,    6,    4,    0, 1, 2, 0, 0,  0,    0, 0xbb,
                                   10,   0,    0,    2,    0,    0,    0, 0, 0, 0, 10, 0,    0, 0};
    memset(f, 0, 60);
    memcpy(f, head, sizeof head);
    f[41] = n;
}

static void ask(bed *b, uint8_t n) {
    dq_burst *burst = NULL;
    DQ_EQ(dq_tx_alloc(b->tx[0][0], 1, &burst), DQ_OK);
    dq_view v;
    dq_burst_view(burst, &v);
    arp_request(bed_bytes(&v, 0, 0), n);
    dq_burst_set_len(burst, 0, -1, 60);
    DQ_EQ(dq_tx_send(b->tx[0][0], burst), DQ_OK);
}

static uint64_t answered(const bed *b) {
    return bed_line(b->s, "port1", DQ_LINE_TX, NULL).extra[DQ_EXTRA_ANSWERED];
}

// An answer is counted when it has been sent, which a worker may not have come to yet.
static void until_answered(bed *b, uint64_t n) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (answered(b) < n && dqi_mono_ns() < end)
        bed_serve(b, 100000);
    DQ_EQ(answered(b), n);
}

static int answer_for(bed *b, const dq_ip *ips, uint32_t n) {
    dq_diag d = {{0}};
    return dq_iface_answer(b->ifaces[1], ips, n, &d);
}

// Port 0 asks, port 1 answers for what it was configured for; both see what came to them.
static void answers(void) {
    BED_EACH_MODE(mode) {
        bed b;
        bed_open(&b, (bed_conf){.mode = mode, .ifaces = 2, .timeout_us = 1000});
        bed_tap_all(&b);
        const dq_ip both[] = {four, six};
        DQ_EQ(answer_for(&b, both, 2), DQ_OK); // it joins the address's group, too: port 0 sees two reports
        bed_until(&b, 2);
        until_answered(&b, 2);
        ask(&b, 1);
        bed_until(&b, 4); // the request and its answer
        until_answered(&b, 3);
        ask(&b, 7);
        bed_until(&b, 5);
        DQ_EQ(answer_for(&b, NULL, 0), DQ_OK);
        bed_until(&b, 7); // the group is left
        ask(&b, 1);
        bed_until(&b, 8);
        until_answered(&b, 5);
        bed_close(&b);
    }
}

static uint32_t reported; // frames that port 0 received before the stop

// What is joined is reported twice, and the stop leaves it.
static void groups(void) {
    BED_EACH_MODE(mode) {
        bed b;
        dq_diag d = {{0}};
        bed_open(&b, (bed_conf){.mode = mode, .ifaces = 2, .timeout_us = 1000});
        bed_tap_all(&b);
        DQ_EQ(dq_iface_multicast(b.ifaces[1], "239.1.1.1", "", true, &d), DQ_OK);
        DQ_EQ(dq_iface_multicast(b.ifaces[1], "239.1.1.1", "", true, &d), DQ_OK);
        DQ_CHECK(dq_iface_multicast(b.ifaces[1], "10.1.1.1", "", true, &d) == DQ_INVALID_PARAMETER);
        DQ_CHECK(dq_iface_multicast(b.ifaces[1], "239.1.1.2", "", false, &d) < 0);
        bed_until(&b, 2);
        for (size_t k = 0; k < 2; k++)
            DQ_EQ(b.got[k].tag, 0);
        DQ_CHECK(b.got[1].ts - b.got[0].ts <= 1500000000);
        uint8_t mac[2][6];
        DQ_EQ(dqi_responder_macs(b.ifaces[1], mac, 2), 1);
        reported = (uint32_t)b.n;
        bed_stop(&b);
        DQ_EQ(b.n, reported + 1);
        DQ_EQ(dqi_responder_macs(b.ifaces[1], mac, 2), 0);
        bed_close(&b);
    }
}

// An interface that can't send has the reason why it doesn't answer; one that is isolated answers what no
// flow wants.
static void isolated(void) {
    bed b;
    dq_diag d = {{0}};
    bed_open(&b, (bed_conf){.mode = BED_VIRTUAL, .ifaces = 2, .isolation = true});
    bed_tap_all(&b);
    dq_rule rule = bed_rule(7, 1, 0);
    bed_rules(b.ifaces[1], &rule, 1);
    rule.match = (dq_match){0}; // one that takes all
    bed_rules(b.ifaces[0], &rule, 1);
    const dq_ip none = {4, {0}}, group = {4, {239, 1, 1, 1}};
    DQ_EQ(answer_for(&b, &none, 1), DQ_INVALID_PARAMETER);
    DQ_EQ(answer_for(&b, &group, 1), DQ_INVALID_PARAMETER);
    dq_ip many[DQI_NEIGH_ADDRS + 1];
    for (int k = 0; k <= DQI_NEIGH_ADDRS; k++)
        many[k] = four;
    DQ_EQ(answer_for(&b, many, DQI_NEIGH_ADDRS + 1), DQ_NO_SPACE_AVAILABLE);
    DQ_EQ(answer_for(&b, &four, 1), DQ_OK);
    ask(&b, 1);
    bed_until(&b, 1);
    DQ_EQ(answered(&b), 1);
    DQ_EQ(b.got[0].tag, 0);
    DQ_EQ(bed_line(b.s, "port0", DQ_LINE_WIRE, NULL).dropped[DQ_DROP_NO_FLOW], 1);
    bed_close(&b);

    bed_open(&b, (bed_conf){.mode = BED_VIRTUAL});
    bed_tap_all(&b);
    b.ifaces[0]->n_tx = 0;
    DQ_EQ(dq_iface_answer(b.ifaces[0], &four, 1, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "no transmit queue") != NULL);
    b.ifaces[0]->n_tx = 1;
    bed_close(&b);
}

// A small transmit region that another consumer has emptied: what could not be reported is counted.
static void no_room(void) {
    bed b;
    bed_open(&b, (bed_conf){.mode = BED_VIRTUAL, .ifaces = 2, .bufs = 16, .rx_bufs = 64});
    bed_tap_all(&b);
    DQ_EQ(answer_for(&b, &four, 1), DQ_OK);
    ask(&b, 1);
    dq_burst *all = NULL;
    uint32_t n = 15;
    DQ_EQ(dq_tx_alloc(b.tx[1][0], n, &all), DQ_OK);
    bed_until(&b, 1);
    DQ_EQ(bed_line(b.s, "port1", DQ_LINE_TX, NULL).extra[DQ_EXTRA_UNANSWERED], 1);
    DQ_EQ(answered(&b), 0);
    dq_burst_unref(all);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(answers);
    DQ_RUN(groups);
    DQ_RUN(isolated);
    DQ_RUN(no_room);
    return dq_done();
}
