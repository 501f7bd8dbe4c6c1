// rdma_hello.h: private data exchanged in connection requests and responses.
#ifndef DQI_RDMA_HELLO_H
#define DQI_RDMA_HELLO_H

#include "engine/rdma/rdma.h"

// Wire format.
typedef struct dqi_rdma_hello {
    uint8_t bytes[DQI_RDMA_PRIVATE];
    uint8_t mark[6];
    uint8_t n;     // length of `bytes`
    uint8_t notes; // 1: the sender has buffers for notes and sends them inline
} dqi_rdma_hello;

// Rejects private data that is too long.
int dqi_rdma_check_private(const dqi_rdma *r, const dq_connect *to, dq_diag *diag);
// Fills in the data sent with a request or response.
void dqi_rdma_write_hello(const dqi_rconn *c, dqi_rdma_hello *out);
// Stores the peer's private data and whether it uses this engine; data NULL: none. Keeper's thread.
void dqi_rdma_read_hello(dqi_rconn *c, const void *data, uint8_t len);

#endif
