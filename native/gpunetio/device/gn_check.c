// gn_check.c: validation of transmit slots against the context's regions and operations.
#include "gpunetio/device/gn_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static const char *const faults[GN_FAULTS] = {
#define X(id, text) [GN_FAULT_##id] = text,
    GN_FAULT_ROWS(X)
#undef X
};

const char *gn_fault_name(int fault) { return fault >= 0 && fault < GN_FAULTS ? faults[fault] : NULL; }

// Per operation: bits that must be 0 in each word, regardless of flags; allowed flags.
#define OFF0(words)   ((words)&1 ? 0xffff00000000ull : 0xffffffffffffull)
#define OFF(words, k) ((words) >> (k)&1 ? GN_LAP : ~0ull)
static const struct {
    gn_u64 off[GN_TX_WORDS];
    gn_u32 flags;
} ops[GN_OPS] = {
#define X(id, name, words, flags, what)                                                                      \
    [GN_OP_##id] = {{OFF0(words), OFF(words, 1), OFF(words, 2), OFF(words, 3), OFF(words, 4), OFF(words, 5), \
                     OFF(words, 6), OFF(words, 7)},                                                          \
                    flags},
    GN_OP_ROWS(X)
#undef X
};

static gn_u64 stray_inline(const gn_u64 w[GN_TX_WORDS], gn_u32 flags) {
    gn_u64 bits = (w[1] | w[2] | w[6]) >> 56;
    if (flags & GN_IMM) return bits | w[5] >> 56 | w[4] >> 32;
    return bits | (flags & GN_SIGNAL ? 0 : (w[4] | w[5]) >> 56);
}

// Returns the bits set in words of this operation with these flags that must be 0.
static gn_u64 stray(const gn_u64 w[GN_TX_WORDS], gn_u32 op, gn_u32 flags) {
    gn_u64 bits = 0;
    for (int k = 0; k < GN_TX_WORDS; k++)
        bits |= w[k] & ops[op].off[k];
    switch (op) {
    case GN_OP_SEND:
        bits |= flags & GN_IMM ? w[4] >> 32 : w[4];
        return bits | w[3] >> 32 | (flags & GN_SPLIT ? w[5] >> 32 : w[5] | w[6]);
    case GN_OP_FILE:
    case GN_OP_WAIT:
        return bits | w[3] >> 32;
    case GN_OP_ADD:
    case GN_OP_CAS:
        return bits | (flags & GN_RESULT ? 0 : w[6]);
    case GN_OP_PUT:
        if (flags & GN_INLINE) return bits | stray_inline(w, flags);
        bits |= flags & GN_SIGNAL ? 0 : w[5] | (flags & GN_IMM ? w[4] >> 32 : w[4]);
        return bits | (flags & GN_SPLIT ? w[2] >> 32 : w[2] | w[6]);
    case GN_OP_GET:
        return bits | (flags & GN_SPLIT ? w[2] >> 32 : w[2] | w[6]);
    }
    return bits;
}

static void decode_inline(const gn_u64 *w, gn_u8 *data) {
    static const uint8_t places[5] = {1, 2, 6, 5, 4};
    for (uint32_t k = 0; k < GN_INLINE_BYTES; k++)
        data[k] = (uint8_t)(w[places[k / 7]] >> k % 7 * 8);
}

// Returns bit 63 of a word, which stands in a flag.
static gn_u64 top(gn_u32 flags, gn_u32 flag) { return flags & flag ? GN_LAP : 0; }

static void decode_rest(const gn_u64 *w, gn_desc *d) {
    if (d->op == GN_OP_SEND || d->op == GN_OP_FILE || d->op == GN_OP_WAIT) {
        d->conn = (gn_u32)w[3];
        d->time = w[2];
        d->bytes2 = (gn_u32)w[5];
        d->from2 = w[6];
    } else if (d->flags & GN_SPLIT) {
        d->bytes2 = (gn_u32)w[2];
        d->from2 = w[6];
    }
}

static void decode(const gn_u64 *w, gn_desc *d) {
    d->op = (gn_u32)(w[0] >> 56);
    d->flags = (gn_u32)(w[0] >> 48) & 0xff;
    d->bytes = (gn_u32)w[0];
    d->from = w[1];
    d->to = w[3];
    d->signal = w[4];
    d->imm = (gn_u32)w[4];
    d->operand = w[5] | top(d->flags, GN_TOP);
    d->compare = w[1] | top(d->flags, GN_COMPARED);
    d->result = w[6];
    d->conn = d->bytes2 = 0;
    d->time = d->from2 = 0;
    decode_rest(w, d);
    if (d->flags & GN_INLINE) decode_inline(w, d->data);
}

// Checks n bytes at a place for the required rights; returns a gn_fault.
static int check_place(const gn_given *g, gn_u64 place, gn_u64 n, gn_u32 rights) {
    if (gn_place_region(place) >= g->n_regions) return GN_FAULT_REGION;
    const gn_region *r = &g->regions[gn_place_region(place)];
    if ((r->rights & rights) != rights || (r->rights & GN_REMOTE) != (rights & GN_REMOTE))
        return GN_FAULT_RIGHTS;
    gn_u64 at = gn_place_offset(place);
    return at <= r->bytes && n <= r->bytes - at ? GN_FAULT_NONE : GN_FAULT_RANGE;
}

static int check_word(const gn_given *g, gn_u64 place, gn_u32 rights) {
    int fault = check_place(g, place, 8, rights);
    return fault == GN_FAULT_NONE && gn_place_offset(place) % 8 ? GN_FAULT_ALIGN : fault;
}

// Whether a segment has no bytes; the only one of a send or put with an immediate value may have none.
static bool is_empty(const gn_desc *d) {
    if (d->flags & GN_SPLIT) return d->bytes == 0 || d->bytes2 == 0;
    return d->bytes == 0 && !(d->flags & GN_IMM);
}

static int check_send(const gn_given *g, const gn_desc *d) {
    gn_u64 bytes = (gn_u64)d->bytes + d->bytes2;
    if (is_empty(d) || bytes > g->most) return GN_FAULT_LENGTH;
    int fault = check_place(g, d->from, d->bytes, GN_READ);
    if (fault == GN_FAULT_NONE && d->flags & GN_SPLIT) fault = check_place(g, d->from2, d->bytes2, GN_READ);
    return fault;
}

// Checks the segments of a put or a get, and the remote place of all their bytes.
static int check_move(const gn_given *g, const gn_desc *d, gn_u32 local, gn_u32 remote) {
    bool split = d->flags & GN_SPLIT;
    gn_u64 all = (gn_u64)d->bytes + d->bytes2;
    if (is_empty(d) || all >> 32) return GN_FAULT_LENGTH;
    int fault = local ? check_place(g, d->from, d->bytes, local) : GN_FAULT_NONE;
    if (fault == GN_FAULT_NONE && split) fault = check_place(g, d->from2, d->bytes2, local);
    return fault == GN_FAULT_NONE ? check_place(g, d->to, all, GN_REMOTE | remote) : fault;
}

static int check_put(const gn_given *g, const gn_desc *d) {
    bool in_slot = d->flags & GN_INLINE;
    gn_u32 most = d->flags & GN_SIGNAL ? GN_INLINE_SIGNAL
                  : d->flags & GN_IMM  ? GN_INLINE_IMM
                                       : GN_INLINE_BYTES;
    if (in_slot && d->bytes > most) return GN_FAULT_LENGTH;
    int fault = check_move(g, d, in_slot ? 0 : GN_READ, GN_WRITE);
    if (fault == GN_FAULT_NONE && d->flags & GN_SIGNAL) fault = check_word(g, d->signal, GN_REMOTE | GN_ADD);
    return fault;
}

// Checks `from` and `to` with their rights.
static int check_two(const gn_given *g, const gn_desc *d, gn_u32 from, gn_u32 to) {
    if (d->bytes == 0) return GN_FAULT_LENGTH;
    int fault = check_place(g, d->from, d->bytes, from);
    return fault == GN_FAULT_NONE && to ? check_place(g, d->to, d->bytes, to) : fault;
}

static int check_add(const gn_given *g, const gn_desc *d) {
    int fault = check_word(g, d->signal, GN_REMOTE | GN_ADD);
    return fault == GN_FAULT_NONE && d->flags & GN_RESULT ? check_word(g, d->result, GN_WRITE) : fault;
}

// Whether a put has flags that exclude each other. Other operations do not allow both of any such pair.
static bool is_mixed(gn_u32 flags) {
    return (flags & (GN_SIGNAL | GN_TOP)) == GN_TOP ||
           (flags & (GN_INLINE | GN_SPLIT)) == (GN_INLINE | GN_SPLIT) ||
           (flags & (GN_IMM | GN_SIGNAL)) == (GN_IMM | GN_SIGNAL);
}

int gn_check(const gn_u64 w[GN_TX_WORDS], gn_u64 ticket, const gn_given *g, gn_desc *out) {
    gn_u32 op = (gn_u32)(w[0] >> 56), flags = (gn_u32)(w[0] >> 48) & 0xff;
    decode(w, out);
    if (op >= GN_OPS || !(g->ops >> op & 1)) return GN_FAULT_OP;
    if (flags & ~ops[op].flags) return GN_FAULT_FLAGS;
    if (op == GN_OP_PUT && is_mixed(flags)) return GN_FAULT_FLAGS;
    if (stray(w, op, flags)) return GN_FAULT_WORDS;
    if (w[GN_TX_WORDS - 1] != (ticket & ~GN_LAP)) return GN_FAULT_TICKET;
    switch (op) {
    case GN_OP_SEND:
        return check_send(g, out);
    case GN_OP_PUT:
        return check_put(g, out);
    case GN_OP_GET:
        return check_move(g, out, GN_WRITE, GN_READ);
    case GN_OP_ADD:
    case GN_OP_CAS:
        return check_add(g, out);
    case GN_OP_COPY:
        return check_two(g, out, GN_READ, GN_WRITE);
    case GN_OP_FILE:
        return check_two(g, out, GN_READ, 0);
    }
    return GN_FAULT_NONE;
}

int gn_check_place(const gn_given *given, gn_u64 place, gn_u64 n, gn_u32 rights) {
    return check_place(given, place, n, rights);
}
