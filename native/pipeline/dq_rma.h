// dq_rma.h: operations that name their memory: messages, and reads and writes of a peer's memory, on engines
// that have them (RDMA). Their words are those of the InfiniBand verbs.
#ifndef DQ_RMA_H
#define DQ_RMA_H

#include "pipeline/dq_op.h"

typedef enum dq_rma_kind {
    DQ_RMA_SEND,         // a message; into the memory of the peer's next RECV
    DQ_RMA_RECV,         // room for a message
    DQ_RMA_WRITE,        // local memory into the peer's
    DQ_RMA_READ,         // the peer's into local memory
    DQ_RMA_FETCH_ADD,    // adds `operand` to 8 bytes of the peer's, in host order; what was there: local
    DQ_RMA_COMPARE_SWAP, // puts `operand` where `compare` is; what was there: local
    DQ_RMA_KINDS
} dq_rma_kind;

typedef struct dq_rma {
    int32_t kind;            // dq_rma_kind
    uint32_t conn;           // of the queue's interface
    const dq_region *region; // local memory: length bytes at `offset` from the region's beginning
    uint64_t offset;
    uint32_t length; // 0 where nothing but the immediate goes; 8 of atomics
    uint32_t imm;    // immediate, with has_imm: of SEND and WRITE
    int32_t has_imm;
    uint64_t remote, key; // the peer's address and the key of its region: WRITE, READ, atomics
    uint64_t operand, compare;
    uint32_t *got; // of a RECV: gets how long the message was, before the op's part ends; NULL
    dq_op *op;     // one part of it ends with this operation; NULL: nobody asks
} dq_rma;

// Begins n operations of a running session on a queue, in their order. All are looked at first: with
// INVALID_PARAMETER (diag names the first at fault, from 0) none has begun. *begun may be less than n: then
// the queue is full, and the rest is the caller's to post again. NOT_SUPPORTED: the engine has none;
// NOT_READY: the session doesn't run. One thread a queue.
int dq_rma_post(dq_queue *q, const dq_rma *list, uint32_t n, uint32_t *begun, dq_diag *diag);

// ---- bursts -----------------------------------------------------------------------------------------------

// A burst of n packets with buffers of r, whichever regions q has, lengths 0: for operations of q's engine
// alone. The caller's. As dq_tx_alloc.
int dq_rma_alloc(dq_queue *q, dq_region *r, uint32_t n, dq_burst **out);
// One operation over all packets of b, in their order and without gaps: WRITE to the peer's memory at
// at->remote, READ from there, or an atomic, whose 8 bytes are the first of the first packet. SEND sends each
// packet, of one segment, as a message; RECV gives each, with its length as room, to the peer's next messages
// in turn, and gets their lengths. at: kind, conn,
// remote, key, imm (WRITE: told with the last byte), operand and compare. *op is the caller's; it holds b, on
// top of the caller's reference, until the end. NO_SPACE_AVAILABLE: the queue is full; INVALID_PARAMETER:
// diag says why.
int dq_rma_burst(dq_queue *q, dq_burst *b, const dq_rma *at, dq_op **op, dq_diag *diag);
// Has a burst know its bytes again, once an operation has written lengths. Its holder.
void dq_rma_received(dq_burst *b);

// ---- memory that is lent ----------------------------------------------------------------------------------

// What a peer lends: bytes at an address of its own, which its key opens for what `access` says (dq_access).
typedef struct dq_remote {
    char name[DQ_NAME_LEN];
    uint64_t addr, bytes, key;
    uint32_t access;
    uint32_t slots, slot_bytes; // how it is divided; 0: it isn't
} dq_remote;

// A region to be lent under a name.
typedef struct dq_loan {
    dq_region *region;
    char name[DQ_NAME_LEN];
    uint32_t access; // of the region's
    uint32_t slots, slot_bytes;
} dq_loan;

// A region that is lent.
typedef struct dq_lease {
    dq_remote what; // as the peer is told
    dq_region *region;
    void *engine; // the engine's own; NULL: it was taken back
} dq_lease;

// Lends a region to the peer of an open connection, and tells it, if it is of our kind. Of the region nothing
// may be a queue's: peers write when they like. INVALID_PARAMETER: the name is taken, or the region lacks the
// access, or is a queue's; diag says so. Control thread.
int dq_lend(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag);
// Takes it back: when it returns no peer can read or write there any more. What is under way fails, and its
// connection ends. The end of the session does so, too. Control thread.
int dq_lease_revoke(dq_iface *i, dq_lease *lease);
// The k-th of what the peer of a connection has lent; false: there are not so many. Any thread.
bool dq_lent(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out);
// The same by its name; INVALID_PARAMETER: diag lists what there is.
int dq_lent_named(dq_iface *i, uint32_t conn, const char *name, dq_remote *out, dq_diag *diag);
// Tells what a peer of another kind lends.
int dq_lent_tell(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag);

#endif
