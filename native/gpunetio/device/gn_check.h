// gn_check.h: validation of a transmit slot by the proxy before it executes the operation: kernels are
// untrusted.
#ifndef GN_CHECK_H
#define GN_CHECK_H

#include "gpunetio/device/gn_ring.h"

// X(NAME, what is wrong with the descriptor, or why it failed).
#define GN_FAULT_ROWS(X)                                                                                     \
    X(NONE, "nothing")                                                                                       \
    X(OP, "an operation that there isn't, or that the ring doesn't take")                                    \
    X(FLAGS, "a flag that there isn't, or that the operation doesn't have")                                  \
    X(WORDS, "a bit is set that means nothing")                                                              \
    X(TICKET, "the slot has another ticket than its turn")                                                   \
    X(REGION, "a region that the kernel was not given")                                                      \
    X(RANGE, "bytes past the end of a region")                                                               \
    X(RIGHTS, "a region that may not be read, written, or added to so")                                      \
    X(ALIGN, "the address of 64 bits is not a multiple of 8")                                                \
    X(LENGTH, "no bytes, more than an inline put has, or more than a packet")                                \
    X(HOLE, "the ticket was taken, and did not come in time")                                                \
    X(PEER, "a connection that there isn't")                                                                 \
    X(FAILED, "the engine could not do it")                                                                  \
    X(STOPPED, "it was not done when the session stopped")                                                   \
    X(WRITER, "a writer that there isn't")                                                                   \
    X(WAIT, "the ticket of another ring for which it waits failed, or did not complete in time")             \
    X(IMM, "an immediate value that the queue's engine does not carry")                                      \
    X(FLUSHED, "an entry of its queue before it failed, and stopped the queue")

enum gn_fault {
#define X(id, ...) GN_FAULT_##id,
    GN_FAULT_ROWS(X)
#undef X
        GN_FAULTS
};
// Returns the text of an error; NULL: invalid number.
const char *gn_fault_name(int fault);

// Decoded contents of a transmit slot, read once by gn_read.
typedef struct gn_desc {
    gn_u32 op, flags, bytes;
    gn_u32 bytes2;                   // with GN_SPLIT
    gn_u32 conn;                     // send; file: number of the writer; wait: number of the ring
    gn_u64 time;                     // send, ns
    gn_u64 from;                     // place: source of send, put, copy and file; destination of get
    gn_u64 from2;                    // place: second segment
    gn_u64 to;                       // place: remote one of put and get; destination of copy
    gn_u64 signal;                   // place to which the operand is added
    gn_u64 operand;                  // 64 bits
    gn_u64 compare;                  // 64 bits
    gn_u64 result;                   // place
    gn_u32 imm;                      // with GN_IMM
    gn_u8 data[GN_INLINE_BYTES + 5]; // put with GN_INLINE; otherwise undefined
} gn_desc;

// Regions and operations of the context's kernel, from the proxy's own copy.
typedef struct gn_given {
    const gn_region *regions;
    gn_u32 n_regions;
    gn_u32 ops;  // allowed on the ring
    gn_u32 most; // maximum bytes of a packet
} gn_given;

// Checks the words returned by gn_read (without lap bits) for the given ticket. Returns the first error, in
// the order of gn_fault, or GN_FAULT_NONE with the decoded slot in *out. Each place in *out is then within a
// region with the required rights, with all its bytes. The caller checks that connection, writer and ring
// exist.
int gn_check(const gn_u64 w[GN_TX_WORDS], gn_u64 ticket, const gn_given *given, gn_desc *out);
// Checks n bytes at a place for the required rights, of gn_rights; returns a gn_fault.
int gn_check_place(const gn_given *given, gn_u64 place, gn_u64 n, gn_u32 rights);

#endif
