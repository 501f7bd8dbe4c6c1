// context.c: contexts: the memory block with the layout of gpunetio/device/gn_ring.h, regions, and lifecycle.
//
// A context lives as long as its caller or one of its stages, which end with the session; the memory of a
// kernel that never ends is kept as long as the process.
#include "gpunetio/host/context.h"
#include "compute/compute.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/memory.h"
#include "cuda/resident.h"
#include "gpunetio/host/tx_remote.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/session.h"
#include "pipeline/stage_queue.h"
#include "writer/dq_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_NS   200000 // after work a ring is polled continuously for this time,
#define LOOK_PART 8      // then at intervals of this fraction of its idle time,
#define LOOK_NS   500000 // but at least this often

int dqi_gn_look_again(dqi_gn_look *l, dq_stage *st, int worked) {
    int64_t now = dq_now(st->session);
    if (worked || l->worked_ns == 0) l->worked_ns = now;
    int64_t idle = now - l->worked_ns, nap = idle / LOOK_PART;
    st->next_ns = idle < BUSY_NS ? 0 : now + (nap < LOOK_NS ? nap : LOOK_NS);
    return worked;
}

// ---- checks -----------------------------------------------------------------------------------------------

static int refuse(dq_diag *diag, const dq_gn_conf *c, const char *ring, uint32_t k, const char *why) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "kernel %s: %s ring %u: %s", c->name, ring, k + 1, why);
}

static int check_queue(const dq_session *s, const dq_gn_conf *c, const char *ring, uint32_t k,
                       const dq_queue *q, int32_t dir, dq_diag *diag) {
    const char *writes = dqi_tx_writes(q);
    char why[320];
    if (q->session != s)
        snprintf(why, sizeof why, "queue %s is of another session", q->conf.name);
    else if (q->conf.dir != dir)
        snprintf(why, sizeof why, "queue %s is not a %s queue", q->conf.name,
                 dir == DQ_TX ? "transmit" : "receive");
    else if (dir == DQ_TX && writes)
        snprintf(why, sizeof why,
                 "queue %s writes %s, and these are the kernel's memory; "
                 "hint: the kernel writes it, or another queue",
                 q->conf.name, writes);
    else
        return DQ_OK;
    return refuse(diag, c, ring, k, why);
}

static const uint32_t one_sided = 1u << GN_OP_PUT | 1u << GN_OP_GET | 1u << GN_OP_ADD | 1u << GN_OP_CAS;

static int check_ops(const dq_gn_conf *c, uint32_t k, dq_diag *diag) {
    const dqi_engine_ops *ops = c->tx[k]->iface->ops;
    char why[320];
    if (c->conn && !(ops->rma && dqi_conn_is_of(c->conn, c->tx[k]->iface->index)))
        snprintf(why, sizeof why, "queue %s: conn is not a connection of interface %s with a peer's memory",
                 c->tx[k]->conf.name, c->tx[k]->iface->conf.name);
    else if (c->conn && !dqi_gn_remote_fits(c->tx[k]))
        snprintf(why, sizeof why,
                 "queue %s: its first region needs buffers of 80 bytes or more that the CPU can access, for "
                 "inline data of puts and results of atomics",
                 c->tx[k]->conf.name);
    else if (!(c->ops & one_sided) || c->conn || strcmp(ops->name, "loop") == 0)
        return DQ_OK;
    else if (ops->rma)
        snprintf(why, sizeof why,
                 "queue %s: put, get and add over engine %s go to what the peer of a connection lends; hint: "
                 "conn = c",
                 c->tx[k]->conf.name, ops->name);
    else
        snprintf(why, sizeof why,
                 "queue %s carries %s (engine %s), and put, get and add need a peer's memory; hint: ops = { "
                 "\"send\" }",
                 c->tx[k]->conf.name, ops->payload ? "datagrams or streams" : "frames", ops->name);
    return refuse(diag, c, "transmit", k, why);
}

// Rings that accept file writes require writers, and vice versa.
static int check_writers(const dq_session *s, const dq_gn_conf *c, dq_diag *diag) {
    bool takes = c->ops >> GN_OP_FILE & 1;
    if (takes != (c->n_writers > 0))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "kernel %s: %s", c->name,
                        takes ? "its rings take file writes, and it has no writer; hint: writers = { w }"
                              : "it has writers, and its rings take no file writes; hint: rings = { ops = { "
                                "\"file\" } }");
    for (uint32_t k = 0; k < c->n_writers; k++)
        if (c->writers[k]->session != s)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "kernel %s: writer %s is of another session", c->name,
                            c->writers[k]->name);
    return DQ_OK;
}

static int check(const dq_session *s, const dq_gn_conf *c, dq_diag *diag) {
    if (dqi_virtual(s))
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "kernel %s: a persistent kernel runs in real time, and the session's clock is virtual; "
            "hint: loopback = { mode = \"sw\", clock = \"real\" }",
            c->name);
    int err = check_writers(s, c, diag);
    for (uint32_t k = 0; k < c->n_tx && err == DQ_OK; k++) {
        err = check_queue(s, c, "transmit", k, c->tx[k], DQ_TX, diag);
        if (err == DQ_OK) err = check_ops(c, k, diag);
    }
    for (uint32_t k = 0; k < c->n_rx && err == DQ_OK; k++)
        err = check_queue(s, c, "receive", k, c->rx[k], DQ_RX, diag);
    return err;
}

// ---- regions ----------------------------------------------------------------------------------------------

uint32_t dqi_gn_row(const dq_gn *g, const dq_region *r) {
    for (uint32_t k = 0; r && k < g->n_regions; k++)
        if (g->bound[k] == r) return k;
    return UINT32_MAX;
}

int dq_gn_region(const dq_gn *g, const dq_region *r) { return (int)dqi_gn_row(g, r); }

uint64_t dq_gn_object_at(const dq_gn *g, uint32_t k) {
    const gn_context *p = (const gn_context *)(const void *)g->block;
    return (uintptr_t)g->block + p->objects + k * sizeof(gn_object);
}

uint64_t dq_gn_abort_at(const dq_gn *g) { return (uintptr_t)&g->proxy->abort; }

uint64_t dq_gn_base(const dq_gn *g, uint32_t row) { return g->regions[row].base; }

uint32_t dq_gn_peer(const dq_gn *g, uint32_t k) { return g->n_regions - g->n_peers + k; }

static void add_region(dq_gn *g, dq_region *r, uint32_t rights) {
    uint32_t k = dqi_gn_row(g, r);
    if (k == UINT32_MAX) {
        k = g->n_regions++;
        g->bound[k] = r;
    }
    g->regions[k].rights |= rights;
}

static void add_queue(dq_gn *g, const dq_queue *q) {
    for (uint32_t k = 0; k < q->conf.n_regions; k++)
        add_region(g, q->conf.regions[k], GN_READ | GN_WRITE);
}

// With the loop engine, which passes buffers by reference, packets may be in senders' buffers: adds regions
// like the queue's.
static void add_like(dq_gn *g, const dq_queue *q) {
    for (uint32_t k = 0; k < g->session->core.n_regions; k++) {
        dq_region *r = g->session->core.regions[k];
        bool like = false;
        for (uint32_t s = 0; s < q->conf.n_regions; s++)
            like = like || (q->conf.regions[s]->conf.kind == r->conf.kind &&
                            q->conf.regions[s]->conf.buf_size == r->conf.buf_size);
        if (like && g->n_regions < DQI_GN_ROWS) add_region(g, r, GN_READ | GN_WRITE);
    }
}

static gn_region row_of(const dq_gn *g, uint32_t k) {
    const dq_region *r = g->bound[k];
    const uint8_t *at = r->cpu ? g->session->core.base + r->offset : r->device;
    return (gn_region){.base = (uintptr_t)at,
                       .bytes = dqi_region_bytes(r),
                       .stride = r->stride,
                       .rights = g->regions[k].rights};
}

// Regions lent by a peer have no local address.
static void add_peers(dq_gn *g, const dq_gn_conf *c) {
    g->conn = c->conn;
    for (; g->n_peers < c->n_peers && g->n_regions < DQI_GN_ROWS; g->n_peers++) {
        const dq_remote *p = &c->peers[g->n_peers];
        g->peers[g->n_peers] = *p;
        g->regions[g->n_regions++] =
            (gn_region){.bytes = p->bytes,
                        .rights = GN_REMOTE | (p->access & DQ_ACCESS_READ ? GN_READ : 0u) |
                                  (p->access & DQ_ACCESS_WRITE ? GN_WRITE | GN_ADD : 0u)};
    }
}

static int add_regions(dq_gn *g, const dq_gn_conf *c, dq_diag *diag) {
    for (uint32_t k = 0; k < c->n_tx; k++)
        add_queue(g, c->tx[k]);
    for (uint32_t k = 0; k < c->n_rx; k++)
        add_queue(g, c->rx[k]);
    for (uint32_t k = 0; k < c->n_regions; k++)
        add_region(g, c->regions[k], GN_READ | GN_WRITE | GN_ADD);
    for (uint32_t k = 0; k < c->n_remote; k++)
        add_region(g, c->remote[k], GN_READ | GN_WRITE | GN_ADD | GN_REMOTE);
    for (uint32_t k = 0; k < c->n_rx; k++)
        if (strcmp(c->rx[k]->iface->ops->name, "loop") == 0) add_like(g, c->rx[k]);
    for (uint32_t k = 0; k < g->n_regions; k++) {
        const dq_region *r = g->bound[k];
        if (r->session != g->session)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: region %s is of another session", g->what,
                            r->conf.name);
        if (!r->cpu && !(g->gpu && r->gpu == g->gpu))
            return dqi_fail(diag, DQ_NOT_SUPPORTED,
                            "%s: it runs on %s, out of whose reach region %s lies; hint: kind = "
                            "\"host_pinned\"",
                            g->what, g->gpu ? "another GPU" : "the host", r->conf.name);
        g->regions[k] = row_of(g, k);
    }
    add_peers(g, c);
    return DQ_OK;
}

// Prepares writers for each of the regions; otherwise the first write would allocate memory.
static int reach_regions(const dq_gn *g, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t w = 0; w < g->conf.n_writers && err == DQ_OK; w++)
        for (uint32_t k = 0; k < g->n_regions - g->n_peers && err == DQ_OK; k++)
            if (!g->bound[k]->cpu) err = dq_writer_reach(g->conf.writers[w], &g->bound[k], 1, diag);
    return err;
}

// ---- choice of the process --------------------------------------------------------------------------------

// A GPU is time-sliced between processes, in slices of milliseconds: the program's launches would wait for
// it, and so would a second such kernel. So a kernel on a GPU gets its own process only if the program does
// no other work there.
static int choose_process(dq_gn *g, dq_diag *diag) {
    const char *why = !g->gpu                     ? NULL
                      : dqi_gpu_users(g->gpu) > 1 ? "other kernels or stages of it work on"
                      : !g->gpu->info.exports     ? "no other process can have memory of"
                      : dqi_shared_file() < 0     ? "ulimit -f lets no other process share memory with"
                                                  : NULL;
    g->apart = !why;
    if (g->apart) return DQ_OK;
    dqi_note(g->session,
             "%s runs in the program's own process, as %s GPU %d: it can't be killed, and what it traps on "
             "ends the program's work there",
             g->what, why, g->gpu->info.number);
    return dqi_cuda_use(g->session, g->gpu->info.number, g->what, diag) ? DQ_OK : DQ_NOT_SUPPORTED;
}

// ---- block ------------------------------------------------------------------------------------------------

// Whether the k-th transmit ring has entries in mlx5's format.
static bool is_mlx5(const dq_gn_conf *conf, uint32_t k) {
    for (uint32_t i = 0; i < conf->n_objects; i++)
        if (conf->objects[i].tx == k + 1 && conf->objects[i].mlx5) return true;
    return false;
}

// Begins the queue of such a ring; what it keeps of each entry is allocated with its stage.
static gn_mlx5_queue mlx5_of(const gn_context *p, const gn_tx_row *r, gn_mlx5_pending *of, uint32_t k) {
    return (gn_mlx5_queue){.completions = gn_at(p, r->cq),
                           .record = gn_at(p, r->record),
                           .rows = gn_at(p, p->regions),
                           .of = of,
                           .number = k + 1,
                           .log2 = r->log2,
                           .first = r->first,
                           .completed = r->first};
}

// Copies the data needed from the rows, which the kernel may overwrite from now on.
static void copy_rows(dq_gn *g, const dq_gn_conf *conf) {
    gn_context *p = (gn_context *)(void *)g->block;
    const gn_tx_row *tx = gn_at(p, p->tx);
    const gn_rx_row *rx = gn_at(p, p->rx);
    const gn_sem_row *sem = gn_at(p, p->sems);
    for (uint32_t k = 0; k < conf->n_tx; k++) {
        dqi_gn_tx *t = &g->tx[k];
        t->slots = gn_at(p, tx[k].slots);
        t->state = gn_at(p, tx[k].source);
        t->posted = gn_at(p, tx[k].posted);
        t->log2 = tx[k].log2;
        t->ops = tx[k].ops;
        if (tx[k].cq) t->mlx5 = mlx5_of(p, &tx[k], t->mlx5.of, k);
    }
    for (uint32_t k = 0; k < conf->n_rx; k++) {
        dqi_gn_rx *r = &g->rx[k];
        r->slots = gn_at(p, rx[k].slots);
        r->state = gn_at(p, rx[k].source);
        r->released = gn_at(p, rx[k].released);
        r->local = gn_at(p, rx[k].local);
        r->log2 = rx[k].log2;
        r->head = rx[k].first;
    }
    for (uint32_t k = 0; k < conf->n_sems; k++)
        g->sems[k] = (dqi_gn_sem){.producer = gn_at(p, sem[k].producer),
                                  .consumer = gn_at(p, sem[k].consumer),
                                  .items = gn_at(p, sem[k].items),
                                  .log2 = sem[k].log2,
                                  .taken = conf->first,
                                  .done = conf->first};
    g->n_sems = conf->n_sems;
    g->proxy = gn_at(p, p->proxy_source);
    g->kernel = gn_at(p, p->kernel);
}

static int make_block(dq_gn *g, const gn_context_conf *pc, dq_diag *diag) {
    int err = gn_context_check(g->what, pc, diag);
    if (err != DQ_OK) return err;
    g->bytes = gn_context_bytes(pc);
    if (g->bytes > DQ_GN_BLOCK)
        return dqi_fail(
            diag, DQ_NO_SPACE_AVAILABLE,
            "%s: its rings take %zu KiB of pinned memory, and a context has %llu at most; hint: fewer "
            "slots",
            g->what, g->bytes >> 10, (unsigned long long)(DQ_GN_BLOCK >> 10));
    return dqi_shared_new(g->apart ? NULL : g->gpu, &g->bytes, &g->block, g->what, diag);
}

// Converts the configured objects. INVALID_PARAMETER: an object of a ring or region that the kernel lacks.
static int make_objects(const dq_gn *g, gn_object_conf *out, dq_diag *diag) {
    for (uint32_t k = 0; k < g->conf.n_objects; k++) {
        const dq_gn_object *o = &g->conf.objects[k];
        uint32_t row = o->region ? dqi_gn_row(g, o->region) : dq_gn_peer(g, o->peer);
        if (o->tx > g->conf.n_tx || o->rx > g->conf.n_rx)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: %s ring %u: it has %u", g->what,
                            o->tx > g->conf.n_tx ? "transmit" : "receive",
                            o->tx > g->conf.n_tx ? o->tx : o->rx,
                            o->tx > g->conf.n_tx ? g->conf.n_tx : g->conf.n_rx);
        if (o->tx && o->mlx5 != is_mlx5(&g->conf, o->tx - 1))
            return dqi_fail(diag, DQ_INVALID_PARAMETER,
                            "%s: transmit ring %u is an mlx5 queue in one argument and not in another; hint: "
                            "a ring for each",
                            g->what, o->tx);
        if (o->kind == GN_OBJECT_BUFFERS && row >= g->n_regions)
            return dqi_fail(diag, DQ_INVALID_PARAMETER,
                            "%s: memory region %s was not given to it; hint: regions = { \"%s\" }", g->what,
                            o->region->conf.name, o->region->conf.name);
        out[k] = (gn_object_conf){.kind = o->kind,
                                  .tx = o->tx,
                                  .rx = o->rx,
                                  .place = gn_place(row, o->offset),
                                  .bytes = o->bytes,
                                  .count = o->count};
    }
    return DQ_OK;
}

int dqi_gn_write_block(dq_gn *g, dq_diag *diag) {
    const dq_gn_conf *conf = &g->conf;
    gn_object_conf objects[DQ_GN_OBJECTS];
    gn_ring_conf tx[DQ_GN_RINGS], rx[DQ_GN_RINGS], sems[DQ_GN_SEMS];
    for (uint32_t k = 0; k < DQ_GN_SEMS; k++) {
        sems[k] = (gn_ring_conf){.slots = conf->sem_slots, .first = conf->first};
        if (k >= DQ_GN_RINGS) continue;
        tx[k] = (gn_ring_conf){.slots = conf->tx_slots,
                               .ops = conf->ops | 1u << GN_OP_NOP,
                               .queue = k,
                               .first = atomic_load(&g->tx[k].accepted),
                               .mlx5 = is_mlx5(conf, k)};
        rx[k] = (gn_ring_conf){.slots = conf->rx_slots, .queue = k, .first = atomic_load(&g->rx[k].filled)};
        rx[k].single = k < conf->n_rx && conf->rx[k]->conf.n_regions == 1;
    }
    const gn_context_conf pc = {.tx = tx,
                                .rx = rx,
                                .sems = sems,
                                .n_tx = conf->n_tx,
                                .n_rx = conf->n_rx,
                                .n_sems = conf->n_sems,
                                .regions = g->regions,
                                .n_regions = g->n_regions,
                                .objects = objects,
                                .n_objects = conf->n_objects,
                                .limit_ns = conf->limit_ns,
                                .exits = conf->exits,
                                .start_ns = (uint64_t)dq_start_ns(g->session),
                                .epoch = 1};
    int err = make_objects(g, objects, diag);
    if (err == DQ_OK && !g->block) err = make_block(g, &pc, diag);
    if (err != DQ_OK) return err;
    gn_context_make(g->block, &pc);
    copy_rows(g, conf);
    return DQ_OK;
}

// ---- lifecycle --------------------------------------------------------------------------------------------

void dqi_gn_unref(dq_gn *g) {
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1) return;
    if (g->run && !g->apart && !dq_gn_ended(g)) return; // a kernel that never ends owns all of it
    dqi_gn_run_free(g->run);
    dqi_gpu_free_memory(g->gpu, g->lines.at);
    dqi_shared_free(g->apart ? NULL : g->gpu, g->block, g->bytes);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

void dq_gn_release(dq_gn *g) { dqi_gn_unref(g); }

static void ring_name(const dq_gn *g, const char *kind, uint32_t k, uint32_t n, char *out) {
    if (n == 1)
        snprintf(out, DQ_NAME_LEN, "%.40s.%s", g->name, kind);
    else
        snprintf(out, DQ_NAME_LEN, "%.40s.%s%u", g->name, kind, k + 1);
}

static int make_stages(dq_gn *g, const dq_gn_conf *conf, dq_stage **out_rx, dq_diag *diag) {
    char name[DQ_NAME_LEN];
    int err = DQ_OK;
    for (uint32_t k = 0; k < conf->n_tx && err == DQ_OK; k++) {
        dqi_gn_tx *t = &g->tx[k];
        t->gn = g;
        t->queue = conf->tx[k];
        ring_name(g, "tx", k, conf->n_tx, name);
        err = dqi_gn_tx_open(t, g->session, name, diag);
        if (err == DQ_OK) g->n_tx++;
    }
    for (uint32_t k = 0; k < conf->n_rx && err == DQ_OK; k++) {
        dqi_gn_rx *r = &g->rx[k];
        r->gn = g;
        r->queue = conf->rx[k];
        r->policy = conf->policy;
        for (uint32_t i = 0; i < r->queue->conf.n_regions; i++)
            r->region[i] = dqi_gn_row(g, r->queue->conf.regions[i]);
        ring_name(g, "rx", k, conf->n_rx, name);
        err = dqi_gn_rx_open(r, g->session, name, diag);
        if (err == DQ_OK) out_rx[g->n_rx++] = r->stage;
    }
    return err;
}

int dq_gn_open(dq_session *s, const dq_gn_conf *conf, dq_gn **out, dq_stage **out_rx, dq_diag *diag) {
    int err = check(s, conf, diag);
    if (err != DQ_OK) return err;
    dq_gn *g = calloc(1, sizeof *g);
    if (!g) return dqi_fail(diag, DQ_ESYS - ENOMEM, "kernel %s: no memory", conf->name);
    atomic_init(&g->refs, 1);
    pthread_mutex_init(&g->lock, NULL);
    g->session = s;
    g->conf = *conf;
    g->conf.name = NULL;
    for (uint32_t k = 0; k < DQ_GN_RINGS; k++) {
        atomic_init(&g->tx[k].accepted, conf->first);
        atomic_init(&g->tx[k].completed, conf->first);
        atomic_init(&g->rx[k].filled, conf->first);
    }
    snprintf(g->name, sizeof g->name, "%s", conf->name);
    snprintf(g->what, sizeof g->what, "kernel %s", conf->name);
    if (conf->gpu != DQ_HOST_GPU && !(g->gpu = dqi_gpu_open(conf->gpu, g->what, diag)))
        err = DQ_NOT_SUPPORTED;
    if (err == DQ_OK) err = add_regions(g, conf, diag);
    if (err == DQ_OK) err = reach_regions(g, diag);
    dqi_kernel_count(conf->kernel, true);
    if (err == DQ_OK) err = choose_process(g, diag);
    if (err == DQ_OK) err = dqi_gn_write_block(g, diag);
    if (err == DQ_OK && !g->apart) err = dqi_gn_local_lines(g->gpu, g->block, &g->lines, g->what, diag);
    if (err == DQ_OK) err = make_stages(g, conf, out_rx, diag);
    if (err == DQ_OK)
        *out = g;
    else
        dq_gn_detach(g), dqi_gn_unref(g);
    return err;
}

void dq_gn_abort(dq_gn *g) {
    atomic_store(&g->aborted, true);
    gn_store(&g->proxy->abort, 1);
}

bool dq_gn_idle(dq_gn *g) {
    bool idle = true;
    for (uint32_t k = 0; k < g->n_tx && idle; k++) {
        const dqi_gn_tx *t = &g->tx[k];
        uint64_t at = atomic_load(&t->accepted);
        gn_u64 words[GN_TX_WORDS];
        idle =
            atomic_load(&t->broken) || (atomic_load(&t->completed) == at && !dqi_gn_tx_posted(t, at, words));
    }
    return idle;
}

// If a line can't be read, its packets count as not taken.
static void read_lines(dq_gn *g) {
    dq_diag none = {{0}};
    if (g->lines.at && g->run && dq_gn_ended(g)) dqi_gn_lines_home(g->gpu, &g->lines, g->what, &none);
}

void dq_gn_detach(dq_gn *g) {
    if (!g->apart) read_lines(g);
    for (uint32_t k = 0; k < g->n_tx; k++) {
        dqi_poller_hold(g->tx[k].queue->poller);
        dqi_gn_tx_detach(&g->tx[k]);
        dqi_poller_release(g->tx[k].queue->poller);
    }
    for (uint32_t k = 0; k < g->n_rx; k++) {
        dqi_poller_hold(g->rx[k].queue->poller);
        dqi_gn_rx_detach(&g->rx[k]);
        dqi_poller_release(g->rx[k].queue->poller);
    }
    if (g->run) dqi_gn_run_rest(g->run);
}

// ---- state ------------------------------------------------------------------------------------------------

void dq_gn_read(dq_gn *g, dq_gn_state *out) {
    *out = (dq_gn_state){.silent_ns = -1, .restarted = g->restarted};
    for (uint32_t k = 0; k < g->n_tx; k++) {
        const dqi_gn_tx *t = &g->tx[k];
        out->posted += atomic_load(&t->accepted) - g->conf.first;
        out->completed += atomic_load(&t->completed) - g->conf.first;
        out->dropped += dqi_get(&t->refused);
        out->broken += atomic_load(&t->broken);
        if (atomic_load(&t->fault)) out->fault = (int32_t)atomic_load(&t->fault);
    }
    for (uint32_t k = 0; k < g->n_rx; k++)
        out->received += atomic_load(&g->rx[k].filled) - g->conf.first;
    uint64_t beat = gn_load(&g->kernel->beat);
    if (beat != g->beat) g->beat_ns = dqi_mono_ns();
    g->beat = beat;
    if (beat) out->silent_ns = dqi_mono_ns() - g->beat_ns;
    uint64_t abi = gn_load(&g->kernel->abi);
    out->abi_differs = abi != 0 && abi != GN_ABI;
}

const char *dq_gn_fault_name(int32_t fault) { return gn_fault_name(fault); }

static bool take_item(dqi_gn_sem *s, uint64_t *first, uint64_t *count) {
    uint64_t ready = gn_load(&s->producer->ready) & ~GN_SEM_END;
    if (ready <= s->taken || ready - s->done > UINT64_C(1) << s->log2)
        return false; // the latter: not a valid counter
    const gn_sem_item *item = &s->items[gn_index(s->taken, s->log2)];
    *first = gn_peek(&item->first);
    *count = gn_peek(&item->count);
    gn_store(&s->consumer->hold, ++s->taken);
    return true;
}

bool dq_gn_sem_take(dq_gn *g, uint32_t sem, uint64_t *first, uint64_t *count) {
    pthread_mutex_lock(&g->lock);
    bool is = take_item(&g->sems[sem], first, count);
    pthread_mutex_unlock(&g->lock);
    return is;
}

void dq_gn_sem_done(dq_gn *g, uint32_t sem) {
    dqi_gn_sem *s = &g->sems[sem];
    pthread_mutex_lock(&g->lock);
    if (s->done < s->taken) gn_store(&s->consumer->done, ++s->done);
    pthread_mutex_unlock(&g->lock);
}

// ---- progress ---------------------------------------------------------------------------------------------

int dq_iface_progress(dq_iface *i, uint32_t *work, dq_diag *diag) {
    int done = 0;
    for (int dir = 0; dir < 2; dir++)
        for (uint32_t k = 0; k < (dir ? i->n_rx : i->n_tx); k++) {
            const dq_queue *q = dir ? i->rx[k] : i->tx[k];
            if (!q->poller)
                return dqi_fail(diag, DQ_NOT_READY,
                                "interface %s: queue %s is not served yet; hint: s:start()", i->conf.name,
                                q->conf.name);
            if (!q->poller->own_thread) continue;
            return dqi_fail(
                diag, DQ_NOT_SUPPORTED,
                "interface %s: queue %s is polled by a worker, beside which the script can't; hint: "
                "poll_mode: direct",
                i->conf.name, q->conf.name);
        }
    for (int dir = 0; dir < 2; dir++)
        for (uint32_t k = 0; k < (dir ? i->n_rx : i->n_tx); k++)
            done += dqi_poller_once((dir ? i->rx[k] : i->tx[k])->poller);
    *work = (uint32_t)done;
    return DQ_OK;
}
