// actions_test.c: flows that change frames, on both sides of the loop engine: what arrives, in whose memory,
// and what the accounts say of it.
#include "bed_pipe.h"

#include <pthread.h>

static const dq_action vxlan_on = {.kind = DQ_ACT_ENCAP,
                                   .tunnel = DQ_TUNNEL_VXLAN,
                                   .ttl = 64,
                                   .ipv4_src = 0xc0000201,
                                   .ipv4_dst = 0xc0000202,
                                   .id = 100,
                                   .udp_dst = 4789,
                                   .eth_src = {2, 0, 0, 0, 0, 1},
                                   .eth_dst = {2, 0, 0, 0, 0, 2}};
static const dq_action tag_on = {.kind = DQ_ACT_VLAN_PUSH, .tpid = 0x8100, .tci = 0x6007};
static const dq_action tag_off = {.kind = DQ_ACT_VLAN_POP};

static dq_action vxlan_off(uint32_t vni) {
    dq_action a = vxlan_on;
    a.kind = DQ_ACT_DECAP;
    a.id = vni;
    return a;
}

// A transmit rule for all that goes to a port, 0: any.
static void sends(dq_iface *i, uint16_t port, const dq_action *a, uint16_t n) {
    dq_diag d = {{0}};
    dq_rule r = bed_rule(port, 50, 0);
    if (port == 0) r.match.set = 0;
    r.n_actions = n;
    bed_must(dq_iface_set_tx_rules(i, &r, 1, a, &d), &d, "transmit rules");
}

// A receive rule for all that comes, to a queue with a flow id.
static int receives(dq_iface *i, uint32_t flow, uint16_t queue, uint64_t order, const dq_action *a,
                    uint16_t n, dq_diag *d) {
    dq_rule r = {.flow_id = flow, .order = order, .n_queues = 1, .queues = {queue}, .n_actions = n};
    return dq_iface_change_rules(i, NULL, 0, &r, 1, a, d);
}

static void must_receive(dq_iface *i, uint32_t flow, const dq_action *a, uint16_t n) {
    dq_diag d = {{0}};
    bed_must(receives(i, flow, 0, flow, a, n, &d), &d, "rules");
}

static dq_line rx_line(const bed *b) { return bed_line(b->s, "port0", DQ_LINE_RX, "rx0"); }
static dq_line tx_line(const bed *b) { return bed_line(b->s, "port0", DQ_LINE_TX, "tx0"); }

// By reference and by copy, some packets in the tunnel and some not; bytes on the way are counted with the
// tunnel.
static void through_a_tunnel(void) {
    BED_EACH_MODE(m) {
        for (int copy = 0; copy < 2; copy++) {
            bed b;
            const dq_action on[] = {vxlan_on, tag_on}, off[] = {tag_off, vxlan_off(100)};
            bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .rx_size = {copy ? 2048 : 0}});
            sends(b.ifaces[0], 7, on, 2);
            dq_diag d = {{0}};
            dq_rule r[] = {bed_rule(7, 9, 0), bed_rule(8, 8, 0)};
            r[0].n_actions = 2;
            r[1].order = 1;
            bed_must(dq_iface_change_rules(b.ifaces[0], NULL, 0, r, 2, off, &d), &d, "rules");
            bed_tap_all(&b);
            for (int k = 0; k < 20; k++) {
                bed_stream(&b, b.tx[0][0], 50, 25, 100, 7);
                bed_stream(&b, b.tx[0][0], 50, 25, 100, 8);
            }
            bed_until(&b, 2000);
            bed_check_order(&b, 2000);
            for (size_t k = 0; k < b.n; k++)
                DQ_EQ(b.got[k].flow, b.got[k].dport == 7 ? 9 : 8);
            bed_stop(&b);
            DQ_EQ(tx_line(&b).extra[DQ_EXTRA_TRANSFORMED], 1000);
            DQ_EQ(rx_line(&b).extra[DQ_EXTRA_TRANSFORMED], 1000);
            DQ_EQ(tx_line(&b).in_bytes, 200000);
            DQ_EQ(tx_line(&b).out_bytes, 254000);
            DQ_EQ(rx_line(&b).in_bytes, 254000);
            DQ_EQ(rx_line(&b).out_bytes, 200000);
            bed_close(&b);
        }
    }
}

// Frames of another tunnel, and in the tunnel to another port, are not the flow's; what comes after them
// isn't disturbed.
static void another_tunnel(void) {
    BED_EACH_MODE(m) {
        bed b;
        const dq_action off[] = {vxlan_off(101), vxlan_off(100)};
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .isolation = true});
        sends(b.ifaces[0], 7, &vxlan_on, 1);
        dq_diag d = {{0}};
        dq_rule r[] = {bed_rule(7, 9, 0), bed_rule(4789, 10, 0), bed_rule(8, 8, 0)};
        r[0].n_actions = r[1].n_actions = r[1].first_action = 1;
        r[1].order = 1;
        r[2].order = 2;
        bed_must(dq_iface_change_rules(b.ifaces[0], NULL, 0, r, 3, off, &d), &d, "rules");
        bed_tap_all(&b);
        for (int k = 0; k < 20; k++) {
            bed_stream(&b, b.tx[0][0], 10, 10, 100, 7);
            bed_stream(&b, b.tx[0][0], 10, 10, 100, 8);
        }
        bed_until(&b, 200);
        bed_stop(&b);
        DQ_EQ(b.n, 200);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact && b.got[k].seq == k / 10 * 20 + 10 + k % 10);
        DQ_EQ(bed_line(b.s, "port0", DQ_LINE_WIRE, NULL).dropped[DQ_DROP_NO_FLOW], 200);
        DQ_EQ(rx_line(&b).dropped[DQ_DROP_BAD_TUNNEL], 0);
        DQ_EQ(rx_line(&b).extra[DQ_EXTRA_TRANSFORMED], 0);
        bed_close(&b);
    }
}

// Frames that fill their buffers: the outer headers lie in the headroom on both sides, where an engine takes
// them off again. Where none does, the frame is too long, as it is on other engines.
static void frames_that_fill_buffers(void) {
    BED_EACH_MODE(m) {
        for (int how = 0; how < 4; how++) {
            bed b;
            const bool off = how & 1, split = how & 2;
            const dq_action decap = vxlan_off(100);
            bed_open(&b, (bed_conf){.mode = m,
                                    .timeout_us = 100,
                                    .buf_size = 1000,
                                    .rx_nseg = split ? 2 : 1,
                                    .rx_size = {split ? 42 : 1000, 958},
                                    .seed = 3,
                                    .wire = {.dup = split ? 0.2 : 0}});
            sends(b.ifaces[0], 7, &vxlan_on, 1);
            if (off) must_receive(b.ifaces[0], 9, &decap, 1);
            bed_tap_all(&b);
            bed_stream(&b, b.tx[0][0], 200, 20, 1000, 7);
            bed_until(&b, off ? 200 : 0);
            bed_stop(&b);
            uint64_t arrived = bed_line(b.s, "port0", DQ_LINE_WIRE, NULL).out;
            DQ_EQ(b.n, off ? arrived : 0);
            DQ_CHECK(split ? arrived > 210 : arrived == 200);
            for (size_t k = 0; k < b.n; k++)
                DQ_CHECK(b.got[k].intact && b.got[k].len == 1000);
            DQ_EQ(rx_line(&b).dropped[DQ_DROP_TOO_LONG], off ? 0 : arrived);
            bed_close(&b);
        }
    }
}

// An untagged frame that is received `lead` bytes early keeps its header split; one that is too long by them
// is dropped.
static void header_split_beside_a_tunnel(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_event ev[16];
        const dq_action decap = vxlan_off(100);
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .rx_nseg = 2, .rx_size = {42, 100}});
        dq_diag d = {{0}};
        dq_rule r[] = {bed_rule(4789, 9, 0), bed_rule(8, 8, 0)};
        r[0].n_actions = 1;
        r[1].order = 1;
        bed_must(dq_iface_change_rules(b.ifaces[0], NULL, 0, r, 2, &decap, &d), &d, "rules");
        bed_tap_all(&b);
        DQ_EQ(bed_send(&b, b.tx[0][0], 10, 142, 8), DQ_OK);
        DQ_EQ(bed_send(&b, b.tx[0][0], 10, 143, 8), DQ_OK);
        DQ_EQ(bed_send(&b, b.tx[0][0], 10, 90, 8), DQ_OK);
        for (int k = 0; k < 100 && b.n < 20; k++) {
            if (m == BED_VIRTUAL) bed_steps(&b, INT64_MAX, false);
            int n = dq_wait(b.w, 20000000, ev, 16);
            for (int e = 0; e < n; e++) {
                const dq_view *v = &ev[e].view;
                for (uint32_t i = 0; i < v->n; i++)
                    DQ_EQ(v->len[0][i], 42);
                bed_note(&b, ev[e].tag, v);
                dq_burst_unref(ev[e].b);
            }
        }
        DQ_EQ(b.n, 20);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact && b.got[k].len == (k < 10 ? 142 : 90));
        DQ_EQ(rx_line(&b).dropped[DQ_DROP_TOO_LONG], 10);
        bed_close(&b);
    }
}

// Takes what waits in the taps and holds it.
static uint32_t take_and_hold(bed *b, dq_burst **held, uint32_t max) {
    dq_event ev[16];
    if (b->conf.mode == BED_VIRTUAL) bed_steps(b, INT64_MAX, false);
    int n = dq_wait(b->w, 20000000, ev, max < 16 ? (int)max : 16);
    for (int k = 0; k < n; k++) {
        bed_note(b, ev[k].tag, &ev[k].view);
        held[k] = ev[k].b;
    }
    return n > 0 ? (uint32_t)n : 0;
}

// A burst that a tap holds is forwarded into a tunnel: the tap's packets stay as they were.
static void a_tee_is_copied(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_burst *held[200];
        uint32_t n = 0;
        const dq_action off = vxlan_off(100);
        bed_open(&b, (bed_conf){.mode = m, .ifaces = 2, .timeout_us = 100, .batch = 32});
        sends(b.ifaces[1], 7, &vxlan_on, 1);
        must_receive(b.ifaces[0], 9, &off, 1);
        dq_stage *tap = bed_tap(&b, 100, 64, DQ_POLICY_WAIT), *back = bed_tap(&b, 0, 64, DQ_POLICY_WAIT);
        dq_stage *forward = forwarder(&b, "forward", b.tx[1][0], DQ_POLICY_WAIT);
        bed_pipe(b.rx[1][0], &tap, 1);
        bed_pipe(b.rx[1][0], &forward, 1);
        bed_pipe(b.rx[0][0], &back, 1);
        bed_start(&b);
        for (int k = 0; k < 20; k++)
            DQ_EQ(bed_send(&b, b.tx[0][0], 25, 100, 7), DQ_OK);
        for (int k = 0; k < 1000 && b.n < 1000; k++)
            n += take_and_hold(&b, held + n, 200 - n);
        DQ_EQ(b.n, 1000);
        uint64_t next[2] = {0};
        for (size_t k = 0; k < b.n; k++) {
            DQ_CHECK(b.got[k].intact);
            DQ_EQ(b.got[k].seq, next[b.got[k].tag == 0]++);
        }
        b.n = 0;
        for (uint32_t k = 0; k < n; k++) { // still
            dq_view v;
            dq_burst_view(held[k], &v);
            bed_note(&b, 0, &v);
            dq_burst_unref(held[k]);
        }
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact);
        dq_line l = bed_line(b.s, "port1", DQ_LINE_TX, "tx0");
        DQ_EQ(l.extra[DQ_EXTRA_COPIED], 500);
        DQ_EQ(l.extra[DQ_EXTRA_TRANSFORMED], 500);
        bed_close(&b);
    }
}

// A packet that goes round gets headers as long as there is room before it.
static void a_packet_that_goes_round(void) {
    bed b;
    bed_case(__func__, BED_VIRTUAL);
    bed_open(&b, (bed_conf){.timeout_us = 100});
    sends(b.ifaces[0], 0, &tag_on, 1);
    dq_stage *forward = forwarder(&b, "forward", b.tx[0][0], DQ_POLICY_WAIT);
    bed_pipe(b.rx[0][0], &forward, 1);
    bed_start(&b);
    bed_stream(&b, b.tx[0][0], 10, 10, 100, 7);
    bed_steps(&b, BED_START_NS + 1000000000, false);
    DQ_EQ(tx_line(&b).dropped[DQ_DROP_TOO_LONG], 10);
    DQ_EQ(tx_line(&b).extra[DQ_EXTRA_TRANSFORMED], 320);
    bed_close(&b);
}

// A transmission from a template: the bytes that stay in the buffers are not the template's any more.
static void a_transmission(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_diag d = {{0}};
        uint8_t frame[100];
        dq_template *t;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .template = true});
        sends(b.ifaces[0], 7, &tag_on, 1);
        must_receive(b.ifaces[0], 9, &tag_off, 1);
        bed_tap_all(&b);
        bed_frame(frame, sizeof frame, 1000, 7, 0);
        bed_must(dq_template_new(frame, sizeof frame, NULL, 0, 0, 1, &t, &d), &d, "template");
        DQ_EQ(dq_tx_transmit(b.tx[0][0], t, 20000), DQ_OK);
        bed_until(&b, 20000);
        bed_stop(&b);
        DQ_EQ(b.n, 20000);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact);
        bed_close(&b);
        dq_template_unref(t);
    }
}

// Transmit rules come and go while a template is sent: each packet comes whole, with the tag or without. What
// a tag overwrote of the template is written again when there are no rules any more.
static void rules_change_while_sending(void) {
    enum { N = 20000, STEP = 500 };
    BED_EACH_MODE(m) {
        if (m == BED_VIRTUAL) continue; // all are sent in one step
        bed b;
        dq_diag d = {{0}};
        uint8_t frame[100];
        dq_template *t;
        dq_rule tagged = {
            .match = {.set = DQ_MATCH_VLAN_ID, .vlan_id = 7}, .flow_id = 9, .n_queues = 1, .n_actions = 1};
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .template = true});
        bed_must(dq_iface_change_rules(b.ifaces[0], NULL, 0, &tagged, 1, &tag_off, &d), &d, "rules");
        bed_tap_all(&b);
        bed_frame(frame, sizeof frame, 1000, 7, 0);
        bed_must(dq_template_new(frame, sizeof frame, NULL, 0, 0, 1, &t, &d), &d, "template");
        uint64_t sent = 0, changed = 0;
        for (int round = 0; round < 20 && (changed == 0 || changed == sent); round++, sent += N) {
            DQ_EQ(dq_tx_transmit(b.tx[0][0], t, N), DQ_OK); // which may be quicker than any change
            for (size_t n = STEP; n <= N; n += STEP) {
                if (n / STEP % 2 == 0)
                    sends(b.ifaces[0], 7, &tag_on, 1);
                else
                    bed_must(dq_iface_set_tx_rules(b.ifaces[0], NULL, 0, NULL, &d), &d, "no transmit rules");
                bed_until(&b, sent + n);
            }
            changed = tx_line(&b).extra[DQ_EXTRA_TRANSFORMED];
        }
        bed_stop(&b);
        DQ_EQ(b.n, sent);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact);
        changed = tx_line(&b).extra[DQ_EXTRA_TRANSFORMED];
        DQ_CHECK(changed > 0 && changed < sent);
        DQ_EQ(rx_line(&b).extra[DQ_EXTRA_TRANSFORMED], changed);
        bed_close(&b);
        dq_template_unref(t);
    }
}

static void refusals(void) {
    bed b;
    dq_diag d = {{0}};
    dq_action three[] = {vxlan_on, vxlan_on, vxlan_on}, odd = {.kind = 9};
    dq_rule r = bed_rule(1, 5, 0);
    bed_open(&b, (bed_conf){.rx = 1});
    r.n_actions = 3;
    DQ_EQ(dq_iface_set_tx_rules(b.ifaces[0], &r, 1, three, &d), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(d.text,
              "interface port0: transmit flow 5: its actions add 150 bytes, at most 128 are possible");
    DQ_EQ(receives(b.ifaces[0], 5, 0, 1, &odd, 1, &d), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(d.text, "flow 5: action 1 is of no known kind");
    DQ_EQ(receives(b.ifaces[0], 0, 0, 1, &tag_off, 1, &d), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(d.text, "flow 0: a flow with actions needs an id other than 0");
    // What the engine refuses leaves nothing behind: the same id may come again, with other actions.
    DQ_EQ(receives(b.ifaces[0], 5, 3, 1, &tag_off, 1, &d), DQ_INVALID_PARAMETER);
    const dq_action off = vxlan_off(100);
    must_receive(b.ifaces[0], 5, &off, 1);
    sends(b.ifaces[0], 7, &vxlan_on, 1);
    bed_tap_all(&b);
    r.n_actions = 4; // the rules that there are stay
    DQ_EQ(dq_iface_set_tx_rules(b.ifaces[0], &r, 1, (dq_action[]){vxlan_on, vxlan_on, vxlan_on, tag_on}, &d),
          DQ_INVALID_PARAMETER);
    bed_stream(&b, b.tx[0][0], 10, 10, 100, 7);
    bed_until(&b, 10);
    bed_check_order(&b, 10);
    bed_close(&b);
}

// ---- rules in mid-traffic ---------------------------------------------------------------------------------

static bed *busy;
static _Atomic bool enough;

// Puts flows in the place of others: in front of the one that was there from the beginning, and away again.
static void *change_rules(void *arg) {
    const dq_action off = vxlan_off(100);
    dq_diag d;
    (void)arg;
    for (uint32_t k = 0; !atomic_load(&enough); k++) {
        dq_rule r = bed_rule(4789, 1000 + k, k % 3);
        r.order = 1 + k % 2;
        r.n_actions = 1;
        uint64_t gone = 2 - k % 2;
        DQ_EQ(dq_iface_change_rules(busy->ifaces[0], &gone, k > 0, &r, 1, &off, &d), DQ_OK);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

// Every packet comes out of its tunnel, whichever flow it met.
static void rules_replaced(void) {
    for (int m = BED_DIRECT; m < BED_MODES; m++) {
        bed b;
        pthread_t t;
        const dq_action off = vxlan_off(100);
        bed_case(__func__, (bed_mode)m);
        bed_open(&b, (bed_conf){.mode = (bed_mode)m, .rx = 3, .timeout_us = 100, .bufs = 2048});
        sends(b.ifaces[0], 7, &vxlan_on, 1);
        must_receive(b.ifaces[0], 9, &off, 1);
        bed_tap_all(&b);
        busy = &b;
        enough = false;
        DQ_EQ(pthread_create(&t, NULL, change_rules, NULL), 0);
        bed_stream(&b, b.tx[0][0], 20000, 20, 100, 7);
        bed_until(&b, 20000);
        atomic_store(&enough, true);
        pthread_join(t, NULL);
        bed_stop(&b);
        DQ_EQ(b.n, 20000);
        for (size_t k = 0; k < b.n; k++)
            DQ_CHECK(b.got[k].intact);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(through_a_tunnel);
    DQ_RUN(another_tunnel);
    DQ_RUN(frames_that_fill_buffers);
    DQ_RUN(header_split_beside_a_tunnel);
    DQ_RUN(a_tee_is_copied);
    DQ_RUN(a_packet_that_goes_round);
    DQ_RUN(a_transmission);
    DQ_RUN(rules_change_while_sending);
    DQ_RUN(refusals);
    DQ_RUN(rules_replaced);
    return dq_done();
}
