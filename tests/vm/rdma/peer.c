// peer.c: a peer of the engine rdma that shares no code with it, on librdmacm and libibverbs as their manual
// pages have them. It serves one connection: lends 1 MiB, sends where that is in its first message, and
// reports of each message that comes: "IMM LENGTH SUM" (a WRITE with immediate: of the lent memory's first 1
// MiB), until the peer goes. Then it reports the lent memory's sum.
//
//   peer ADDRESS PORT
#include <arpa/inet.h>
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENT (1u << 16)
#define SLOT (1u << 16)
#define N    16

static void need(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static unsigned sum(const unsigned char *p, unsigned n) {
    unsigned s = 0;
    for (unsigned k = 0; k < n; k++)
        s = s * 31 + p[k];
    return s;
}

static struct rdma_cm_event *next(struct rdma_event_channel *ch, enum rdma_cm_event_type want) {
    struct rdma_cm_event *e;
    need(rdma_get_cm_event(ch, &e) == 0, "event");
    if (e->event != want) fprintf(stderr, "peer: event %d, want %d\n", e->event, want), exit(1);
    return e;
}

static void post(struct rdma_cm_id *id, unsigned char *at, struct ibv_mr *mr, unsigned k) {
    struct ibv_sge sge = {(uintptr_t)(at + k * SLOT), SLOT, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = k, .sg_list = &sge, .num_sge = 1}, *bad;
    need(ibv_post_recv(id->qp, &wr, &bad) == 0, "recv");
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    if (argc != 3) return 2;
    at.sin_port = htons((unsigned short)atoi(argv[2]));
    need(inet_pton(AF_INET, argv[1], &at.sin_addr) == 1, "address");
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *listener, *id;
    need(ch && rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0, "id");
    need(rdma_bind_addr(listener, (struct sockaddr *)&at) == 0 && rdma_listen(listener, 1) == 0, "listen");
    printf("ready\n");
    fflush(stdout);
    struct rdma_cm_event *e = next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
    id = e->id;
    struct rdma_conn_param p = {.private_data = "an answer",
                                .private_data_len = 9,
                                .responder_resources = 8,
                                .initiator_depth = 8,
                                .rnr_retry_count = 7};
    printf("private %s\n", (const char *)e->param.conn.private_data); // filled up with zeros
    rdma_ack_cm_event(e);

    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0);
    unsigned char *lent = calloc(1, LENT), *slots = malloc(N * SLOT);
    struct ibv_mr *mine = ibv_reg_mr(pd, slots, N * SLOT, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_mr *open = ibv_reg_mr(pd, lent, LENT,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                         IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    need(pd && cq && mine && open, "memory");
    struct ibv_qp_init_attr a = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4, .max_recv_wr = N, .max_send_sge = 1, .max_recv_sge = 1}};
    need(rdma_create_qp(id, pd, &a) == 0, "queue pair");
    for (unsigned k = 1; k < N; k++)
        post(id, slots, mine, k);
    need(rdma_accept(id, &p) == 0, "accept");
    rdma_ack_cm_event(next(ch, RDMA_CM_EVENT_ESTABLISHED));

    int len = sprintf((char *)slots, "%llu %u %u", (unsigned long long)(uintptr_t)lent, open->rkey, LENT);
    struct ibv_sge sge = {(uintptr_t)slots, (unsigned)len, mine->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    need(ibv_post_send(id->qp, &wr, &bad) == 0, "send");

    for (;;) {
        struct ibv_wc wc;
        int n = ibv_poll_cq(cq, 1, &wc);
        need(n >= 0, "poll");
        if (n == 0) continue;
        if (wc.status != IBV_WC_SUCCESS) break; // flushed: it has gone
        if (!(wc.opcode & IBV_WC_RECV)) continue;
        int written = wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
        const unsigned char *bytes = written ? lent : slots + wc.wr_id * SLOT;
        printf("%s %u %u\n", wc.wc_flags & IBV_WC_WITH_IMM ? "imm" : "-",
               wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0,
               written ? sum(lent, LENT) : sum(bytes, wc.byte_len));
        fflush(stdout);
        post(id, slots, mine, (unsigned)wc.wr_id);
    }
    printf("end %u\n", sum(lent, LENT));
    rdma_disconnect(id);
    return 0;
}
