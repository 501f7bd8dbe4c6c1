// doca_mlx5.cuh: queue pairs whose entries are in mlx5's format (gpunetio/device/gn_mlx5.h), for the
// functions with DOCA's names: they write such entries too, each with a completion entry. Not part of DOCA.
#ifndef DOCA_MLX5_CUH
#define DOCA_MLX5_CUH

// ---- entries ----------------------------------------------------------------------------------------------

GN_FN gn_u64 doca_be(gn_u64 high, gn_u64 low) { return doca_swap64(high << 32 | (low & 0xffffffff)); }

// A segment of an address: a region's number is its key, and the offset in it the address.
GN_FN void doca_entry_place(gn_u64 *segment, gn_u64 place, int remote, gn_u32 bytes) {
    gn_u64 offset = doca_swap64(gn_place_offset(place)), key = gn_place_region(place);
    segment[0] = remote ? offset : doca_be(bytes, key);
    segment[1] = remote ? doca_be(key, 0) : offset;
}

GN_FN void doca_entry_inline(gn_u64 *e, const gn_slot *s, gn_u32 bytes) {
    gn_u8 *to = (gn_u8 *)&e[4];
    const int words[5] = {1, 2, 6, 5, 4};
    e[4] = doca_be(0x80000000u | bytes, 0);
    for (gn_u32 k = 0; k < bytes && k < 28; k++)
        to[4 + k] = (gn_u8)(s->w[words[k / 7]] >> k % 7 * 8);
}

// Fills segments 1 to 3 from a slot. Returns opcode << 8 | number of segments; opcode 255, which the proxy
// refuses, for an operation that an entry can't have.
DOCA_FN gn_u32 doca_entry_segments(gn_u64 *e, const gn_slot *s) {
    const gn_u32 none = 0xff01, op = (gn_u32)(s->w[0] >> 56), flags = (gn_u32)(s->w[0] >> 48) & 0xff;
    const gn_u32 bytes = (gn_u32)s->w[0], split = flags & GN_SPLIT ? 1 : 0, imm = flags & GN_IMM ? 1 : 0;
    const gn_u32 data = bytes > 0 ? 1 : 0; // an operation with an immediate value may have no bytes
    if (op == GN_OP_NOP) return 1;
    if (op == GN_OP_SEND) {
        doca_entry_place(&e[2], s->w[1], 0, bytes);
        if (split) doca_entry_place(&e[4], s->w[6], 0, (gn_u32)s->w[5]);
        return s->w[2] || s->w[3] ? none : (10 + imm) << 8 | (1 + data + split);
    }
    if (op == GN_OP_ADD || op == GN_OP_CAS) {
        doca_entry_place(&e[2], s->w[4], 1, 0);
        e[4] = doca_swap64(s->w[5] | (flags & GN_TOP ? GN_LAP : 0));
        e[5] = op == GN_OP_CAS ? doca_swap64(s->w[1] | (flags & GN_COMPARED ? GN_LAP : 0)) : 0;
        doca_entry_place(&e[6], s->w[6], 0, 8);
        return !(flags & GN_RESULT) ? none : op == GN_OP_CAS ? 17 << 8 | 4 : 18 << 8 | 4;
    }
    if ((op != GN_OP_PUT && op != GN_OP_GET) || flags & GN_SIGNAL) return none;
    doca_entry_place(&e[2], s->w[3], 1, 0);
    if (flags & GN_INLINE) {
        doca_entry_inline(e, s, bytes);
        return bytes > 28 ? none : (8 + imm) << 8 | (2 + (bytes + 19) / 16);
    }
    doca_entry_place(&e[4], s->w[1], 0, bytes);
    if (split) doca_entry_place(&e[6], s->w[6], 0, (gn_u32)s->w[2]);
    return (op == GN_OP_PUT ? 8 + imm : 16) << 8 | (2 + data + split);
}

GN_FN gn_u64 *doca_entry_at(const doca_tx *t, gn_u64 ticket) {
    return t->q.slots[gn_index(ticket - t->first, t->q.log2)].w;
}

// Writes a slot's operation as the entry of a ticket.
DOCA_FN void doca_write_entry(const doca_tx *t, gn_u64 ticket, const gn_slot *s) {
    gn_u64 e[GN_TX_WORDS] = {0}, *to = doca_entry_at(t, ticket), index = ticket - t->first;
    gn_u32 is = doca_entry_segments(e, s);
    e[0] = doca_be((index & 0xffff) << 8 | is >> 8, t->number << 8 | (is & 0xff));
    e[1] = doca_be(8, s->w[0] >> 48 & GN_IMM ? s->w[4] : 0); // requests a completion entry; immediate value
    for (gn_u32 k = 0; k < GN_TX_WORDS; k++)
        gn_poke(&to[k], e[k]);
}

// ---- posting and completion -------------------------------------------------------------------------------

// Waits until all entries below `from` are ready, and marks those up to `to`.
DOCA_FN void doca_ready_entries(const doca_tx *t, uint64_t *ready, gn_u64 from, gn_u64 to) {
    gn_timer timer = gn_timer_start(&t->q.s, GN_LIMIT);
    while (gn_load((gn_u64 *)ready) != from) {
        if (gn_go_on(&t->q.s, &timer, &t->q.state->epoch, t->q.epoch) != GN_OK) return;
        doca_step();
    }
    gn_store_near((gn_u64 *)ready, to + 1);
}

// Stores the low 16 bits of `end`, the index after the last entry, in the doorbell record, unless it is
// ahead.
DOCA_FN void doca_ring(const doca_tx *t, gn_u64 end) {
    for (;;) {
        gn_u64 is = gn_peek(t->record);
        gn_u32 ahead = (gn_u32)(end - doca_swap32((gn_u32)is)) & 0xffff;
        if (ahead == 0 || ahead > 0x8000) return;
        if (gn_swap_shown(t->record, is, doca_swap32((gn_u32)end & 0xffff))) return;
    }
}

// Posts n operations of a thread, with consecutive indices; *index: that of the last.
DOCA_FN int doca_post_entries(const doca_tx *t, gn_part *part, const gn_slot *slots, gn_u32 n,
                              gn_u64 *index) {
    gn_u64 first;
    int err = gn_reserve(&t->q, n, GN_LIMIT, &first);
    if (err != GN_OK) return err;
    for (gn_u32 k = 0; k < n; k++)
        doca_write_entry(t, first + k, &slots[k]);
    *index = first + n - 1 - t->first;
    doca_ready_entries(t, (uint64_t *)&part->words[1], first - t->first, *index); // sq_ready_index
    doca_raise(&part->words[2], *index + 1);                                      // sq_wqe_pi
    doca_ring(t, *index + 1);
    return GN_OK;
}

// Reads completion entry `index`. GN_AGAIN: there is none yet, or a later one has its place.
GN_FN int doca_poll_entry(const doca_tx *t, gn_u64 index) {
    gn_u64 last = gn_load(t->cq + gn_index(index, t->q.log2) * 8 + 7);
    gn_u32 owner = (gn_u32)(last >> 56) & 1, kind = (gn_u32)(last >> 60);
    if (kind == 15 || owner != (index >> t->q.log2 & 1)) return GN_AGAIN;
    return kind == 13 ? GN_FAILED : GN_OK;
}

#endif
