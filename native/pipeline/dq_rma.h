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
    dq_op *op; // one part of it ends with this operation; NULL: nobody asks
} dq_rma;

// Begins n operations of a running session on a queue, in their order. All are looked at first: with
// INVALID_PARAMETER (diag names the first at fault, from 0) none has begun. *begun may be less than n: then
// the queue is full, and the rest is the caller's to post again. NOT_SUPPORTED: the engine has none;
// NOT_READY: the session doesn't run. One thread a queue.
int dq_rma_post(dq_queue *q, const dq_rma *list, uint32_t n, uint32_t *begun, dq_diag *diag);

#endif
