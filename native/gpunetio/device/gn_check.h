// gn_check.h: what the proxy asks of a transmit slot before it does what the slot says: a kernel is
// untrusted.
#ifndef GN_CHECK_H
#define GN_CHECK_H

#include "gpunetio/device/gn_ring.h"

// X(NAME, what is wrong with the descriptor, or what became of it).
#define GN_FAULT_ROWS(X)                                                                                     \
    X(NONE, "nothing")                                                                                       \
    X(OP, "an operation that there isn't, or that the ring doesn't take")                                    \
    X(FLAGS, "a flag that there isn't, or that the operation doesn't have")                                  \
    X(WORDS, "a bit is set that means nothing")                                                              \
    X(TICKET, "the slot has another ticket than its turn")                                                   \
    X(REGION, "a region that the kernel was not given")                                                      \
    X(RANGE, "bytes past the end of a region")                                                               \
    X(RIGHTS, "a region that may not be read, written, or added to so")                                      \
    X(ALIGN, "a place of 64 bits that is no multiple of 8")                                                  \
    X(LENGTH, "no bytes, more than an inline put has, or more than a packet")                                \
    X(HOLE, "the ticket was taken, and did not come in time")                                                \
    X(PEER, "a connection that there isn't")                                                                 \
    X(FAILED, "the engine could not do it")                                                                  \
    X(STOPPED, "it was not done when the session stopped")                                                   \
    X(WRITER, "a writer that there isn't")

enum gn_fault {
#define X(id, ...) GN_FAULT_##id,
    GN_FAULT_ROWS(X)
#undef X
        GN_FAULTS
};
// In words; NULL: there is none of this number.
const char *gn_fault_name(int fault);

// What a transmit slot says, read in one go by gn_read.
typedef struct gn_desc {
    gn_u32 op, flags, bytes;
    gn_u32 bytes2;                   // send with GN_SPLIT
    gn_u32 conn;                     // send; file: the writer's number
    gn_u64 time;                     // send, ns
    gn_u64 from;                     // place: what is sent, put, copied, written; where a get comes to
    gn_u64 from2;                    // place: a second segment
    gn_u64 to;                       // place: put and get, the remote one; copy, the one it goes to
    gn_u64 signal;                   // place that the operand is added to
    gn_u64 operand;                  // 64 bits
    gn_u64 result;                   // place
    gn_u8 data[GN_INLINE_BYTES + 3]; // put with GN_INLINE; else whatever it was
} gn_desc;

// What the context's kernel was given, of the proxy's own copy.
typedef struct gn_given {
    const gn_region *regions;
    gn_u32 n_regions;
    gn_u32 ops;  // of the ring
    gn_u32 most; // bytes of a packet
} gn_given;

// What is wrong with what gn_read gave (words without laps), of the ticket whose turn it is: a gn_fault, the
// first in their order; GN_FAULT_NONE: nothing, and *out is what it says. Each place of *out lies, with all
// its bytes, in a region with the rights for it. Whether there is such a connection or writer the caller
// asks.
int gn_check(const gn_u64 w[GN_TX_WORDS], gn_u64 ticket, const gn_given *given, gn_desc *out);

#endif
