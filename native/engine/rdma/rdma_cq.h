// rdma_cq.h: completion queues.
#ifndef DQI_RDMA_CQ_H
#define DQI_RDMA_CQ_H

#include "core/dq_core.h"
#include "engine/rdma/verbs_dl.h"

#include <stdatomic.h>

#define DQI_RDMA_POLL 32 // completions polled at once
#define DQI_RDMA_CQS  32 // limit per queue

typedef struct dqi_rdma_queue dqi_rdma_queue;

typedef struct dqi_rdma_cq {
    vb_cq *cq;                // shared by some of a queue's connections
    uint32_t room, used;      // entries; under conns.lock
    _Atomic uint32_t sending; // send work requests in flight
    bool armed;               // a notification is requested or pending
} dqi_rdma_cq;

// A queue's completion queues and completions polled but not yet handled. Used by its poller.
typedef struct dqi_rdma_cqs {
    vb_comp_channel *channel;
    dqi_rdma_cq list[DQI_RDMA_CQS];
    _Atomic uint32_t n_cqs; // grows, under conns.lock
    uint32_t turn;          // number of polls, for round robin
    bool receives;          // false: completions arrive only while sends are in flight
    uint32_t at, n;
    vb_wc wc[DQI_RDMA_POLL];
} dqi_rdma_cqs;

// Control thread.
int dqi_rdma_cqs_open(dqi_rdma_queue *x, dq_diag *diag);
void dqi_rdma_cqs_close(dqi_rdma_cqs *q);
// Returns a completion queue of x with n more entries, or NULL with *err. Under conns.lock.
dqi_rdma_cq *dqi_rdma_cq_for(dqi_rdma_queue *x, uint32_t n, int *err);
// Returns the next completion, which the caller consumes by advancing `at`; NULL: none. Queue's poller.
vb_wc *dqi_rdma_cq_next(dqi_rdma_cqs *q);
// Requests notifications of the next completions on the channel; returns false if one is pending already.
bool dqi_rdma_cqs_arm(dqi_rdma_cqs *q);
// Handles the channel's readiness.
void dqi_rdma_cqs_woken(dqi_rdma_cqs *q);

#endif
