// rdma_cq.h: completion queues.
#ifndef DQI_RDMA_CQ_H
#define DQI_RDMA_CQ_H

#include "core/dq_core.h"
#include "engine/rdma/verbs_dl.h"

#include <stdatomic.h>

#define DQI_RDMA_POLL 32 // completions looked at together
#define DQI_RDMA_CQS  32 // of a queue, at most

typedef struct dqi_rdma_queue dqi_rdma_queue;

typedef struct dqi_rdma_cq {
    vb_cq *cq;                // of some of a queue's connections
    uint32_t room, used;      // entries; under dqi_rdma.lock
    _Atomic uint32_t sending; // work requests that were posted to send
    bool armed;               // it tells the channel of its next completion, or has told it
} dqi_rdma_cq;

// As many as a queue's connections need, and what was taken and not looked at yet. Its poller's.
typedef struct dqi_rdma_cqs {
    vb_comp_channel *channel;
    dqi_rdma_cq list[DQI_RDMA_CQS];
    _Atomic uint32_t n_cqs; // grows, under dqi_rdma.lock
    uint32_t turn;          // how often one was polled: they are in turn
    bool receives;          // else nothing comes while nothing is being sent
    uint32_t at, n;
    vb_wc wc[DQI_RDMA_POLL];
} dqi_rdma_cqs;

// Control thread.
int dqi_rdma_cqs_open(dqi_rdma_queue *x, dq_diag *diag);
void dqi_rdma_cqs_close(dqi_rdma_cqs *q);
// A completion queue of x with room for n more entries, or NULL and *err. Under dqi_rdma.lock.
dqi_rdma_cq *dqi_rdma_cq_for(dqi_rdma_queue *x, uint32_t n, int *err);
// The next completion, which stays the next until `at` is moved on; NULL: none. Queue's poller.
vb_wc *dqi_rdma_cq_next(dqi_rdma_cqs *q);
// Has the channel's descriptor tell of the next completion; false: there is one already.
bool dqi_rdma_cqs_arm(dqi_rdma_cqs *q);
// The descriptor told.
void dqi_rdma_cqs_woken(dqi_rdma_cqs *q);

#endif
