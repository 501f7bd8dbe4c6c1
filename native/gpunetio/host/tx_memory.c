// tx_memory.c: put, get and add if the peer's memory is a region of this session (loop engine), and copies
// between the kernel's regions. The CPU executes them in the order of tickets; long ones in parts, so that
// other rings progress meanwhile.
#include "gpunetio/host/tx_memory.h"
#include "pipeline/session.h"

#include <string.h>

#define PART (256u << 10)

static uint8_t *at(const dqi_gn_tx *t, gn_u64 place) {
    const dq_region *r = t->gn->bound[gn_place_region(place)];
    return r->cpu ? t->gn->session->core.base + r->offset + gn_place_offset(place) : NULL;
}

int dqi_gn_memory_fault(const dqi_gn_tx *t, const gn_desc *d) {
    bool moves = d->op == GN_OP_COPY || d->op == GN_OP_GET || (d->op == GN_OP_PUT && !(d->flags & GN_INLINE));
    bool to = moves || d->op == GN_OP_PUT;
    bool adds = d->op == GN_OP_ADD || d->op == GN_OP_CAS || d->flags & GN_SIGNAL;
    bool in_reach = (!moves || at(t, d->from)) && (!to || at(t, d->to)) && (!adds || at(t, d->signal)) &&
                    (!(d->flags & GN_RESULT) || at(t, d->result)) &&
                    (!(d->flags & GN_SPLIT) || at(t, d->from2));
    return in_reach ? GN_FAULT_NONE : GN_FAULT_RIGHTS;
}

uint32_t dqi_gn_bytes(const gn_desc *d) {
    return d->op == GN_OP_ADD || d->op == GN_OP_CAS ? 8 : d->bytes + d->bytes2;
}

// Atomic, as kernels on this host may add to the same word.
static uint64_t add(const dqi_gn_tx *t, gn_u64 place, uint64_t n) {
    return __atomic_fetch_add((uint64_t *)(void *)at(t, place), n, __ATOMIC_ACQ_REL);
}

// Swaps the 64 bits of a place if they are `compare`; returns what they were.
static uint64_t swap(const dqi_gn_tx *t, gn_u64 place, uint64_t compare, uint64_t n) {
    __atomic_compare_exchange_n((uint64_t *)(void *)at(t, place), &compare, n, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    return compare;
}

// Copies the next part between `to` and the segments `from` and `from2`; returns true when complete.
static bool move(dqi_gn_tx *t, const gn_desc *d, bool get) {
    const uint64_t bytes = (uint64_t)d->bytes + d->bytes2;
    if (t->copied >= bytes) t->copied = 0; // the kernel modified a published slot
    for (uint64_t most = PART; most > 0 && t->copied < bytes;) {
        bool second = t->copied >= d->bytes;
        uint64_t left = (second ? bytes : d->bytes) - t->copied, n = left < most ? left : most;
        uint8_t *near = at(t, second ? d->from2 : d->from) + t->copied - (second ? d->bytes : 0);
        uint8_t *far = at(t, d->to) + t->copied;
        memmove(get ? near : far, get ? far : near, n);
        t->copied += n;
        most -= n;
    }
    if (t->copied < bytes) return false;
    t->copied = 0;
    return true;
}

static bool put(dqi_gn_tx *t, const gn_desc *d) {
    if (d->flags & GN_INLINE) {
        memcpy(at(t, d->to), d->data, d->bytes);
    } else if (!move(t, d, false)) {
        return false;
    }
    if (d->flags & GN_SIGNAL) add(t, d->signal, d->operand);
    return true;
}

// Counts a completed operation: copies, and those on a peer's memory.
static void count(dqi_gn_tx *t, const gn_desc *d) {
    bool copy = d->op == GN_OP_COPY;
    dqi_add(&t->c.extra[copy ? DQ_EXTRA_COPIES : DQ_EXTRA_ONE_SIDED], 1);
    dqi_add(&t->c.extra[copy ? DQ_EXTRA_COPIED_BYTES : DQ_EXTRA_ONE_SIDED_BYTES], dqi_gn_bytes(d));
}

bool dqi_gn_memory(dqi_gn_tx *t, const gn_desc *d) {
    bool done = true;
    switch (d->op) {
    case GN_OP_PUT:
        done = put(t, d);
        break;
    case GN_OP_GET:
    case GN_OP_COPY:
        done = move(t, d, d->op == GN_OP_GET);
        break;
    case GN_OP_ADD:
    case GN_OP_CAS: {
        uint64_t was =
            d->op == GN_OP_ADD ? add(t, d->signal, d->operand) : swap(t, d->signal, d->compare, d->operand);
        if (d->flags & GN_RESULT)
            __atomic_store_n((uint64_t *)(void *)at(t, d->result), was, __ATOMIC_RELEASE);
        break;
    }
    default:
        return true;
    }
    if (done) count(t, d);
    return done;
}
