// verbs.h: what the parts of the library share that stands in for libibverbs.
#ifndef NIC_VERBS_H
#define NIC_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define DEVICES   1024 // in pairs: what one sends the other gets
#define MAX_FRAME 9022
#define MAX_WR    4096
#define MAX_SGE   8

typedef struct nic_mr {
    struct ibv_mr mr; // first; its address is the one that sges name
    struct nic_mr *next;
    uint8_t *alias; // where a DMA-BUF is mapped; NULL: the memory is at its address
} nic_mr;

typedef struct nic_cq {
    struct ibv_cq cq; // first
    uint32_t head, tail;
    bool armed;
    int users;
    unsigned events, acked;
    struct {
        struct ibv_wc wc;
        struct nic_qp *sender; // of a send, whose slots up to `at` are free when it is polled
        uint32_t at;
    } * entries;
} nic_cq;

typedef struct nic_qp {
    struct ibv_qp qp; // first
    struct ibv_qp_cap cap;
    int all_signaled, flows;
    uint32_t recv_head, recv_tail, sent, freed;
    struct {
        uint64_t wr_id;
        int n;
        struct ibv_sge sge[MAX_SGE];
    } * recv;
} nic_qp;

typedef struct nic_flow {
    struct ibv_flow flow; // first
    struct nic_flow *next;
    nic_qp *qp;
    struct ibv_flow_attr *attr; // a copy, with its specs
} nic_flow;

typedef struct nic_device {
    struct ibv_device device; // first
    uint32_t index;
    nic_flow *flows; // in the order in which they are asked
    nic_mr *mrs;
    int pds, cqs, channels, open;
    uint64_t steered, by_default, unwanted, no_buffer;
} nic_device;

// Ends the program: a rule of libibverbs was broken.
void nic_broken(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
// A frame has arrived. Under the lock.
void nic_deliver(nic_device *d, const uint8_t *frame, uint32_t len);
void nic_complete(nic_cq *q, struct ibv_wc wc, nic_qp *sender, uint32_t at);
// Everything that is posted comes back.
void nic_flush(nic_qp *q);
// Where what an sge names is, which has to be registered with `need`; NULL: it isn't.
uint8_t *nic_reach(const nic_qp *q, const struct ibv_sge *s, int need);

struct ibv_flow *nic_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int nic_destroy_flow(struct ibv_flow *flow);
nic_flow *nic_match(const nic_device *d, const uint8_t *frame, uint32_t len);
extern pthread_mutex_t nic_lock;
static inline nic_device *nic_of(const struct ibv_context *c) { return (nic_device *)c->device; }

#endif
