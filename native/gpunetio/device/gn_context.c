// gn_context.c: layout and initialization of a context's block.
#include "gpunetio/device/gn_context.h"

#include "core/err.h"
#include "gpunetio/device/gn_mlx5.h"

#include <string.h>

#define LINE 128 // bytes that a GPU reads at a time

static uint32_t log2_of(uint32_t slots) { return (uint32_t)__builtin_ctz(slots); }

static int check_rings(const char *what, const char *kind, const gn_ring_conf *rings, uint32_t n,
                       dq_diag *diag) {
    for (uint32_t k = 0; k < n; k++) {
        uint32_t slots = rings[k].slots;
        if (slots < 1u << GN_LEAST_LOG2 || slots > 1u << GN_MOST_LOG2 || (slots & (slots - 1)))
            return dqi_fail(diag, DQ_INVALID_PARAMETER,
                            "%s: %s %u has %u slots: hint: a power of two from %u to %u", what, kind, k + 1,
                            slots, 1u << GN_LEAST_LOG2, 1u << GN_MOST_LOG2);
    }
    return DQ_OK;
}

int gn_context_check(const char *what, const gn_context_conf *conf, dq_diag *diag) {
    if (conf->n_regions > GN_REGIONS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: %u regions, %u at most", what, conf->n_regions,
                        GN_REGIONS);
    int err = check_rings(what, "transmit ring", conf->tx, conf->n_tx, diag);
    if (err == DQ_OK) err = check_rings(what, "receive ring", conf->rx, conf->n_rx, diag);
    if (err == DQ_OK) err = check_rings(what, "semaphore", conf->sems, conf->n_sems, diag);
    return err;
}

// Allocates n bytes of the block, in separate lines.
static uint64_t take(uint64_t *end, uint64_t n) {
    uint64_t at = *end;
    *end += (n + LINE - 1) / LINE * LINE;
    return at;
}

// Marks slots as empty, by the lap bit of the previous lap.
static void empty(gn_u64 *words, uint32_t per_slot, const gn_ring_conf *c) {
    for (uint64_t t = c->first; t < c->first + c->slots; t++)
        for (uint32_t k = 0; k < per_slot; k++)
            words[gn_index(t, log2_of(c->slots)) * per_slot + k] = gn_lap(t, log2_of(c->slots)) ^ GN_LAP;
}

static void lay_tx(uint8_t *block, gn_context *p, const gn_context_conf *conf, uint64_t *end) {
    p->tx = take(end, conf->n_tx * sizeof(gn_tx_row));
    for (uint32_t k = 0; k < conf->n_tx; k++) {
        const gn_ring_conf *c = &conf->tx[k];
        gn_tx_row r = {.first = c->first, .epoch = conf->epoch, .ops = c->ops, .queue = c->queue};
        r.log2 = log2_of(c->slots);
        r.back = p->tx + k * sizeof r;
        r.state = r.source = take(end, sizeof(gn_tx_state));
        r.posted = take(end, sizeof(gn_tx_posted));
        r.local = take(end, sizeof(gn_tx_local));
        r.slots = take(end, c->slots * sizeof(gn_slot));
        if (c->mlx5) r.record = take(end, LINE);
        if (c->mlx5) r.cq = take(end, c->slots * GN_MLX5_ENTRY);
        if (!block) continue;
        memcpy(block + p->tx + k * sizeof r, &r, sizeof r);
        gn_tx_state s = {.accepted = c->first, .completed = c->first, .epoch = conf->epoch};
        memcpy(block + r.state, &s, sizeof s);
        memcpy(block + r.local, &c->first, sizeof c->first);
        if (c->mlx5)
            memset(block + r.cq, 0xff, c->slots * GN_MLX5_ENTRY); // invalid
        else
            empty((gn_u64 *)(void *)(block + r.slots), GN_TX_WORDS, c);
    }
}

static void lay_rx(uint8_t *block, gn_context *p, const gn_context_conf *conf, uint64_t *end) {
    p->rx = take(end, conf->n_rx * sizeof(gn_rx_row));
    for (uint32_t k = 0; k < conf->n_rx; k++) {
        const gn_ring_conf *c = &conf->rx[k];
        gn_rx_row r = {.first = c->first, .epoch = conf->epoch, .queue = c->queue, .single = c->single};
        r.log2 = log2_of(c->slots);
        r.back = p->rx + k * sizeof r;
        r.state = r.source = take(end, sizeof(gn_rx_state));
        r.local = take(end, sizeof(gn_rx_local));
        r.released = take(end, c->slots * sizeof(gn_u64));
        r.slots = take(end, c->slots * sizeof(gn_rx_slot));
        if (!block) continue;
        memcpy(block + p->rx + k * sizeof r, &r, sizeof r);
        gn_rx_state s = {.filled = c->first, .epoch = conf->epoch};
        memcpy(block + r.state, &s, sizeof s);
        memcpy(block + r.local, &c->first, sizeof c->first);
        empty((gn_u64 *)(void *)(block + r.slots), GN_RX_WORDS, c);
    }
}

static void lay_sems(uint8_t *block, gn_context *p, const gn_context_conf *conf, uint64_t *end) {
    p->sems = take(end, conf->n_sems * sizeof(gn_sem_row));
    for (uint32_t k = 0; k < conf->n_sems; k++) {
        const gn_ring_conf *c = &conf->sems[k];
        gn_sem_row r = {.first = c->first};
        r.log2 = log2_of(c->slots);
        r.back = p->sems + k * sizeof r;
        r.producer = take(end, sizeof(gn_sem_producer));
        r.consumer = take(end, sizeof(gn_sem_consumer));
        r.items = take(end, c->slots * sizeof(gn_sem_item));
        if (!block) continue;
        memcpy(block + p->sems + k * sizeof r, &r, sizeof r);
        gn_sem_consumer s = {.hold = c->first, .done = c->first};
        memcpy(block + r.producer, &c->first, sizeof c->first);
        memcpy(block + r.consumer, &s, sizeof s);
    }
}

// Fills the parts of an object that lead to a ring, in pairs: the ring and its completions.
static void to_ring(gn_part *part, gn_u64 row, uint32_t number, uint32_t slots, gn_u64 table) {
    for (uint32_t k = 0; k < 2; k++)
        part[k] =
            (gn_part){.back = part[k].back, .row = row, .number = number, .size = slots, .mask = slots - 1};
    part[0].table = table;
}

// Writes what a kernel needs that writes entries by hand to the words of doca_gpu_dev_verbs_qp and its
// completion queue: addresses, and the queue's number as control segments have it.
static void to_entries(uint8_t *block, const gn_tx_row *r, gn_part *part) {
    uint32_t *numbers = (uint32_t *)(void *)&part[0].words[7], shifted = part[0].number << 8;
    part[0].words[4] = (uintptr_t)block + r->slots;
    part[0].words[5] = (uintptr_t)block + r->record;
    part[0].words[6] = (uintptr_t)block + r->record + LINE / 2; // its doorbell, which is not read
    numbers[0] = shifted;
    for (uint32_t segments = 0; segments <= 5; segments++)
        numbers[1 + segments] = __builtin_bswap32(shifted | segments);
    part[1].spare = GN_MLX5_ENTRY;
    part[1].words[2] = (uintptr_t)block + r->cq;
    part[1].words[3] = (uintptr_t)block + r->record + LINE / 4; // its record, which is not read
}

static gn_object object_of(const gn_context *p, const gn_context_conf *conf, const gn_object_conf *c,
                           uint64_t at, uint64_t *end) {
    gn_object o = {0};
    for (uint32_t k = 0; k < 4; k++)
        o.part[k].back = at + k * sizeof(gn_part);
    if (c->kind == GN_OBJECT_BUFFERS) {
        o.part[0].row = c->place;
        o.part[0].number = c->count;
        o.part[0].size = c->bytes;
    } else {
        uint32_t first = c->kind == GN_OBJECT_RX ? 0 : 2;
        if (c->tx) {
            uint32_t slots = conf->tx[c->tx - 1].slots;
            to_ring(o.part, p->tx + (c->tx - 1) * sizeof(gn_tx_row), c->tx, slots,
                    take(end, slots * GN_TX_TABLE_WORDS * sizeof(gn_u64)));
        }
        if (c->rx) {
            uint32_t slots = conf->rx[c->rx - 1].slots;
            to_ring(o.part + first, p->rx + (c->rx - 1) * sizeof(gn_rx_row), c->rx, slots,
                    first ? take(end, slots * GN_RX_TABLE_WORDS * sizeof(gn_u64)) : 0);
        }
    }
    return o;
}

static void lay_objects(uint8_t *block, gn_context *p, const gn_context_conf *conf, uint64_t *end) {
    p->objects = take(end, conf->n_objects * sizeof(gn_object));
    for (uint32_t k = 0; k < conf->n_objects; k++) {
        uint64_t at = p->objects + k * sizeof(gn_object);
        gn_object o = object_of(p, conf, &conf->objects[k], at, end);
        if (!block) continue;
        const gn_object_conf *c = &conf->objects[k];
        if (c->tx && conf->tx[c->tx - 1].mlx5)
            to_entries(block, (const gn_tx_row *)(const void *)(block + p->tx) + (c->tx - 1), o.part);
        memcpy(block + at, &o, sizeof o);
    }
}

// Lays out the block; block NULL: only computes its size.
static uint64_t lay(uint8_t *block, const gn_context_conf *conf) {
    gn_context p = {.abi = GN_ABI, .n_tx = conf->n_tx, .n_rx = conf->n_rx, .n_sems = conf->n_sems};
    p.n_regions = conf->n_regions;
    p.n_objects = conf->n_objects;
    p.start_ns = conf->start_ns;
    p.limit_ns = conf->limit_ns;
    p.exits = conf->exits;
    uint64_t end = 0;
    take(&end, sizeof p);
    p.proxy = p.proxy_source = take(&end, sizeof(gn_proxy_words));
    p.kernel = take(&end, sizeof(gn_kernel_words));
    p.regions = take(&end, conf->n_regions * sizeof(gn_region));
    lay_tx(block, &p, conf, &end);
    lay_rx(block, &p, conf, &end);
    lay_sems(block, &p, conf, &end);
    lay_objects(block, &p, conf, &end);
    p.bytes = (end + 4095) / 4096 * 4096;
    if (!block) return p.bytes;
    if (conf->n_regions > 0) memcpy(block + p.regions, conf->regions, conf->n_regions * sizeof(gn_region));
    memcpy(block, &p, sizeof p);
    return p.bytes;
}

uint64_t gn_context_bytes(const gn_context_conf *conf) { return lay(NULL, conf); }

void gn_context_make(void *block, const gn_context_conf *conf) {
    memset(block, 0, gn_context_bytes(conf));
    lay(block, conf);
}
