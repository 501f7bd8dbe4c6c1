// raw_queues_test.c: queues of raw packets over verbs, without a device: the test plays the device, and
// reports which completions there are. It checks what becomes of packets that were posted, at the pieces of
// frames that came, and at the queue pairs that flow rules lead to.
#include "../../bed.h"
#include "engine/ibverbs/raw.h"

#include <arpa/inet.h>
#include <errno.h>

static bed b;
static dqi_port port;
static vraw_port state;

// ---- the device -------------------------------------------------------------------------------------------

static vb_wc ready[16]; // what the completion queue has
static int n_ready;

static int poll_cq(vb_cq *cq, int n, vb_wc *out) {
    int k = n_ready;
    (void)cq;
    DQ_CHECK(n >= k);
    memcpy(out, ready, (size_t)k * sizeof *out);
    n_ready = 0;
    return k;
}

static void completes(uint64_t id, int status, uint32_t bytes) {
    ready[n_ready++] = (vb_wc){.wr_id = id, .status = status, .byte_len = bytes};
}

// A rule in the device.
typedef struct flow {
    const vb_qp *qp; // NULL: it was destroyed
    vb_flow_attr attr;
    uint8_t specs[160];
} flow;

static flow flows[16];
static uint32_t n_flows;

static vb_flow *create_flow(vb_qp *qp, vb_flow_attr *a) {
    flow *f = &flows[n_flows++];
    DQ_CHECK(a->size >= sizeof *a && a->size <= sizeof *a + sizeof f->specs);
    *f = (flow){.qp = qp, .attr = *a};
    memcpy(f->specs, a + 1, a->size - sizeof *a);
    return (vb_flow *)(void *)f;
}

static int destroy_flow(vb_flow *made) {
    flow *f = (flow *)(void *)made;
    DQ_CHECK(f->qp != NULL);
    f->qp = NULL;
    return 0;
}

static uint32_t flows_there(void) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_flows; k++)
        n += flows[k].qp != NULL;
    return n;
}

static vb_context_ex device = {
    .create_flow = create_flow, .destroy_flow = destroy_flow, .context = {.ops = {.poll_cq = poll_cq}}};
static vb_cq cq = {.context = &device.context};

static void open_bed(bed_conf c) {
    c.mode = BED_DIRECT;
    bed_open(&b, c);
    memset(&port, 0, sizeof port);
    state = (vraw_port){.calls = &device, .port_num = 2};
    port.iface = b.ifaces[0];
    port.state = &state;
    n_ready = 0;
    n_flows = 0;
}

// ---- sending ----------------------------------------------------------------------------------------------

static dq_queue queue;
static vraw_tx tx;

// Nothing was sent yet; numbers wrap around soon.
static void open_tx(void) {
    open_bed((bed_conf){0});
    memset(&queue, 0, sizeof queue);
    memset(&tx, 0, sizeof tx);
    queue.session = b.s;
    queue.iface = b.ifaces[0];
    queue.engine = &tx;
    queue.next_ns = INT64_MAX;
    tx.cq.cq = &cq;
    tx.head = tx.tail = UINT32_MAX - 1;
}

// A packet is under way, the last one of a burst, or NULL.
static void post(dq_burst *last, uint32_t bytes) {
    tx.sent[tx.tail++ % VRAW_SENDS] = (vraw_sent){.b = last, .bytes = bytes};
    dqi_gauge_add(&tx.inside, 1);
    if (last) dq_burst_ref(last);
}

static dq_burst *burst_of(uint32_t n) {
    dq_burst *made = NULL;
    DQ_EQ(bed_make(&b, b.tx[0][0], n, 100, 2000, &made), DQ_OK);
    return made;
}

// A completion stands for all packets up to its own, and the burst goes with the last of them.
static void sent_in_order(void) {
    open_tx();
    uint32_t first = tx.head;
    dq_burst *one = burst_of(3), *two = burst_of(2);
    for (uint32_t k = 0; k < 5; k++)
        post(k == 2 ? one : k == 4 ? two : NULL, 100 + k);
    DQ_EQ(vraw_held(&queue), 5);
    DQ_EQ(vraw_reap(&queue), 0);
    DQ_EQ(dqi_get(&queue.c.out), 0);
    DQ_CHECK(queue.next_ns != INT64_MAX); // it is checked again
    completes(first + 2, VB_WC_SUCCESS, 0);
    DQ_EQ(vraw_reap(&queue), 3);
    DQ_EQ(dqi_get(&queue.c.out), 3);
    DQ_EQ(dqi_get(&queue.c.out_bytes), 100 + 101 + 102);
    DQ_EQ(vraw_held(&queue), 2);
    DQ_CHECK(dqi_burst_exclusive(one) && !dqi_burst_exclusive(two));
    completes(first + 3, VB_WC_SUCCESS, 0);
    completes(first + 4, VB_WC_SUCCESS, 0);
    DQ_EQ(vraw_reap(&queue), 2);
    DQ_EQ(dqi_get(&queue.c.out), 5);
    DQ_EQ(dqi_get(&queue.c.out_bytes), 100 + 101 + 102 + 103 + 104);
    DQ_EQ(vraw_held(&queue), 0);
    DQ_CHECK(dqi_burst_exclusive(two));
    queue.next_ns = INT64_MAX;
    DQ_EQ(vraw_reap(&queue), 0);
    DQ_CHECK(queue.next_ns == INT64_MAX);
    dq_burst_unref(one);
    dq_burst_unref(two);
    bed_close(&b);
}

// A packet that failed was not sent, nor were those behind it; those in front of it were. The queue sends no
// more, and reports it by errors and drops.
static void failed(void) {
    open_tx();
    uint32_t first = tx.head;
    dq_burst *one = burst_of(4), *late = burst_of(2);
    for (uint32_t k = 0; k < 4; k++)
        post(k == 3 ? one : NULL, 100 + k);
    completes(first + 2, VB_WC_LOC_PROT_ERR, 0);
    completes(first + 3, VB_WC_WR_FLUSH_ERR, 0);
    DQ_EQ(vraw_reap(&queue), 4);
    DQ_EQ(dqi_get(&queue.c.out), 2);
    DQ_EQ(dqi_get(&queue.c.out_bytes), 100 + 101);
    DQ_EQ(dqi_get(&queue.c.dropped[DQ_DROP_SEND_ERROR]), 2);
    DQ_EQ(atomic_load(&queue.errors[0].err), EIO);
    DQ_EQ(dqi_get(&queue.errors[0].n), 2);
    DQ_EQ(vraw_held(&queue), 0);
    DQ_CHECK(dqi_burst_exclusive(one));
    DQ_CHECK(tx.broken);
    DQ_EQ(vraw_send(&queue, late, 0, 2), 2); // the burst is gone then
    DQ_EQ(dqi_get(&queue.c.dropped[DQ_DROP_SEND_ERROR]), 4);
    DQ_EQ(dqi_get(&queue.errors[0].n), 4);
    DQ_EQ(tx.head, tx.tail);
    dq_burst_unref(one);
    bed_close(&b);
}

// ---- receiving --------------------------------------------------------------------------------------------

enum { FRONT = 64, BACK = 1024, LONGEST = 1500, SLOT = 5 }; // SLOT: of the first frame

static dqi_port_queue *line = &port.queues[1];
static vraw_rx rx;
static uint32_t level[VRAW_PARTS]; // of the regions' pools, with the buffers that are posted

// n receives are posted, over so many of the bed's regions.
static void open_rx(uint32_t parts, uint32_t n) {
    open_bed((bed_conf){.rx_nseg = parts, .rx_size = {parts > 1 ? FRONT : BACK, BACK}});
    memset(&rx, 0, sizeof rx);
    rx.cq.cq = &cq;
    rx.n_parts = parts;
    rx.head = SLOT;
    rx.tail = SLOT + n;
    for (uint32_t s = 0; s < parts; s++) {
        rx.parts[s] = b.in[s];
        rx.room += b.in[s]->conf.buf_size;
        DQ_EQ(dqi_bufs_alloc(b.in[s], &rx.ids[s][SLOT], n), n);
        level[s] = dqi_region_level(b.in[s]);
    }
    rx.own_bytes = LONGEST - rx.room;
    rx.own = calloc(VRAW_DEPTH, rx.own_bytes);
    *line = (dqi_port_queue){.port = &port, .index = 1, .reader = b.rx[0][0], .state = &rx};
}

static void close_rx(void) {
    free(rx.own);
    bed_close(&b);
}

static uint8_t byte_of(uint32_t slot, uint32_t at) { return (uint8_t)(slot * 31 + at * 7 + at / 256); }

// The device scatters a frame over the places of a slot.
static void arrives(uint32_t slot, uint32_t len) {
    uint32_t at = 0;
    for (uint32_t s = 0; s < rx.n_parts; s++) {
        uint8_t *to = rx.parts[s]->base + dqi_buf_off(rx.parts[s], rx.ids[s][slot]);
        for (uint32_t k = 0; k < rx.parts[s]->conf.buf_size && at < len; k++, at++)
            to[k] = byte_of(slot, at);
    }
    for (uint32_t k = 0; at < len; k++, at++)
        rx.own[(size_t)slot * rx.own_bytes + k] = byte_of(slot, at);
    completes(slot, VB_WC_SUCCESS, len);
}

// Compares n pieces with a frame; `given`: its reader has the buffers, and returns them here.
static void check_pieces(const dqi_piece *piece, uint32_t n, uint32_t slot, uint32_t len, bool given) {
    uint32_t at = 0;
    for (uint32_t j = 0; j < n; j++) {
        DQ_EQ(piece[j].more, j + 1 < n);
        DQ_EQ(piece[j].buf, given ? rx.ids[j][slot] : DQI_NO_BUF);
        for (uint32_t k = 0; k < piece[j].len; k++, at++)
            if (piece[j].data[k] != byte_of(slot, at)) dq_failed(__FILE__, __LINE__, "another byte");
        if (given) dqi_bufs_free(b.s, &piece[j].buf, 1);
    }
    DQ_EQ(at, len);
}

// Frames over two buffers: they are given away where a frame fills the first and ends in the second; else
// they are copied, and come back, with what lies behind them.
static void split(void) {
    static const struct {
        uint32_t len, pieces;
        bool given;
    } frames[] = {{40, 1, false},
                  {FRONT, 1, false},
                  {FRONT + 1, 2, true},
                  {FRONT + BACK, 2, true},
                  {FRONT + BACK + 1, 3, false},
                  {LONGEST, 3, false}};
    enum { FRAMES = sizeof frames / sizeof *frames };
    dqi_piece out[32];
    open_rx(2, FRAMES);
    uint32_t n = 0, given = 0, want = 0;
    for (uint32_t k = 0; k < FRAMES; k++) {
        arrives(SLOT + k, frames[k].len);
        want += frames[k].pieces;
        given += frames[k].given;
    }
    DQ_EQ(vraw_read(line, out, 32), want);
    vraw_release(line);
    for (uint32_t s = 0; s < 2; s++)
        DQ_EQ(dqi_region_level(b.in[s]), level[s] + FRAMES - given);
    for (uint32_t k = 0; k < FRAMES; n += frames[k++].pieces)
        check_pieces(out + n, frames[k].pieces, SLOT + k, frames[k].len, frames[k].given);
    close_rx();
}

// Of several device queues each keeps some buffers posted: frames are copied once no more are left.
static void reserved(void) {
    dqi_piece out[32];
    open_rx(1, 4);
    rx.reserve = 2;
    for (uint32_t k = 0; k < 2; k++)
        arrives(SLOT + k, 100);
    DQ_EQ(vraw_read(line, out, 32), 2);
    vraw_release(line);
    DQ_EQ(dqi_region_level(b.in[0]), level[0] + 1);
    for (uint32_t k = 0; k < 2; k++)
        check_pieces(&out[k], 1, SLOT + k, 100, k == 0);
    dqi_bufs_free(b.s, &rx.ids[0][SLOT + 2], 2);
    close_rx();
}

// A receive that failed is not a frame, and its buffers come back. The queue's errors are counted once, for
// all that is flushed behind it.
static void receive_failed(void) {
    dqi_piece out[32];
    open_rx(2, 3);
    arrives(SLOT, 100);
    completes(SLOT + 1, VB_WC_LOC_PROT_ERR, 0);
    completes(SLOT + 2, VB_WC_WR_FLUSH_ERR, 0);
    DQ_EQ(vraw_read(line, out, 32), 2);
    vraw_release(line);
    for (uint32_t s = 0; s < 2; s++)
        DQ_EQ(dqi_region_level(b.in[s]), level[s] + 2);
    check_pieces(out, 2, SLOT, 100, true);
    DQ_EQ(atomic_load(&b.rx[0][0]->errors[0].err), EIO);
    DQ_EQ(dqi_get(&b.rx[0][0]->errors[0].n), 1);
    DQ_CHECK(rx.broken);
    close_rx();
}

// ---- flow rules -------------------------------------------------------------------------------------------

enum { QUEUES = 3 };
static const uint16_t ids[QUEUES] = {7, 3, 9}; // in no order, as a configuration may have them
static dq_iface iface;
static dq_queue queues[QUEUES];
static vraw_rx lines[QUEUES];
static vb_qp qps[QUEUES];

static void open_steering(void) {
    open_bed((bed_conf){0});
    iface = (dq_iface){.session = b.s, .n_rx = QUEUES};
    port.iface = &iface;
    port.n_queues = QUEUES - 1;
    state.rules = calloc(VRAW_FLOWS, sizeof *state.rules);
    state.started = true;
    for (uint32_t k = 0; k < QUEUES; k++) {
        queues[k].conf.id = ids[k];
        iface.rx[k] = &queues[k];
        lines[k].qp = &qps[k];
        port.queues[k].state = k < QUEUES - 1 ? &lines[k] : NULL; // the last queue has none of its own
    }
}

// A rule on a UDP port, of one version of IP.
static void check_flow(const flow *f, uint32_t qp, bool v6, uint16_t dport) {
    size_t ip = v6 ? sizeof(vb_spec_ipv6) : sizeof(vb_spec_ipv4);
    vb_spec_eth eth;
    vb_spec_ports udp;
    DQ_CHECK(f->qp == &qps[qp]);
    DQ_EQ(f->attr.type, VB_FLOW_NORMAL);
    DQ_EQ(f->attr.port, 2);
    DQ_EQ(f->attr.num_of_specs, 3);
    DQ_EQ(f->attr.size, sizeof f->attr + sizeof eth + ip + sizeof udp);
    memcpy(&eth, f->specs, sizeof eth);
    memcpy(&udp, f->specs + sizeof eth + ip, sizeof udp);
    DQ_EQ(ntohs(eth.val.type), v6 ? 0x86dd : 0x0800);
    DQ_EQ(eth.mask.type, 0xffff);
    DQ_EQ(udp.type, VB_SPEC_UDP);
    DQ_EQ(ntohs(udp.val.dst), dport);
    DQ_EQ(udp.mask.dst, 0xffff);
    DQ_EQ(udp.mask.src, 0);
}

// Rules lead to the device queues of the queues that they name by their ids; one whose queue has none is left
// to software, and what no rule takes comes to the first.
static void steered(void) {
    dq_diag d = {{0}};
    dq_rule rules[] = {bed_rule(5003, 1, 3), bed_rule(5007, 2, 7), bed_rule(5009, 3, 9)};
    open_steering();
    for (uint32_t k = 0; k < 3; k++)
        rules[k].order = k;
    DQ_EQ(vraw_steer(&port, NULL, 0, rules, 3, &d), DQ_OK);
    DQ_EQ(n_flows, 4);
    for (uint32_t k = 0; k < 4; k++)
        check_flow(&flows[k], k < 2, k % 2, k < 2 ? 5003 : 5007);
    DQ_CHECK(state.gave_up);
    DQ_EQ(vraw_steer(&port, &rules[0], 1, NULL, 0, &d), DQ_OK);
    DQ_EQ(flows_there(), 2);
    DQ_CHECK(!flows[0].qp && !flows[1].qp);
    vraw_steer_stop(&port);
    DQ_EQ(flows_there(), 0);
    n_flows = 0;
    DQ_EQ(vraw_steer_start(&port, &d), DQ_OK);
    DQ_EQ(n_flows, 3);
    for (uint32_t k = 0; k < 2; k++)
        check_flow(&flows[k], 0, k % 2, 5007);
    DQ_EQ(flows[2].attr.type, VB_FLOW_ALL_DEFAULT);
    DQ_EQ(flows[2].attr.port, 2);
    DQ_EQ(flows[2].attr.size, sizeof flows[2].attr);
    DQ_CHECK(flows[2].qp == &qps[0]);
    port.queues[QUEUES - 1].state = &lines[QUEUES - 1]; // added, behind those of the open
    rules[2].order = 7;
    DQ_EQ(vraw_steer(&port, NULL, 0, &rules[2], 1, &d), DQ_OK);
    DQ_EQ(n_flows, 5);
    for (uint32_t k = 0; k < 2; k++)
        check_flow(&flows[3 + k], QUEUES - 1, k % 2, 5009);
    vraw_steer_stop(&port);
    DQ_EQ(flows_there(), 0);
    free(state.rules);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(sent_in_order);
    DQ_RUN(failed);
    DQ_RUN(split);
    DQ_RUN(reserved);
    DQ_RUN(receive_failed);
    DQ_RUN(steered);
    return dq_done();
}
