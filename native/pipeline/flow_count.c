// flow_count.c: open-addressing hash table of flow ids; slots are never freed.
#include "pipeline/iface.h"
#include "pipeline/rx_count.h"
#include "pipeline/session.h"

#include <stdlib.h>

#define SLOTS (2 * DQ_FLOW_COUNTS) // a power of two
#define BITS  15                   // log2 of it

typedef struct slot {
    _Atomic uint32_t id; // 0: free
    dqi_count packets, bytes;
} slot;

struct dqi_flow_counts {
    _Atomic uint32_t used; // slots
    slot others;
    uint16_t order[DQ_FLOW_COUNTS]; // used slots in order of first use, for readers
    slot slots[SLOTS];
};

_Static_assert(SLOTS == 1 << BITS, "BITS is log2 of SLOTS");
_Static_assert(BITS <= 16, "order holds places of slots");

dqi_flow_counts *dqi_flow_counts_new(void) { return calloc(1, sizeof(dqi_flow_counts)); }
void dqi_flow_counts_free(dqi_flow_counts *c) { free(c); }

static slot *slot_of(dqi_flow_counts *c, uint32_t id) {
    uint32_t k = (id * 0x9e3779b1u) >> (32 - BITS);
    for (;; k = (k + 1) % SLOTS) {
        uint32_t at = atomic_load_explicit(&c->slots[k].id, memory_order_relaxed);
        if (at == id) return &c->slots[k];
        if (at != 0) continue;
        uint32_t used = atomic_load_explicit(&c->used, memory_order_relaxed);
        if (used == DQ_FLOW_COUNTS) return &c->others;
        atomic_store_explicit(&c->slots[k].id, id, memory_order_relaxed);
        c->order[used] = (uint16_t)k;
        atomic_store_explicit(&c->used, used + 1, memory_order_release);
        return &c->slots[k];
    }
}

static void add(dqi_flow_counts *c, uint32_t id, uint64_t packets, uint64_t bytes) {
    if (id == 0) return;
    slot *s = slot_of(c, id);
    dqi_add(&s->packets, packets);
    dqi_add(&s->bytes, bytes);
}

// Whether n > 0 packets have the same flow. Branch-free, so that it vectorizes.
static bool of_one(const uint32_t *flow, uint32_t n) {
    uint32_t differ = 0;
    for (uint32_t i = 1; i < n; i++)
        differ |= flow[i] ^ flow[0];
    return differ == 0;
}

void dqi_flow_count(dqi_flow_counts *c, const dq_burst *b, uint32_t from, uint64_t bytes) {
    if (b->to_columns) return; // only on interfaces that never had rules
    if (of_one(b->flow + from, b->n - from)) {
        add(c, b->flow[from], b->n - from, bytes);
        return;
    }
    for (uint32_t i = from; i < b->n;) {
        uint32_t id = b->flow[i], first = i;
        for (bytes = 0; i < b->n && b->flow[i] == id; i++) // adjacent packets often have the same flow
            bytes += dqi_packet_len(b, i);
        add(c, id, i - first, bytes);
    }
}

typedef struct sink {
    dq_flow_count *out;
    uint32_t n, max, iface, queue;
} sink;

static void put(sink *k, const slot *s) {
    uint64_t packets = dqi_get(&s->packets);
    if (packets == 0 || k->n++ >= k->max) return;
    k->out[k->n - 1] = (dq_flow_count){
        .iface = k->iface,
        .queue_id = k->queue,
        .flow_id = atomic_load_explicit(&s->id, memory_order_relaxed),
        .packets = packets,
        .bytes = dqi_get(&s->bytes),
    };
}

uint32_t dq_flow_counts(const dq_session *s, dq_flow_count *out, uint32_t max) {
    sink k = {.out = out, .max = max};
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        for (uint32_t q = 0; q < s->ifaces[i]->n_rx; q++) {
            const dqi_flow_counts *c = s->ifaces[i]->rx[q]->rx.flow_counts;
            if (!c) continue;
            k.iface = i;
            k.queue = s->ifaces[i]->rx[q]->conf.id;
            put(&k, &c->others);
            uint32_t used = atomic_load_explicit(&c->used, memory_order_acquire);
            for (uint32_t m = 0; m < used; m++)
                put(&k, &c->slots[c->order[m]]);
        }
    return k.n;
}
