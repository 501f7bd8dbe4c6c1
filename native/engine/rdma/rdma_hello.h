// rdma_hello.h: what two ends tell each other with a request and its answer.
#ifndef DQI_RDMA_HELLO_H
#define DQI_RDMA_HELLO_H

#include "engine/rdma/rdma.h"

// As it is on the wire.
typedef struct dqi_rdma_hello {
    uint8_t bytes[DQI_RDMA_PRIVATE];
    uint8_t mark[6];
    uint8_t n;     // of the bytes
    uint8_t notes; // 1: whoever says this has room for notes, and sends them inline
} dqi_rdma_hello;

// Private data that is too long is refused.
int dqi_rdma_check_private(const dqi_rdma *r, const dq_connect *to, dq_diag *diag);
// What is told with a request or its answer.
void dqi_rdma_say_hello(const dqi_rconn *c, dqi_rdma_hello *out);
// Takes down what the peer told: its private data, and whether it is of our kind. said NULL: nothing.
// Keeper's thread.
void dqi_rdma_hear_hello(dqi_rconn *c, const void *said, uint8_t len);

#endif
