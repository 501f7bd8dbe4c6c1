// gn_slot.h: layout of the slots of rings: descriptors of operations and of received packets (gn_ring.h).
#ifndef GN_SLOT_H
#define GN_SLOT_H

#include "gpunetio/device/gn_base.h"

#define GN_LAP      (1ull << 63) // lap bit of each word
#define GN_TX_WORDS 8
#define GN_RX_WORDS 4

// A place: index of a row of the context's regions, and byte offset in it. 63 bits.
#define GN_REGIONS (1u << 15)
GN_FN gn_u64 gn_place(gn_u32 region, gn_u64 offset) {
    return (gn_u64)(region & (GN_REGIONS - 1)) << 48 | (offset & 0xffffffffffffull);
}
GN_FN gn_u32 gn_place_region(gn_u64 place) { return (gn_u32)(place >> 48) & (GN_REGIONS - 1); }
GN_FN gn_u64 gn_place_offset(gn_u64 place) { return place & 0xffffffffffffull; }

// ---- transmit slots ---------------------------------------------------------------------------------------

enum gn_flags {
    GN_INLINE = 1,    // put: the bytes are in the slot, up to gn_inline_most
    GN_SIGNAL = 2,    // put: then adds to the place in word 4
    GN_RESULT = 4,    // add, cas: previous value is written to the place in word 6
    GN_TOP = 8,       // bit 63 of the operand
    GN_SPLIT = 16,    // send, put, get: a second segment
    GN_IMM = 32,      // send, put without a signal: an immediate value
    GN_COMPARED = 64, // cas: bit 63 of the compared value
};

// X(NAME, name, words: bit k: word k may be used, bit 0: bytes in word 0; allowed flags, description).
#define GN_OP_ROWS(X)                                                                                        \
    X(NOP, "nop", 0x80, 0, "nothing: a ticket that isn't needed after all")                                  \
    X(SEND, "send", 0xff, GN_SPLIT | GN_IMM, "sends a packet of one or two segments, at a time, to a peer")  \
    X(PUT, "put", 0xff, GN_INLINE | GN_SIGNAL | GN_TOP | GN_SPLIT | GN_IMM,                                  \
      "bytes to a remote region, and a signal or a packet without bytes")                                    \
    X(GET, "get", 0xcf, GN_SPLIT, "bytes from a remote region")                                              \
    X(ADD, "add", 0xf0, GN_RESULT | GN_TOP, "adds to 64 bits of a remote region: a signal, fetch-and-add")   \
    X(COPY, "copy", 0x8b, 0, "bytes from one of the context's regions to another")                           \
    X(FILE, "file", 0x8b, 0, "bytes to a writer of the context, behind what its file has")                   \
    X(CAS, "cas", 0xf2, GN_RESULT | GN_TOP | GN_COMPARED, "compares 64 bits of a remote region, and swaps")  \
    X(WAIT, "wait", 0x8a, 0, "waits until a ticket of a ring of the context has completed")

enum gn_op {
#define X(id, ...) GN_OP_##id,
    GN_OP_ROWS(X)
#undef X
        GN_OPS
};

// Inline bytes: seven each in words 1, 2, 6, 5 and 4, lowest first; with a signal in the first three, with an
// immediate value in the first four.
#define GN_INLINE_BYTES  35
#define GN_INLINE_IMM    28
#define GN_INLINE_SIGNAL 21

// Words, below the lap bit:
// 0  op, 7 bits from 56; flags, 8 from 48; 16 zero bits; bytes, 32 from 0
// 1  local place: source of send, put, copy and file; destination of get. cas: low 63 bits of the compared
// value. wait: low 63 bits of the other ring's ticket
// 2  send: time in ns since the session's start; 0: immediately. put, get: bytes of the second segment
// 3  send: connection, 0: the queue's peer. put, get: remote place. copy: destination. file: number of the
// writer. wait: number of the transmit ring, from 0
// 4  place of the 64 bits to which the operand is added, or that are compared. With GN_IMM: the immediate
// value, 32 bits in the host's order, which the receiver gets with the packet, or with one without bytes
// 5  low 63 bits of the operand. send: bytes of the second segment
// 6  place of the second segment. add, cas: place for the result
// 7  low 63 bits of the ticket
typedef struct gn_slot {
    gn_u64 w[GN_TX_WORDS];
} gn_slot;

// ---- receive slots ----------------------------------------------------------------------------------------

// 0 place; 1 flow, or the immediate value if there is one, 32 bits from 0, bytes, 31 from 32; 2 time;
// 3 gn_rx_word and gn_rx_imm
typedef struct gn_rx_slot { // a received segment
    gn_u64 w[GN_RX_WORDS];
} gn_rx_slot;

// What the immediate value of a packet came with. A put's packet has no bytes.
enum gn_imm_of { GN_IMM_NONE, GN_IMM_SEND, GN_IMM_PUT };

// Builds word 3: receiving connection; segment number; whether the next descriptor is of the same packet.
GN_FN gn_u64 gn_rx_word(gn_u32 conn, gn_u32 segment, gn_u32 more) {
    return (gn_u64)(more != 0) << 62 | (gn_u64)(segment & 15) << 56 | conn;
}

// Builds the bits of word 3 that say what an immediate value came with.
GN_FN gn_u64 gn_rx_imm(gn_u32 of) { return (gn_u64)(of & 3) << 60; }

#endif
