// gn_mlx5.c: decoding of mlx5's work queue entries, and completion entries. An entry becomes the words of a
// slot, so that gn_check, the proxy's only check, validates every place.
#include "gpunetio/device/gn_mlx5.h"

#include <stdint.h>
#include <string.h>

#define SEGMENT  16u
#define ANY_KEY  0xffffffffu // the region is found by the address
#define NOWHERE  gn_place(GN_REGIONS - 1, 0)
#define MOST_SEG 4u

// ---- entries ----------------------------------------------------------------------------------------------

typedef struct entry {
    gn_u8 b[GN_MLX5_ENTRY];
    gn_u32 segments;
    const gn_given *given;
    const gn_region *rows;
} entry;

static gn_u32 be32(const gn_u8 *b) {
    return (gn_u32)b[0] << 24 | (gn_u32)b[1] << 16 | (gn_u32)b[2] << 8 | b[3];
}

static gn_u64 be64(const gn_u8 *b) { return (gn_u64)be32(b) << 32 | be32(b + 4); }

static void put32(gn_u8 *b, gn_u32 v) {
    for (int k = 0; k < 4; k++)
        b[k] = (gn_u8)(v >> (24 - 8 * k));
}

// Returns the number of the region with this key: the number itself in either byte order. n_regions: none.
static gn_u32 region_of(const entry *e, gn_u64 address, gn_u32 key, gn_u32 remote) {
    gn_u32 n = e->given->n_regions, k = key < n ? key : __builtin_bswap32(key);
    if (key != ANY_KEY) return k < n ? k : n;
    for (k = 0; k < n; k++) {
        const gn_region *r = &e->given->regions[k];
        if ((r->rights & GN_REMOTE) == remote && address - gn_peek(&e->rows[k].base) < r->bytes) break;
    }
    return k;
}

// Converts an address and a key to a place, which is not checked yet. With a region's key an address outside
// it may also be an offset in it. An offset that a place can't hold is in no region.
static gn_u64 place_of(const entry *e, gn_u64 address, gn_u32 key, gn_u32 remote) {
    gn_u32 k = region_of(e, address, key, remote);
    if (k >= e->given->n_regions) return NOWHERE;
    gn_u64 bytes = e->given->regions[k].bytes, offset = address - gn_peek(&e->rows[k].base);
    if (offset >= bytes && address < bytes) offset = address;
    return offset >> 48 ? NOWHERE : gn_place(k, offset);
}

static gn_u64 remote_place(const entry *e) {
    const gn_u8 *s = e->b + SEGMENT;
    return place_of(e, be64(s), be32(s + 8), GN_REMOTE);
}

static gn_u64 data_place(const entry *e, gn_u32 segment) {
    const gn_u8 *s = e->b + segment * SEGMENT;
    return place_of(e, be64(s + 8), be32(s + 4), 0);
}

static gn_u64 word0(gn_u32 op, gn_u32 flags, gn_u32 bytes) {
    return (gn_u64)op << 56 | (gn_u64)flags << 48 | bytes;
}

static int fill_inline(const entry *e, gn_u32 segment, gn_u32 op, gn_u64 *w) {
    static const gn_u8 words[5] = {1, 2, 6, 5, 4};
    const gn_u8 *s = e->b + segment * SEGMENT;
    gn_u32 bytes = be32(s) & ~GN_MLX5_INLINE;
    if (op != GN_OP_PUT) return GN_FAULT_FLAGS;
    if (bytes + 4 > (e->segments - segment) * SEGMENT) return GN_FAULT_LENGTH;
    if (bytes == 0) return GN_FAULT_NONE;
    w[0] = word0(op, GN_INLINE, bytes);
    for (gn_u32 k = 0; k < bytes; k++)
        w[words[k / 7]] |= (gn_u64)s[4 + k] << k % 7 * 8;
    w[3] = remote_place(e);
    return GN_FAULT_NONE;
}

// Fills a send, put or get from its data segments, from `segment` on. Without any it is a nop.
static int fill_data(const entry *e, gn_u32 segment, gn_u32 op, gn_u64 *w) {
    gn_u32 n = e->segments - segment, bytes[2] = {0};
    if (n == 0) return GN_FAULT_NONE;
    if (be32(e->b + segment * SEGMENT) & GN_MLX5_INLINE) return fill_inline(e, segment, op, w);
    if (n > 2) return GN_FAULT_FLAGS;
    for (gn_u32 k = 0; k < n; k++) {
        bytes[k] = be32(e->b + (segment + k) * SEGMENT);
        if (bytes[k] & GN_MLX5_INLINE) return GN_FAULT_FLAGS;
    }
    w[0] = word0(op, n == 2 ? GN_SPLIT : 0, bytes[0]);
    w[1] = data_place(e, segment);
    if (op != GN_OP_SEND) w[3] = remote_place(e);
    if (n == 2) {
        w[op == GN_OP_SEND ? 5 : 2] = bytes[1];
        w[6] = data_place(e, segment + 1);
    }
    return GN_FAULT_NONE;
}

// Returns the start of a region that a send can read; NOWHERE: there is none.
static gn_u64 readable_place(const entry *e) {
    for (gn_u32 k = 0; k < e->given->n_regions; k++)
        if ((e->given->regions[k].rights & (GN_READ | GN_REMOTE)) == GN_READ) return gn_place(k, 0);
    return NOWHERE;
}

// Fills a send or put with the immediate value of the control segment. Without a data segment it has no
// bytes.
static int fill_imm(const entry *e, gn_u32 segment, gn_u32 op, gn_u64 *w) {
    int fault = fill_data(e, segment, op, w);
    if (fault != GN_FAULT_NONE) return fault;
    if (w[0] == 0 && op == GN_OP_PUT) {
        w[0] = word0(op, GN_INLINE, 0);
        w[3] = remote_place(e);
    } else if (w[0] == 0) {
        w[0] = word0(op, 0, 0);
        w[1] = readable_place(e);
    }
    w[0] |= (gn_u64)GN_IMM << 48;
    w[4] = be32(e->b + 12);
    return GN_FAULT_NONE;
}

// Fills an atomic operation, whose previous value goes to the data segment.
static int fill_atomic(const entry *e, gn_u32 op, gn_u64 *w) {
    gn_u64 operand = be64(e->b + 2 * SEGMENT), compare = be64(e->b + 2 * SEGMENT + 8);
    gn_u32 flags = GN_RESULT | (operand >> 63 ? GN_TOP : 0);
    if (e->segments != MOST_SEG || be32(e->b + 3 * SEGMENT) != 8) return GN_FAULT_LENGTH;
    if (op == GN_OP_CAS) {
        flags |= compare >> 63 ? GN_COMPARED : 0;
        w[1] = compare & ~GN_LAP;
    }
    w[0] = word0(op, flags, 0);
    w[4] = remote_place(e);
    w[5] = operand & ~GN_LAP;
    w[6] = data_place(e, 3);
    return GN_FAULT_NONE;
}

static int fill(const entry *e, gn_u32 opcode, gn_u64 *w) {
    bool remote = e->segments > 1;
    switch (opcode) {
    case GN_MLX5_NOP:
    case GN_MLX5_DUMP:
        return GN_FAULT_NONE;
    case GN_MLX5_WRITE:
        return remote ? fill_data(e, 2, GN_OP_PUT, w) : GN_FAULT_LENGTH;
    case GN_MLX5_WRITE_IMM:
        return remote ? fill_imm(e, 2, GN_OP_PUT, w) : GN_FAULT_LENGTH;
    case GN_MLX5_READ:
        return remote ? fill_data(e, 2, GN_OP_GET, w) : GN_FAULT_LENGTH;
    case GN_MLX5_SEND:
        return fill_data(e, 1, GN_OP_SEND, w);
    case GN_MLX5_SEND_IMM:
        return fill_imm(e, 1, GN_OP_SEND, w);
    case GN_MLX5_COMPARE_SWAP:
        return fill_atomic(e, GN_OP_CAS, w);
    case GN_MLX5_FETCH_ADD:
        return fill_atomic(e, GN_OP_ADD, w);
    }
    return GN_FAULT_OP;
}

// Checks the control segment. An entry of an earlier pass has another index.
static int check_control(const gn_mlx5_queue *q, const entry *e, gn_u64 index) {
    gn_u32 first = be32(e->b), second = be32(e->b + 4);
    if ((first >> 8 & 0xffff) != (index & 0xffff)) return GN_FAULT_TICKET;
    if (first >> 24 || second >> 8 != q->number) return GN_FAULT_FLAGS;
    return e->segments == 0 || e->segments > MOST_SEG ? GN_FAULT_LENGTH : GN_FAULT_NONE;
}

// ---- errors -----------------------------------------------------------------------------------------------

// Whether the place in error is on this side; d is decoded.
static bool is_local(const gn_given *g, const gn_desc *d, int fault) {
    if (fault == GN_FAULT_ALIGN) return gn_place_offset(d->signal) % 8 == 0;
    gn_u32 rights = d->op == GN_OP_GET || d->flags & GN_RESULT ? GN_WRITE : GN_READ;
    gn_u64 place = d->flags & GN_RESULT ? d->result : d->from, n = d->flags & GN_RESULT ? 8 : d->bytes;
    if (d->flags & GN_INLINE) return false;
    return gn_check_place(g, place, n, rights) != GN_FAULT_NONE ||
           (d->flags & GN_SPLIT && gn_check_place(g, d->from2, d->bytes2, rights) != GN_FAULT_NONE);
}

static gn_u8 syndrome_of(int fault, bool local) {
    switch (fault) {
    case GN_FAULT_REGION:
    case GN_FAULT_RANGE:
    case GN_FAULT_RIGHTS:
        return local ? GN_MLX5_LOCAL_PROTECTION : GN_MLX5_REMOTE_ACCESS;
    case GN_FAULT_ALIGN:
        return local ? GN_MLX5_LOCAL_OPERATION : GN_MLX5_REMOTE_REQUEST;
    case GN_FAULT_LENGTH:
        return GN_MLX5_LOCAL_LENGTH;
    case GN_FAULT_FAILED:
    case GN_FAULT_PEER:
        return GN_MLX5_REMOTE_OPERATION;
    case GN_FAULT_FLUSHED:
        return GN_MLX5_FLUSHED;
    }
    return GN_MLX5_LOCAL_OPERATION;
}

static gn_mlx5_pending *pending_of(const gn_mlx5_queue *q, gn_u64 ticket) {
    return &q->of[gn_index(ticket - q->first, q->log2)];
}

static void stop(gn_mlx5_queue *q, gn_u64 ticket, int fault, bool local) {
    gn_mlx5_pending *p = pending_of(q, ticket);
    if (p->syndrome) return; // the first error counts
    p->syndrome = syndrome_of(fault, local);
    p->fault = (gn_u8)fault;
    q->stopped = true;
}

// ---- queue ------------------------------------------------------------------------------------------------

bool gn_mlx5_is_posted(const gn_mlx5_queue *q, gn_u64 ticket) {
    gn_u32 record = __atomic_load_n(q->record, GN_ACQUIRE);
    gn_u8 b[4];
    memcpy(b, &record, sizeof b);
    return (uint16_t)(be32(b) - (ticket - q->first)) != 0;
}

static void copy_entry(entry *e, const gn_u64 *at) {
    for (gn_u32 k = 0; k < GN_MLX5_ENTRY / sizeof *at; k++) {
        gn_u64 v = gn_peek(&at[k]);
        memcpy(e->b + k * sizeof v, &v, sizeof v);
    }
    e->segments = be32(e->b + 4) & 0xff;
}

int gn_mlx5_take(gn_mlx5_queue *q, const gn_u64 *entries, gn_u64 ticket, const gn_given *given,
                 gn_desc *out) {
    entry e = {.given = given, .rows = q->rows};
    gn_u64 index = ticket - q->first, w[GN_TX_WORDS] = {[GN_TX_WORDS - 1] = ticket & ~GN_LAP};
    gn_mlx5_pending *p = pending_of(q, ticket);
    copy_entry(&e, entries + gn_index(index, q->log2) * GN_TX_WORDS);
    *p = (gn_mlx5_pending){.opcode = e.b[3], .signaled = e.b[11] & GN_MLX5_SIGNALED};
    *out = (gn_desc){0};
    bool local = false;
    int fault = q->stopped ? GN_FAULT_FLUSHED : check_control(q, &e, index);
    if (fault == GN_FAULT_NONE) fault = fill(&e, p->opcode, w);
    if (fault == GN_FAULT_NONE) {
        fault = gn_check(w, ticket, given, out);
        p->bytes = out->op == GN_OP_ADD || out->op == GN_OP_CAS ? 8 : out->bytes + out->bytes2;
        local = fault != GN_FAULT_NONE && is_local(given, out, fault);
    }
    if (fault != GN_FAULT_NONE) stop(q, ticket, fault, local);
    return fault;
}

void gn_mlx5_fail(gn_mlx5_queue *q, gn_u64 ticket, int fault) { stop(q, ticket, fault, true); }

// Writes a completion entry. The word with the owner bit comes last, with release order: a reader that sees
// it sees the rest.
static void write_completion(gn_mlx5_queue *q, const gn_mlx5_pending *p, gn_u64 index) {
    gn_u8 b[GN_MLX5_ENTRY] = {0}, *at = q->completions + gn_index(q->written, q->log2) * GN_MLX5_ENTRY;
    gn_u32 last, kind = p->syndrome ? GN_MLX5_ERROR : GN_MLX5_DONE;
    put32(b + 44, p->syndrome ? 0 : p->bytes);
    if (p->syndrome) b[54] = p->fault, b[55] = p->syndrome;
    put32(b + 56, (gn_u32)p->opcode << 24 | q->number);
    put32(b + 60, (gn_u32)(index & 0xffff) << 16 | kind << 4 | (gn_u32)(q->written >> q->log2 & 1));
    memcpy(at, b, GN_MLX5_ENTRY - sizeof last);
    memcpy(&last, b + GN_MLX5_ENTRY - sizeof last, sizeof last);
    __atomic_store_n((gn_u32 *)(void *)(at + GN_MLX5_ENTRY - sizeof last), last, GN_RELEASE);
    q->written++;
}

void gn_mlx5_complete(gn_mlx5_queue *q, gn_u64 below) {
    for (; q->completed < below; q->completed++) {
        const gn_mlx5_pending *p = pending_of(q, q->completed);
        if (p->signaled || p->syndrome) write_completion(q, p, q->completed - q->first);
    }
}
