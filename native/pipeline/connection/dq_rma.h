// dq_rma.h: operations that name their memory: messages, and reads and writes of a peer's memory, on RDMA
// engines. Terms are those of the InfiniBand verbs.
#ifndef DQ_RMA_H
#define DQ_RMA_H

#include "pipeline/dq_op.h"

typedef enum dq_rma_kind {
    DQ_RMA_SEND,         // sends a message into the memory of the peer's next RECV
    DQ_RMA_RECV,         // provides memory for one message
    DQ_RMA_WRITE,        // writes local memory to the peer's memory
    DQ_RMA_READ,         // reads the peer's memory into local memory
    DQ_RMA_FETCH_ADD,    // adds `operand` to 8 bytes of the peer, host order; old value: local
    DQ_RMA_COMPARE_SWAP, // replaces `compare` with `operand`; old value: local
    DQ_RMA_KINDS
} dq_rma_kind;

typedef struct dq_rma {
    int32_t kind;            // dq_rma_kind
    uint32_t conn;           // on the queue's interface
    const dq_region *region; // local memory: length bytes from `offset` in the region
    uint64_t offset;
    uint32_t length; // 0: only the immediate value is sent; 8 for atomics
    uint32_t imm;    // immediate value of SEND and WRITE, if has_imm
    int32_t has_imm;
    uint64_t remote, key; // the peer's address and the key of its region: WRITE, READ, atomics
    uint64_t operand, compare;
    uint32_t *got; // RECV: the message's length, written before the part completes; NULL
    dq_op *op;     // one of its parts completes with this operation; may be NULL
} dq_rma;

// Posts n operations of a running session on a queue, in order. All are checked first: on INVALID_PARAMETER
// (diag names the first invalid one, counted from 0) none is posted. *begun < n: the queue is full and the
// caller has to post the rest again. NOT_SUPPORTED: the engine has no such operations; NOT_READY: the session
// is not running. One thread per queue.
int dq_rma_post(dq_queue *q, const dq_rma *list, uint32_t n, uint32_t *begun, dq_diag *diag);

// ---- bursts -----------------------------------------------------------------------------------------------

// Allocates a burst of n packets with buffers of r, regardless of q's regions, lengths 0, for operations of
// q's engine only. The caller owns it. Errors as of dq_tx_alloc.
int dq_rma_alloc(dq_queue *q, dq_region *r, uint32_t n, dq_burst **out);
// Posts one operation over all packets of b, in order and without gaps: WRITE to the peer's memory at
// at->remote, READ from there, or an atomic on the first 8 bytes of the first packet. SEND sends each packet,
// of one segment, as a message; RECV offers each packet, its length as capacity, to the peer's next messages
// in turn, and sets the lengths. at: kind, conn, remote, key, imm (WRITE: delivered with the last byte),
// operand and compare. The caller owns *op, which holds its own reference to b until it completes.
// NO_SPACE_AVAILABLE: the queue is full; INVALID_PARAMETER: diag has the reason.
int dq_rma_burst(dq_queue *q, dq_burst *b, const dq_rma *at, dq_op **op, dq_diag *diag);
// Recomputes the burst's byte count after an operation has written lengths. Holder of the burst.
void dq_rma_received(dq_burst *b);

// ---- lent memory ------------------------------------------------------------------------------------------

// Memory lent by a peer: an address range and the key that grants the `access` (dq_access).
typedef struct dq_remote {
    char name[DQ_NAME_LEN];
    uint64_t addr, bytes, key;
    uint32_t access;
    uint32_t slots, slot_bytes; // layout: slots of slot_bytes each; 0: not divided
} dq_remote;

// A region to lend under a name.
typedef struct dq_loan {
    dq_region *region;
    char name[DQ_NAME_LEN];
    uint32_t access; // subset of the region's
    uint32_t slots, slot_bytes;
} dq_loan;

// A lent region.
typedef struct dq_lease {
    dq_remote what; // as announced to the peer
    dq_region *region;
    void *engine; // the engine's data; NULL: revoked
} dq_lease;

// Lends a region to the peer of an open connection and announces it, if the peer runs this program. No queue
// may use the region: peers write at any time. INVALID_PARAMETER: the name is in use, the region lacks the
// access, or a queue uses it; diag has the reason. Control thread.
int dq_lend(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag);
// Revokes the loan: when this returns, no peer can read or write the memory. Pending accesses fail, which
// closes their connection. The end of the session revokes all loans. Control thread.
int dq_lease_revoke(dq_iface *i, dq_lease *lease);
// Returns the k-th region lent by a connection's peer; false: k is out of range. Any thread.
bool dq_lent(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out);
// Finds a lent region by name. INVALID_PARAMETER: diag lists the existing names.
int dq_lent_named(dq_iface *i, uint32_t conn, const char *name, dq_remote *out, dq_diag *diag);
// Registers by hand a region lent by a peer that does not announce it.
int dq_lent_declare(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag);

#endif
