// rma_test.c: operations that name their memory, and queues without regions, on an engine made for it: its
// peers' memory is the session's own, and a thread of its own does the work a little later.
#include "bed_pipe.h"
#include "core/region.h"
#include "core/ring.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/connection/dq_rma.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"
#include "pipeline/stages/dq_stages.h"

#include <pthread.h>

#define DEPTH 8
#define KEY   77

// ---- the engine -------------------------------------------------------------------------------------------

typedef struct near {
    dq_rma work[DEPTH];
    _Atomic uint32_t posted, ended;
    _Atomic bool quit;
    uint64_t looks; // with no room for packets
    pthread_t thread;
} near;

static void move(const dq_rma *m) {
    uint8_t *local = m->region ? m->region->base + m->region->offset + m->offset : NULL;
    uint8_t *remote = (uint8_t *)(uintptr_t)m->remote;
    uint64_t was;
    if (m->key != KEY) {
        dq_op_lost(m->op, 1, "the key is not the peer's");
        return;
    }
    if (m->kind == DQ_RMA_WRITE && m->length > 0) memcpy(remote, local, m->length);
    if (m->kind == DQ_RMA_READ) memcpy(local, remote, m->length);
    if (m->kind == DQ_RMA_FETCH_ADD || m->kind == DQ_RMA_COMPARE_SWAP) {
        memcpy(&was, remote, 8);
        uint64_t now = m->kind == DQ_RMA_FETCH_ADD ? was + m->operand : was == m->compare ? m->operand : was;
        memcpy(remote, &now, 8);
        memcpy(local, &was, 8);
    }
    dq_op_ok(m->op, 1, m->length);
}

static void *near_thread(void *arg) {
    near *e = arg;
    while (!atomic_load(&e->quit)) {
        uint32_t k = atomic_load(&e->ended);
        if (k == atomic_load(&e->posted)) {
            sched_yield();
            continue;
        }
        dq_rma m = e->work[k % DEPTH];
        atomic_store(&e->ended, k + 1);
        move(&m);
    }
    for (uint32_t k = atomic_load(&e->ended); k < atomic_load(&e->posted); k++)
        dq_op_lost(e->work[k % DEPTH].op, 1, "the session was closed");
    return NULL;
}

static int near_open(dq_iface *i, dq_diag *diag) {
    (void)diag;
    i->engine = calloc(1, sizeof(near));
    near *e = i->engine;
    return e ? -pthread_create(&e->thread, NULL, near_thread, e) : DQ_NO_FREE_BURST_BUFFERS;
}

static void near_stop(dq_iface *i) { (void)i; }

static void near_close(dq_iface *i) {
    near *e = i->engine;
    atomic_store(&e->quit, true);
    pthread_join(e->thread, NULL);
    free(e);
    i->engine = NULL;
}

static int near_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    near *e = q->iface->engine;
    e->looks += b == NULL && room == 0;
    return 0;
}

static int near_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    (void)q, (void)b, (void)first, (void)n;
    return 0;
}

static uint32_t near_post(dq_queue *q, const dq_rma *list, uint32_t n) {
    near *e = q->iface->engine;
    uint32_t at = atomic_load(&e->posted), room = DEPTH - (at - atomic_load(&e->ended));
    if (n > room) n = room;
    for (uint32_t k = 0; k < n; k++)
        e->work[(at + k) % DEPTH] = list[k];
    atomic_store(&e->posted, at + n);
    return n;
}

static const dqi_rma_ops near_rma = {.post = near_post};
static const dqi_engine_ops near_ops = {
    .name = "near",
    .payload = true,
    .no_regions = true,
    .virtual_clock = true,
    .open = near_open,
    .stop = near_stop,
    .close = near_close,
    .rx = near_rx,
    .tx = near_tx,
    .rma = &near_rma,
};

// ---- a session of it --------------------------------------------------------------------------------------

typedef struct rig {
    dq_session *s;
    dq_iface *i;
    dq_queue *rx, *tx;
    dq_region *here, *there;
    dq_waiter *w;
    uint32_t conn;
} rig;

static dq_queue *bare_queue(rig *r, dq_dir dir) {
    dq_diag d = {{0}};
    dq_queue *q;
    dq_queue_conf c = {.dir = dir, .core = -1, .batch_size = 4, .direct = true};
    snprintf(c.name, sizeof c.name, "%s", dir == DQ_RX ? "rx" : "tx");
    bed_must(dq_queue_add(r->i, &c, &q, &d), &d, c.name);
    return q;
}

static void rig_open(rig *r) {
    dq_diag d = {{0}};
    dq_session_conf c = {
        .virtual_clock = 1, .start_ns = BED_START_NS, .rx_meta_buffers = 4, .tx_meta_buffers = 4};
    dq_iface_conf ic = {.name = "port", .engine = "loop"};
    *r = (rig){0};
    bed_must(dq_session_new(&c, &r->s, &d), &d, "session");
    bed_must(dq_waiter_new(&r->w, &d), &d, "waiter");
    r->here = bed_region(r->s, "here", 16, 4096);
    r->there = bed_region(r->s, "there", 16, 4096);
    bed_must(dq_iface_add(r->s, &ic, &r->i, &d), &d, "port");
    r->i->ops = &near_ops;
    r->rx = bare_queue(r, DQ_RX);
    r->tx = bare_queue(r, DQ_TX);
    dq_waiter_adopt(r->w, r->rx);
    dq_waiter_adopt(r->w, r->tx);
    bed_must(dq_session_open(r->s, &d), &d, "open");
    r->conn = r->i->index << DQI_CONN_ID_BITS | 5;
}

static void rig_close(rig *r) {
    DQ_EQ(dq_session_close(r->s), 0);
    dq_waiter_free(r->w);
}

static uint8_t *bytes_of(const dq_region *r, uint64_t at) { return r->base + r->offset + at; }

static dq_rma of_kind(const rig *r, dq_rma_kind kind, uint64_t at, uint32_t length, uint64_t to) {
    return (dq_rma){.kind = kind,
                    .conn = r->conn,
                    .region = r->here,
                    .offset = at,
                    .length = length,
                    .remote = (uint64_t)(uintptr_t)bytes_of(r->there, to),
                    .key = KEY};
}

// Waits for the op's end, as a task does.
static dq_op_state ended(const rig *r, dq_op *op) {
    dq_event ev;
    dq_op_state st;
    DQ_EQ(dq_op_watch(op, r->w, 9), DQ_OK);
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    int n = 0;
    while (n == 0 && dqi_mono_ns() < end)
        n = dq_wait(r->w, 0, &ev, 1);
    DQ_EQ(n, 1);
    DQ_EQ(ev.kind, DQ_EV_OP);
    dq_op_read(op, &st);
    DQ_CHECK(st.done);
    return st;
}

// ---- what it does -----------------------------------------------------------------------------------------

// More than the queue takes at a time; every one ends once, and in order.
static void an_array(void) {
    rig r;
    dq_diag d = {{0}};
    dq_op *op;
    rig_open(&r);
    DQ_EQ(dq_session_start(r.s, &d), DQ_OK);
    DQ_EQ(dq_op_new(104, &op), DQ_OK);
    dq_rma list[104];
    for (uint32_t k = 0; k < 100; k++) {
        memset(bytes_of(r.here, 64 * k), (int)k, 64);
        list[k] = of_kind(&r, DQ_RMA_WRITE, 64 * k, 64, 64 * (99 - k));
    }
    uint64_t seven = 7;
    memcpy(bytes_of(r.there, 40000), &seven, 8);
    list[100] = of_kind(&r, DQ_RMA_FETCH_ADD, 32768, 8, 40000);
    list[100].operand = 5;
    list[101] = of_kind(&r, DQ_RMA_COMPARE_SWAP, 32776, 8, 40000);
    list[101].compare = 12, list[101].operand = 1000;
    list[102] = of_kind(&r, DQ_RMA_READ, 32784, 8, 40000);
    list[103] = (dq_rma){.kind = DQ_RMA_WRITE, .conn = r.conn, .imm = 3, .has_imm = 1, .key = KEY};
    uint32_t done = 0, calls = 0, begun;
    for (int k = 0; k < 104; k++)
        list[k].op = op;
    for (; done < 104; done += begun, calls++)
        DQ_EQ(dq_rma_post(r.tx, list + done, 104 - done, &begun, &d), DQ_OK);
    DQ_CHECK(calls >= 104 / DEPTH);
    dq_op_state st = ended(&r, op);
    DQ_EQ(st.completed, 104);
    DQ_EQ(st.bytes, 100 * 64 + 3 * 8);
    for (uint32_t k = 0; k < 100; k++)
        DQ_EQ(bytes_of(r.there, 64 * k)[63], 99 - k);
    uint64_t got[3], want[3] = {7, 12, 1000};
    memcpy(got, bytes_of(r.here, 32768), sizeof got);
    DQ_EQ(memcmp(got, want, sizeof got), 0);
    dq_op_free(op);
    rig_close(&r);
}

static void failures(void) {
    rig r;
    dq_diag d = {{0}};
    dq_op *op;
    char text[64];
    uint32_t begun;
    rig_open(&r);
    DQ_EQ(dq_session_start(r.s, &d), DQ_OK);
    DQ_EQ(dq_op_new(2, &op), DQ_OK);
    dq_rma list[] = {of_kind(&r, DQ_RMA_WRITE, 0, 64, 0), of_kind(&r, DQ_RMA_WRITE, 0, 64, 0)};
    list[1].key = KEY + 1;
    list[0].op = list[1].op = op;
    DQ_EQ(dq_rma_post(r.tx, list, 2, &begun, &d), DQ_OK);
    DQ_EQ(begun, 2);
    dq_op_state st = ended(&r, op);
    DQ_EQ(st.completed, 1);
    DQ_EQ(st.failed, 1);
    dq_op_error(op, text, sizeof text);
    DQ_EQ(strcmp(text, "the key is not the peer's"), 0);
    dq_op_free(op);
    rig_close(&r);
}

// Nothing of a list with an error begins, and the error is named.
static void refusals(void) {
    rig r, other;
    dq_diag d = {{0}};
    uint32_t begun;
    rig_open(&r);
    rig_open(&other);
    dq_rma good = of_kind(&r, DQ_RMA_WRITE, 0, 64, 0);
    DQ_EQ(dq_rma_post(r.tx, &good, 1, &begun, &d), DQ_NOT_READY);
    DQ_CHECK(strstr(d.text, "queue tx: its session does not run") != NULL);
    DQ_EQ(dq_session_start(r.s, &d), DQ_OK);
    uint64_t size = dqi_region_bytes(r.here);
    const struct {
        dq_rma m;
        const char *words;
    } bad[] = {
        {{.kind = DQ_RMA_KINDS, .conn = r.conn}, "there is no such kind"},
        {{.kind = -1, .conn = r.conn}, "there is no such kind"},
        {{.kind = DQ_RMA_SEND, .conn = 2u << DQI_CONN_ID_BITS}, "is none of port"},
        {{.kind = DQ_RMA_SEND, .conn = r.conn, .length = 1}, "it names no region"},
        {{.kind = DQ_RMA_SEND, .conn = r.conn, .region = other.here, .length = 1}, "another session"},
        {{.kind = DQ_RMA_SEND, .conn = r.conn, .region = r.here, .offset = size - 3, .length = 4},
         "beyond region here"},
        {{.kind = DQ_RMA_SEND, .conn = r.conn, .region = r.here, .offset = UINT64_MAX, .length = 4},
         "beyond region here"},
        {{.kind = DQ_RMA_READ, .conn = r.conn, .region = r.here}, "it moves no byte"},
        {{.kind = DQ_RMA_READ, .conn = r.conn, .region = r.here, .length = 1, .has_imm = 1},
         "an immediate goes with"},
        {{.kind = DQ_RMA_FETCH_ADD, .conn = r.conn, .region = r.here, .length = 4}, "an atomic has 8 bytes"},
        {{.kind = DQ_RMA_COMPARE_SWAP, .conn = r.conn, .region = r.here, .length = 8, .remote = 4},
         "an atomic has 8 bytes"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        dq_rma list[] = {good, bad[k].m};
        char at[32];
        snprintf(at, sizeof at, "operation 1: ");
        DQ_EQ(dq_rma_post(r.tx, list, 2, &begun, &d), DQ_INVALID_PARAMETER);
        DQ_EQ(begun, 0);
        if (!strstr(d.text, bad[k].words) || !strstr(d.text, at)) {
            fprintf(stderr, "%s: lacks %s\n", d.text, bad[k].words);
            DQ_CHECK(false);
        }
    }
    DQ_EQ(atomic_load(&((near *)r.i->engine)->posted), 0);
    rig_close(&r);
    rig_close(&other);
}

// What is open at the close ends with it.
static void close_ends(void) {
    for (int k = 0; k < 200; k++) {
        rig r;
        dq_diag d = {{0}};
        dq_op *op;
        uint32_t begun;
        rig_open(&r);
        DQ_EQ(dq_session_start(r.s, &d), DQ_OK);
        DQ_EQ(dq_op_new(DEPTH, &op), DQ_OK);
        dq_rma list[DEPTH];
        for (uint32_t n = 0; n < DEPTH; n++) {
            list[n] = of_kind(&r, DQ_RMA_WRITE, 0, 64, 0);
            list[n].op = op;
        }
        DQ_EQ(dq_rma_post(r.tx, list, DEPTH, &begun, &d), DQ_OK);
        DQ_EQ(begun, DEPTH);
        rig_close(&r);
        dq_op_state st;
        dq_op_read(op, &st);
        DQ_CHECK(st.done);
        DQ_EQ(st.completed + st.failed, DEPTH);
        dq_op_free(op);
    }
}

// A queue without regions moves no packets: its engine sees to its connections.
static void no_packets(void) {
    rig r;
    dq_diag d = {{0}};
    dq_burst *b;
    rig_open(&r);
    DQ_EQ(dq_session_start(r.s, &d), DQ_OK);
    for (int k = 0; k < 10; k++)
        dq_step(r.s);
    DQ_CHECK(((near *)r.i->engine)->looks >= 10);
    DQ_EQ(dq_tx_alloc(r.tx, 1, &b), DQ_NOT_SUPPORTED);
    DQ_EQ(bed_line(r.s, "port", DQ_LINE_TX, NULL).in, 0);
    dq_stage *st;
    DQ_EQ(dq_stage_count(r.s, "count", &st, &d), DQ_OK);
    bed_pipe(r.rx, &st, 1);
    dq_step(r.s);
    DQ_EQ(dq_session_stop(r.s, 0), 0);
    dq_session_finish(r.s);
    bed_check_ledger(r.s, true);
    rig_close(&r);
}

// Other engines need regions, and have no such operations.
static void other_engines(void) {
    bed b;
    dq_diag d = {{0}};
    uint32_t begun;
    bed_open(&b, (bed_conf){0});
    bed_start(&b);
    dq_rma m = {.kind = DQ_RMA_SEND};
    DQ_EQ(dq_rma_post(b.tx[0][0], &m, 1, &begun, &d), DQ_NOT_SUPPORTED);
    DQ_CHECK(strstr(d.text, "engine loop has no operations") != NULL);
    bed_close(&b);
    dq_session *s;
    dq_session_conf c = {.virtual_clock = 1, .rx_meta_buffers = 4, .tx_meta_buffers = 4};
    dq_iface_conf ic = {.name = "port", .engine = "loop"};
    dq_queue_conf qc = {.name = "bare", .dir = DQ_RX, .batch_size = 4};
    dq_iface *i;
    dq_queue *q;
    DQ_EQ(dq_session_new(&c, &s, &d), DQ_OK);
    DQ_EQ(dq_iface_add(s, &ic, &i, &d), DQ_OK);
    DQ_EQ(dq_queue_add(i, &qc, &q, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "queue bare: engine loop needs memory regions") != NULL);
    DQ_EQ(dq_session_close(s), 0);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(an_array);
    DQ_RUN(failures);
    DQ_RUN(refusals);
    DQ_RUN(close_ends);
    DQ_RUN(no_packets);
    DQ_RUN(other_engines);
    return dq_done();
}
