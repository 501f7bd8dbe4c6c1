// rdma_ops.c: operations with named memory: reads and writes of a peer's memory, atomics, messages.
//
// They use a connection's send queue, in order with its messages; an op is notified when its last request
// completes, and for several before. Receives use the receive queue. A list that does not fit as a whole is
// not started if it would fit into an empty queue.
#include "engine/rdma/rdma_ops.h"

#include <arpa/inet.h>
#include <string.h>

static int opcode_of(const dq_rma *m) {
    switch (m->kind) {
    case DQ_RMA_SEND:
        return m->has_imm ? VB_WR_SEND_WITH_IMM : VB_WR_SEND;
    case DQ_RMA_WRITE:
        return m->has_imm ? VB_WR_RDMA_WRITE_WITH_IMM : VB_WR_RDMA_WRITE;
    case DQ_RMA_READ:
        return VB_WR_RDMA_READ;
    case DQ_RMA_FETCH_ADD:
        return VB_WR_ATOMIC_FETCH_AND_ADD;
    }
    return VB_WR_ATOMIC_CMP_AND_SWP;
}

static uint64_t place_of(const dq_rma *m) { return m->region ? m->region->offset + m->offset : 0; }

static vb_sge memory_of(const dqi_rdma *r, const dq_rma *m) {
    if (!m->region) return (vb_sge){0};
    return (vb_sge){.addr = (uintptr_t)(m->region->base + place_of(m)),
                    .length = m->length,
                    .lkey = dqi_rdma_lkey(r, place_of(m))};
}

static void describe(vb_send_wr *wr, const dq_rma *m) {
    wr->opcode = opcode_of(m);
    wr->imm_data = htonl(m->imm);
    if (m->kind == DQ_RMA_WRITE || m->kind == DQ_RMA_READ) {
        wr->wr.rdma.remote_addr = m->remote;
        wr->wr.rdma.rkey = (uint32_t)m->key;
    } else if (m->kind != DQ_RMA_SEND) {
        bool add = m->kind == DQ_RMA_FETCH_ADD;
        wr->wr.atomic.remote_addr = m->remote;
        wr->wr.atomic.rkey = (uint32_t)m->key;
        wr->wr.atomic.compare_add = add ? m->operand : m->compare;
        wr->wr.atomic.swap = add ? 0 : m->operand;
    }
}

// Fails an operation that cannot be posted, and its connection if the device reported the error.
static void fail(dqi_rconn *c, const dq_rma *m, int err) {
    dq_op_lost(m->op, 1, c ? strerror(err) : "its connection is not open");
    if (c) dqi_rconn_break(c, DQ_ESYS - err);
}

// Accounts a message as a packet of its queue in the ledger.
static void take_in(dq_queue *q, uint32_t bytes) {
    dqi_gauge_add(&q->held, 1);
    dqi_add_shared(&q->c.in, 1);
    dqi_add_shared(&q->c.in_bytes, bytes);
}

// Posts k operations of one connection in one chain. Under its lock.
static void send_run(dq_queue *q, dqi_rconn *c, const dq_rma *list, uint32_t k) {
    vb_send_wr wr[DQI_RDMA_DEPTH], *bad = wr;
    vb_sge sge[DQI_RDMA_DEPTH];
    for (uint32_t i = 0; i < k; i++) {
        const dq_rma *m = &list[i];
        uint32_t at = c->sent_tail + i;
        bool signaled = i + 1 == k || list[i + 1].op != m->op || ++c->unsignalled >= DQI_RDMA_SIGNAL;
        if (signaled) c->unsignalled = 0;
        sge[i] = memory_of(c->r, m);
        wr[i] = (vb_send_wr){.wr_id = (uint64_t)dqi_rconn_id(c) << 32 | DQI_RDMA_SEND | at,
                             .next = i + 1 < k ? &wr[i + 1] : NULL,
                             .sg_list = &sge[i],
                             .num_sge = m->length > 0,
                             .send_flags = signaled ? VB_SEND_SIGNALED : 0};
        if (m->kind == DQ_RMA_SEND && dqi_rdma_is_ud(c->r)) {
            wr[i].wr.ud.ah = c->ah;
            wr[i].wr.ud.remote_qpn = c->qpn;
            wr[i].wr.ud.remote_qkey = c->qkey;
        }
        describe(&wr[i], m);
        bool message = m->kind == DQ_RMA_SEND;
        c->sent[at % DQI_RDMA_DEPTH] = (dqi_rdma_sent){
            .queue = q, .op = m->op, .bytes = m->length, .packet = message, .one_sided = !message};
        if (message) take_in(q, m->length);
    }
    int err = vb_post_send(c->qp, wr, &bad);
    uint32_t posted = err == 0 ? k : (uint32_t)(bad - wr);
    dqi_rconn_posted(c, posted);
    for (uint32_t i = posted; i < k; i++) {
        if (list[i].kind == DQ_RMA_SEND) dqi_add_shared(&q->c.dropped[DQ_DROP_SEND_ERROR], 1);
        if (list[i].kind == DQ_RMA_SEND) dqi_gauge_add(&q->held, -1);
        fail(c, &list[i], err);
    }
}

// Posts one receive. Under the connection's lock; returns false if there is no room.
static bool receive(dqi_rconn *c, const dq_rma *m) {
    if (c->recv_tail - c->recv_head == DQI_RDMA_DEPTH) return false;
    vb_sge sge = memory_of(c->r, m);
    vb_recv_wr wr = {.wr_id = (uint64_t)dqi_rconn_id(c) << 32 | c->recv_tail,
                     .sg_list = &sge,
                     .num_sge = m->length > 0},
               *bad;
    int err = vb_post_recv(c->qp, &wr, &bad);
    if (err != 0) {
        fail(c, m, err);
        return true;
    }
    c->recv[c->recv_tail++ % DQI_RDMA_DEPTH] =
        (dqi_rdma_recv){.op = m->op, .got = m->got, .named = true, .state = DQI_RECV_POSTED};
    c->n_posted++;
    return true;
}

// Returns the number of leading operations posted together: of one connection and one direction.
static uint32_t run_of(const dq_rma *list, uint32_t n) {
    uint32_t k = 1;
    while (k < n && k < DQI_RDMA_DEPTH && list[k].conn == list->conn && list[k].kind != DQ_RMA_RECV)
        k++;
    return list->kind == DQ_RMA_RECV ? 1 : k;
}

// Starts the next run; returns its operations, 0: no room for the whole run.
static uint32_t begin(dq_queue *q, const dq_rma *list, uint32_t n) {
    dqi_rdma *r = dqi_rdma_queue_of(q)->r;
    dqi_rconn *c = dqi_rconn_find(r, list->conn);
    uint32_t k = run_of(list, n);
    if (c) dqi_rconn_lock(c);
    bool open = c && c->qp && !c->flushing && dqi_rconn_state(c) == DQI_CONN_OPEN &&
                !atomic_load(&c->conn.broken) && !(dqi_rdma_is_ud(r) && !c->ah && list->kind != DQ_RMA_RECV);
    if (!open) {
        for (uint32_t i = 0; i < k; i++)
            fail(NULL, &list[i], 0);
    } else if (list->kind == DQ_RMA_RECV) {
        k = receive(c, list);
    } else if (k > DQI_RDMA_DEPTH - dqi_rconn_sending(c) || c->wait_head != c->wait_tail) {
        k = 0; // waiting packets are sent first
    } else {
        send_run(c->conn.tx ? c->conn.tx : q, c, list, k);
    }
    if (c) dqi_rconn_unlock(c);
    return k;
}

uint32_t dqi_rdma_post(dq_queue *q, const dq_rma *list, uint32_t n) {
    uint32_t done = 0, k;
    while (done < n && (k = begin(q, list + done, n - done)) > 0)
        done += k;
    return done;
}

const char *dqi_rdma_refuses(dq_queue *q, const dq_rma *m) {
    const dqi_rdma *r = dqi_rdma_queue_of(q)->r;
    const dqi_rconn *c = dqi_rconn_find(r, m->conn);
    const vb_device_attr *a = &r->device->attr;
    bool atomic = m->kind == DQ_RMA_FETCH_ADD || m->kind == DQ_RMA_COMPARE_SWAP;
    if (m->region && m->length > 0 && dqi_rdma_lkey(r, place_of(m)) == 0)
        return "its region is not registered: the device cannot access it (see the report)";
    if (dqi_rdma_is_ud(r) && m->kind > DQ_RMA_RECV) return "datagrams (UD) support messages only";
    if (dqi_rdma_is_ud(r) && m->kind == DQ_RMA_SEND && m->length > 128u << r->device->port.active_mtu)
        return "a datagram (UD) cannot be longer than the MTU";
    if (dqi_rdma_transport(r) == DQ_TRANSPORT_UC && (m->kind == DQ_RMA_READ || atomic))
        return "unreliable connections (UC) do not support READ and atomics";
    if (atomic && a->atomic_cap == VB_ATOMIC_NONE) return "the device does not support atomics";
    if (m->kind != DQ_RMA_RECV && m->length > r->device->port.max_msg_sz)
        return "it is longer than the device's message limit";
    if (c && c->ours && m->has_imm && m->imm == DQI_RDMA_NOTE)
        return "the immediate value 0xffffffff is reserved for the engine's notes";
    return NULL;
}
