// tx_memory.c: put, get and add where the peer's memory is a region of this session (the loop engine), and
// copies between the kernel's own regions. The CPU does them, in the order of their tickets; long ones in
// parts, so that other rings go on meanwhile.
#include "proxy/tx_memory.h"

#include <string.h>

#define PART (256u << 10)

static uint8_t *at(const dqi_gn_tx *t, gn_u64 place) {
    const dq_region *r = t->gn->bound[gn_place_region(place)];
    return r->cpu ? t->gn->session->base + r->offset + gn_place_offset(place) : NULL;
}

// Adds to 64 bits that kernels on this host may add to, too.
static uint64_t add(const dqi_gn_tx *t, gn_u64 place, uint64_t n) {
    uint64_t *p = (uint64_t *)(void *)at(t, place);
    return p ? __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL) : 0;
}

// Moves the next part. True: all of it is there.
static bool move(dqi_gn_tx *t, gn_u64 to, gn_u64 from, uint64_t bytes) {
    uint8_t *dst = at(t, to);
    const uint8_t *src = at(t, from);
    if (t->copied > bytes) t->copied = 0; // the kernel wrote into a slot that it had published
    uint64_t n = bytes - t->copied < PART ? bytes - t->copied : PART;
    if (dst && src) memmove(dst + t->copied, src + t->copied, n);
    t->copied += n;
    if (t->copied < bytes) return false;
    t->copied = 0;
    return true;
}

static bool put(dqi_gn_tx *t, const gn_desc *d) {
    if (d->flags & GN_INLINE) {
        uint8_t *dst = at(t, d->to);
        if (dst) memcpy(dst, d->data, d->bytes);
    } else if (!move(t, d->to, d->from, d->bytes)) {
        return false;
    }
    if (d->flags & GN_SIGNAL) add(t, d->signal, d->operand);
    return true;
}

bool dqi_gn_memory(dqi_gn_tx *t, const gn_desc *d) {
    bool done = true;
    switch (d->op) {
    case GN_OP_PUT:
        done = put(t, d);
        break;
    case GN_OP_GET:
        done = move(t, d->from, d->to, d->bytes);
        break;
    case GN_OP_COPY:
        return move(t, d->to, d->from, d->bytes);
    case GN_OP_ADD: {
        uint64_t was = add(t, d->signal, d->operand);
        uint8_t *dst = d->flags & GN_RESULT ? at(t, d->result) : NULL;
        if (dst) __atomic_store_n((uint64_t *)(void *)dst, was, __ATOMIC_RELEASE);
        break;
    }
    default:
        return true;
    }
    if (done) {
        dqi_add(&t->c.extra[DQ_EXTRA_ONE_SIDED], 1);
        dqi_add(&t->c.extra[DQ_EXTRA_ONE_SIDED_BYTES], d->op == GN_OP_ADD ? 8 : d->bytes);
    }
    return done;
}
