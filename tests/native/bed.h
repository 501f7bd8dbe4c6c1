// bed.h: a loop session for tests of the core: it opens interfaces, queues and taps from a short description,
// drives them on the virtual clock, in direct or in worker mode alike, keeps a note of every packet that
// arrived, and ends with the checks that every test owes: the ledger adds up and no buffer is missing.
#ifndef BED_H
#define BED_H

#include "bed_frame.h"
#include "core/clock.h"
#include "pipeline/queue.h"
#include "pipeline/stages/dq_stages.h"

#include <time.h>

#define BED_START_NS INT64_C(1700000000000000000)
#define BED_IFACES   4
#define BED_QUEUES   8
#define BED_PATIENCE INT64_C(60000000000) // real clock: longer than this is a hang

typedef enum bed_mode { BED_VIRTUAL, BED_DIRECT, BED_WORKER, BED_MODES } bed_mode;

// What a bed is made of; 0 stands for the usual value, given in brackets.
typedef struct bed_conf {
    bed_mode mode;
    uint32_t ifaces, rx, tx;       // queues of each interface [1]
    uint32_t batch;                // [64]
    uint32_t bufs, buf_size;       // of the transmit region [4096, 1024], and of the receive regions
    uint32_t rx_bufs;              // [bufs]
    uint32_t rx_nseg;              // [1]
    uint32_t rx_size[DQ_MAX_SEGS]; // [buf_size]
    uint32_t rx_device_only;       // bit s: the CPU can't read receive region s
    uint32_t rx_meta, tx_meta;     // [256]
    uint32_t more_bufs, more_size; // of a region that no queue has [none]
    uint64_t timeout_us;           // of receive queues
    bool only_full;                // with timeout_us 0: not at once on the virtual clock either
    bool rx_worker, tx_worker;     // in direct mode: these by workers all the same
    bool isolation, eth_src;
    bool template; // frames come from a template: the number alone differs
    double pace_bps;
    uint64_t seed;
    dq_wire_conf wire;
} bed_conf;

// A packet that arrived.
typedef struct bed_got {
    uint64_t seq;
    int64_t ts, seen_ns;
    uint64_t tag;
    uint32_t flow, len;
    uint16_t dport;
    bool intact; // its bytes are those that were sent
} bed_got;

typedef struct bed {
    bed_conf conf;
    dq_session *s;
    dq_region *out, *in[DQ_MAX_SEGS], *more;
    dq_iface *ifaces[BED_IFACES];
    dq_queue *rx[BED_IFACES][BED_QUEUES], *tx[BED_IFACES][BED_QUEUES];
    dq_waiter *w;
    uint64_t seq; // of the next frame
    bed_got *got;
    size_t n, cap;
    uint64_t bursts, shared; // arrived, and how many of them read-only
    int64_t drain_ns;        // the stop's time for what is on its way
} bed;

static inline void bed_must(int err, const dq_diag *diag, const char *what) {
    if (err == DQ_OK) return;
    fprintf(stderr, "%s: set-up: %s: %s: %s\n", dq_case, what, dq_err_name(err), diag->text);
    exit(1);
}

// Names the mode in what failed checks print.
static inline void bed_case(const char *name, bed_mode mode) {
    static char text[96];
    static const char *const modes[] = {"virtual", "direct", "worker"};
    snprintf(text, sizeof text, "%s/%s", name, modes[mode]);
    dq_case = text;
}

#define BED_EACH_MODE(m)                                                                                     \
    for (bed_mode m = BED_VIRTUAL; m < BED_MODES && (bed_case(__func__, m), true); m = (bed_mode)(m + 1))

// ---- set-up -----------------------------------------------------------------------------------------------

static inline dq_region *bed_region_of(dq_session *s, dq_kind kind, const char *name, uint32_t num_bufs,
                                       uint32_t buf_size) {
    dq_diag d = {{0}};
    dq_region_conf c = {.kind = (int32_t)kind, .affinity = -1, .num_bufs = num_bufs, .buf_size = buf_size};
    dq_region *r;
    snprintf(c.name, sizeof c.name, "%s", name);
    bed_must(dq_region_add(s, &c, &r, &d), &d, name);
    return r;
}

static inline dq_region *bed_region(dq_session *s, const char *name, uint32_t num_bufs, uint32_t buf_size) {
    return bed_region_of(s, DQ_KIND_HOST, name, num_bufs, buf_size);
}

static inline dq_queue *bed_queue(bed *b, dq_iface *i, dq_dir dir, uint32_t id) {
    dq_diag d = {{0}};
    bool worker = b->conf.mode == BED_WORKER || (dir == DQ_RX ? b->conf.rx_worker : b->conf.tx_worker);
    dq_queue_conf c = {.id = id, .dir = dir, .core = -1, .batch_size = b->conf.batch, .direct = !worker};
    dq_queue *q;
    if (dir == DQ_RX && b->conf.mode == BED_VIRTUAL && b->conf.only_full) c.direct = 0;
    snprintf(c.name, sizeof c.name, "%s%u", dir == DQ_RX ? "rx" : "tx", id);
    c.n_regions = dir == DQ_RX ? b->conf.rx_nseg : 1;
    c.regions[0] = b->out;
    for (uint32_t s = 0; dir == DQ_RX && s < c.n_regions; s++)
        c.regions[s] = b->in[s];
    if (dir == DQ_RX) c.timeout_us = b->conf.timeout_us;
    if (dir == DQ_TX) c.pacing_mbps = b->conf.pace_bps / 1e6;
    c.tx_eth_src = dir == DQ_TX && b->conf.eth_src;
    bed_must(dq_queue_add(i, &c, &q, &d), &d, c.name);
    return q;
}

static inline void bed_defaults(bed_conf *c) {
    uint32_t *const with[] = {&c->ifaces, &c->rx,       &c->tx,      &c->rx_nseg, &c->batch,
                              &c->bufs,   &c->buf_size, &c->rx_meta, &c->tx_meta};
    static const uint32_t usual[] = {1, 1, 1, 1, 64, 4096, 1024, 256, 256};
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        if (*with[k] == 0) *with[k] = usual[k];
    if (c->rx_bufs == 0) c->rx_bufs = c->bufs;
    for (uint32_t s = 0; s < DQ_MAX_SEGS; s++)
        if (c->rx_size[s] == 0) c->rx_size[s] = c->buf_size;
}

// Opens the session; the test adds stages, then calls bed_start. Virtual and direct queues belong to b->w.
static inline void bed_open(bed *b, bed_conf conf) {
    dq_diag d = {{0}};
    bed_defaults(&conf);
    *b = (bed){.conf = conf, .drain_ns = 10000000000};
    dq_session_conf c = {.virtual_clock = conf.mode == BED_VIRTUAL,
                         .seed = conf.seed,
                         .start_ns = conf.mode == BED_VIRTUAL ? BED_START_NS : 0,
                         .rx_meta_buffers = conf.rx_meta,
                         .tx_meta_buffers = conf.tx_meta,
                         .wire = conf.wire};
    bed_must(dq_session_new(&c, &b->s, &d), &d, "session");
    bed_must(dq_waiter_new(&b->w, &d), &d, "waiter");
    b->out = bed_region(b->s, "out", conf.bufs, conf.buf_size);
    for (uint32_t s = 0; s < conf.rx_nseg; s++)
        b->in[s] = bed_region_of(b->s, conf.rx_device_only >> s & 1 ? DQ_KIND_DARK : DQ_KIND_HOST, "in",
                                 conf.rx_bufs, conf.rx_size[s]);
    if (conf.more_bufs > 0) b->more = bed_region(b->s, "more", conf.more_bufs, conf.more_size);
    for (uint32_t i = 0; i < conf.ifaces; i++) {
        dq_iface_conf ic = {.engine = "loop", .flow_isolation = conf.isolation};
        snprintf(ic.name, sizeof ic.name, "port%u", i);
        bed_must(dq_iface_add(b->s, &ic, &b->ifaces[i], &d), &d, ic.name);
        for (uint32_t k = 0; k < conf.tx; k++)
            b->tx[i][k] = bed_queue(b, b->ifaces[i], DQ_TX, k);
        for (uint32_t k = 0; k < conf.rx; k++)
            b->rx[i][k] = bed_queue(b, b->ifaces[i], DQ_RX, k);
    }
    bed_must(dq_session_open(b->s, &d), &d, "open");
    for (uint32_t i = 0; i < conf.ifaces; i++)
        for (uint32_t k = 0; k < BED_QUEUES; k++) {
            if (b->tx[i][k] && b->tx[i][k]->conf.direct) DQ_EQ(dq_waiter_adopt(b->w, b->tx[i][k]), DQ_OK);
            if (b->rx[i][k] && b->rx[i][k]->conf.direct) DQ_EQ(dq_waiter_adopt(b->w, b->rx[i][k]), DQ_OK);
        }
}

static inline void bed_start(bed *b) {
    dq_diag d = {{0}};
    bed_must(dq_session_start(b->s, &d), &d, "start");
}

static inline dq_pipe *bed_pipe(dq_queue *q, dq_stage *const *stages, uint32_t n) {
    dq_diag d = {{0}};
    dq_pipe *p;
    bed_must(dq_pipe_add(q, stages, n, 0, &p, &d), &d, "pipe");
    return p;
}

static inline dq_stage *bed_tap(bed *b, uint64_t tag, uint32_t depth, int policy) {
    dq_diag d = {{0}};
    dq_stage *st;
    char name[32];
    snprintf(name, sizeof name, "tap%u", (unsigned)tag);
    bed_must(dq_stage_tap(b->s, name, b->w, tag, depth, policy, 1, &st, &d), &d, name);
    return st;
}

// A tap that waits on every receive queue, its tag 100 · interface + queue; then the session starts.
static inline void bed_tap_all(bed *b) {
    for (uint32_t i = 0; i < b->conf.ifaces; i++)
        for (uint32_t k = 0; k < b->conf.rx; k++) {
            dq_stage *st = bed_tap(b, 100 * i + k, 64, DQ_POLICY_WAIT);
            bed_pipe(b->rx[i][k], &st, 1);
        }
    bed_start(b);
}

// A rule: UDP datagrams to this port go to `queue` with this id.
static inline dq_rule bed_rule(uint16_t dport, uint32_t flow_id, uint16_t queue) {
    return (dq_rule){.match = {.set = DQ_MATCH_UDP_DST, .udp_dst = {dport, dport}},
                     .flow_id = flow_id,
                     .n_queues = 1,
                     .queues = {queue}};
}

static inline int bed_change(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                             uint32_t n_add, dq_diag *d) {
    return dq_iface_change_rules(i, gone, n_gone, add, n_add, NULL, d);
}

// The first rules of an interface, asked in this order.
static inline void bed_rules(dq_iface *i, const dq_rule *rules, uint32_t n) {
    dq_diag d = {{0}};
    dq_rule ordered[8];
    for (uint32_t k = 0; k < n && k < 8; k++) {
        ordered[k] = rules[k];
        ordered[k].order = k;
    }
    bed_must(n <= 8 ? bed_change(i, NULL, 0, ordered, n, &d) : DQ_INVALID_PARAMETER, &d, "rules");
}

// ---- sending ----------------------------------------------------------------------------------------------
// A burst of n frames with the next numbers, not yet sent.
static inline int bed_make(bed *b, dq_queue *q, uint32_t n, uint32_t len, uint16_t dport, dq_burst **out) {
    int err = dq_tx_alloc(q, n, out);
    if (err != DQ_OK) return err;
    dq_view v;
    dq_burst_view(*out, &v);
    for (uint32_t i = 0; i < n; i++)
        bed_frame(bed_bytes(&v, 0, i), len, (uint16_t)(1000 + q->conf.id), dport, b->seq++);
    return dq_burst_set_len(*out, 0, -1, len);
}

// Sends n frames; DQ_OK, or why not (then nothing is sent and no number used).
static inline int bed_send(bed *b, dq_queue *q, uint32_t n, uint32_t len, uint16_t dport) {
    dq_burst *burst = NULL;
    uint64_t seq = b->seq;
    int err = bed_make(b, q, n, len, dport, &burst);
    if (err == DQ_OK && (err = dq_tx_send(q, burst)) != DQ_OK) dq_burst_unref(burst);
    if (err != DQ_OK) b->seq = seq;
    return err;
}

static inline void bed_print(const dq_line *l) {
    fprintf(stderr, "%s: line %s %s: in %" PRIu64 " out %" PRIu64 " held %" PRIu64, dq_case, l->name,
            l->queue, l->in, l->out, l->held);
    for (int r = 0; r < DQ_REASONS; r++)
        if (l->dropped[r]) fprintf(stderr, " %s %" PRIu64, dq_reasons[r].name, l->dropped[r]);
    fprintf(stderr, "\n");
}

static inline void bed_print_all(const dq_session *s) {
    dq_line lines[64];
    uint32_t n = dq_ledger(s, lines, 64);
    for (uint32_t k = 0; k < n && k < 64; k++)
        bed_print(&lines[k]);
}

// ---- receiving --------------------------------------------------------------------------------------------

// Where what stands for a device finds segment s of packet i.
static inline const uint8_t *bed_device(const bed *b, const dq_view *v, uint32_t s, uint32_t i) {
    const dq_region *r = v->device_only >> s & 1 ? dqi_off_region(b->s, v->off[s][i]) : NULL;
    return r ? r->device + (v->off[s][i] - r->offset) : bed_bytes(v, s, i);
}

// Notes the packets of a burst; the segments are read as one packet.
static inline void bed_note(bed *b, uint64_t tag, const dq_view *v) {
    uint8_t is[4096], want[4096];
    b->bursts++;
    b->shared += (v->flags & DQ_BURST_SHARED) != 0;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t len = 0;
        for (uint32_t s = 0; s < v->nseg; s++) {
            memcpy(is + len, bed_device(b, v, s, i), v->len[s][i]);
            len += v->len[s][i];
        }
        if (b->n == b->cap && !(b->got = realloc(b->got, (b->cap = 2 * b->cap + 1024) * sizeof *b->got)))
            exit(1);
        bed_got *g = &b->got[b->n++];
        *g = (bed_got){.ts = v->ts[i], .seen_ns = dq_now(b->s), .tag = tag, .flow = v->flow[i], .len = len};
        if (len < BED_MIN) continue;
        for (int k = 0; k < 8; k++)
            g->seq = g->seq << 8 | is[BED_HEAD + k];
        g->dport = (uint16_t)(is[36] << 8 | is[37]);
        bed_frame(want, len, (uint16_t)(is[34] << 8 | is[35]), g->dport, b->conf.template ? 0 : g->seq);
        if (b->conf.template) memcpy(want + BED_HEAD, is + BED_HEAD, 8);
        if (b->conf.eth_src) memcpy(want + 6, is + 6, 6);
        g->intact = memcmp(is, want, len) == 0;
    }
}

// Takes what waits in the taps; the number of events.
static inline int bed_serve(bed *b, int64_t timeout_ns) {
    dq_event ev[16];
    int n = dq_wait(b->w, timeout_ns, ev, 16);
    for (int k = 0; k < n; k++) {
        DQ_EQ(ev[k].kind, DQ_EV_BURST);
        bed_note(b, ev[k].tag, &ev[k].view);
        dq_burst_unref(ev[k].b);
    }
    return n;
}

// Virtual clock: steps until nothing is due any more, or before something later than until_ns; serves taps
// when asked.
static inline void bed_steps(bed *b, int64_t until_ns, bool serve) {
    for (;;) {
        if (serve && bed_serve(b, 0) > 0) continue;
        if (dq_step(b->s) > 0) continue;
        int64_t next = dq_next_time(b->s);
        DQ_CHECK(next > dq_now(b->s)); // else time would stand still forever
        if (next == INT64_MAX || next > until_ns) break;
        dq_advance(b->s, next);
    }
    if (until_ns != INT64_MAX) dq_advance(b->s, until_ns);
}

// Continues until `want` packets have arrived in all (virtual clock: until nothing is left to do).
static inline void bed_until(bed *b, size_t want) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    if (b->conf.mode == BED_VIRTUAL) bed_steps(b, INT64_MAX, true);
    while (b->conf.mode != BED_VIRTUAL && b->n < want && dqi_mono_ns() < end)
        bed_serve(b, 20000000);
    if (b->n >= want) return;
    fprintf(stderr, "%s: %zu packets of %zu arrived\n", dq_case, b->n, want);
    bed_print_all(b->s);
    DQ_CHECK(b->n >= want);
}

// Sends count frames in bursts of per, with as much patience as the buffers and rings need, and serves
// meanwhile.
static inline void bed_stream(bed *b, dq_queue *q, uint64_t count, uint32_t per, uint32_t len,
                              uint16_t dport) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (count > 0 && dqi_mono_ns() < end) {
        uint32_t n = count < per ? (uint32_t)count : per;
        int err = bed_send(b, q, n, len, dport);
        if (err == DQ_OK) {
            count -= n;
            continue;
        }
        DQ_CHECK(err == DQ_NO_SPACE_AVAILABLE || err == DQ_NO_FREE_BURST_BUFFERS ||
                 err == DQ_NO_FREE_PACKET_BUFFERS);
        if (b->conf.mode == BED_VIRTUAL)
            bed_steps(b, INT64_MAX, true);
        else
            bed_serve(b, 1000000);
    }
    DQ_EQ(count, 0);
}

// ---- accounts ---------------------------------------------------------------------------------------------

// The ledger line of this name, kind and queue (NULL: any).
static inline dq_line bed_line(const dq_session *s, const char *name, int kind, const char *queue) {
    static dq_line lines[256];
    uint32_t n = dq_ledger(s, lines, 256);
    for (uint32_t k = 0; k < n && k < 256; k++)
        if (lines[k].kind == kind && strcmp(lines[k].name, name) == 0 &&
            (!queue || strcmp(lines[k].queue, queue) == 0))
            return lines[k];
    fprintf(stderr, "%s: no ledger line %s\n", dq_case, name);
    exit(1);
}

static inline bool bed_adds_up(const dq_line *l, bool empty) {
    uint64_t sum = l->out + l->held;
    for (int r = 0; r < DQ_REASONS; r++)
        sum += l->dropped[r];
    return sum == l->in && (!empty || l->held == 0);
}

// in = out + held + Σ dropped on every line; empty: nothing is held either. A worker that still runs may be
// amid a burst, whose counters don't add up then: those are read again until they do.
static inline void bed_check_ledger(const dq_session *s, bool empty) {
    static dq_line lines[256];
    int64_t end = dqi_mono_ns() + (empty ? 0 : BED_PATIENCE);
    for (;;) {
        uint32_t n = dq_ledger(s, lines, 256), k = 0;
        DQ_CHECK(n <= 256);
        while (k < n && bed_adds_up(&lines[k], empty))
            k++;
        if (k == n) return;
        if (dqi_mono_ns() < end) continue;
        bed_print(&lines[k]);
        DQ_CHECK(bed_adds_up(&lines[k], empty));
        return;
    }
}

// Stops, and takes in all that still comes.
static inline void bed_stop(bed *b) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    while (dq_session_stop(b->s, b->drain_ns) > 0 && dqi_mono_ns() < end)
        while (bed_serve(b, 0) > 0) {
        }
    while (bed_serve(b, 0) > 0) {
    }
    DQ_EQ(dq_session_stop(b->s, 0), 0);
    bed_check_ledger(b->s, false);
}

// Ends the session; every account adds up and every buffer is back.
static inline void bed_close(bed *b) {
    bed_stop(b);
    dq_session_finish(b->s);
    bed_check_ledger(b->s, true);
    DQ_EQ(dq_session_close(b->s), 0);
    dq_waiter_free(b->w);
    free(b->got);
}

// The numbers 0 to n - 1 arrived once each, in order, whole, and nothing else did.
static inline void bed_check_order(const bed *b, size_t n) {
    DQ_EQ(b->n, n);
    for (size_t k = 0; k < b->n; k++) {
        if (b->got[k].seq == k && b->got[k].intact) continue;
        fprintf(stderr, "%s: packet %zu has number %" PRIu64 ", %s\n", dq_case, k, b->got[k].seq,
                b->got[k].intact ? "whole" : "broken");
        DQ_CHECK(false);
        return;
    }
}

#endif
