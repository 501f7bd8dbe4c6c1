// matrix.c: what matrix.lua sends to: a server on librdmacm and libibverbs as their manual pages have them.
// For each run of its command line it takes so many connections, and looks at every message until all have
// gone: its length, its number (big endian, in the first four bytes, as far as they go) and the pattern
// behind it.
//
//   matrix ADDRESS PORT BYTES:CONNECTIONS:MESSAGES …
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct conn {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    unsigned char *at;
    unsigned seen, wrong;
    struct conn *next;
} conn;

static unsigned bytes, buffers;

static void need(int ok, const char *what) {
    if (ok) return;
    perror(what);
    exit(1);
}

static void post(conn *c, unsigned k) {
    struct ibv_sge sge = {(uintptr_t)(c->at + (size_t)k * (bytes + 1)), bytes + 1, c->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = k, .sg_list = &sge, .num_sge = 1}, *bad;
    need(ibv_post_recv(c->id->qp, &wr, &bad) == 0, "recv");
}

static int is_right(const conn *c, const unsigned char *p, unsigned len) {
    unsigned head = len < 4 ? len : 4, ok = len == bytes,
             want = c->seen & (head < 4 ? (1u << 8 * head) - 1 : ~0u), got = 0;
    for (unsigned k = 0; k < head; k++)
        got = got << 8 | p[k];
    for (unsigned k = head; k < len && ok; k++)
        ok = p[k] == (unsigned char)((k % 256) * 131 + 7);
    return ok && got == want;
}

static void look(conn *c) {
    struct ibv_wc wc[16];
    int n;
    while ((n = ibv_poll_cq(c->cq, 16, wc)) > 0)
        for (int k = 0; k < n; k++) {
            if (wc[k].status != IBV_WC_SUCCESS) continue; // flushed, at the end
            c->wrong += !is_right(c, c->at + (size_t)wc[k].wr_id * (bytes + 1), wc[k].byte_len);
            c->seen++;
            post(c, (unsigned)wc[k].wr_id);
        }
}

static conn *take(struct rdma_cm_id *id, conn *next) {
    conn *c = calloc(1, sizeof *c);
    struct rdma_conn_param p = {.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7};
    c->id = id;
    c->next = next;
    id->context = c;
    c->pd = ibv_alloc_pd(id->verbs);
    c->cq = ibv_create_cq(id->verbs, (int)buffers, NULL, NULL, 0);
    struct ibv_qp_init_attr make = {
        .send_cq = c->cq, .recv_cq = c->cq, .cap = {1, buffers, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    need(rdma_create_qp(id, c->pd, &make) == 0, "queue pair");
    c->at = malloc((size_t)buffers * (bytes + 1));
    c->mr = ibv_reg_mr(c->pd, c->at, (size_t)buffers * (bytes + 1), IBV_ACCESS_LOCAL_WRITE);
    need(c->mr != NULL, "memory");
    for (unsigned k = 0; k < buffers; k++)
        post(c, k);
    need(rdma_accept(id, &p) == 0, "accept");
    return c;
}

static void drop(conn *c) {
    look(c);
    rdma_disconnect(c->id);
    rdma_destroy_qp(c->id);
    ibv_dereg_mr(c->mr);
    ibv_destroy_cq(c->cq);
    ibv_dealloc_pd(c->pd);
    free(c->at);
}

int main(int argc, char **argv) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *listener;
    if (argc < 4) return 2;
    at.sin_port = htons((unsigned short)atoi(argv[2]));
    need(inet_pton(AF_INET, argv[1], &at.sin_addr) == 1, "address");
    need(ch && rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0, "id");
    need(rdma_bind_addr(listener, (struct sockaddr *)&at) == 0 && rdma_listen(listener, 64) == 0, "listen");
    printf("ready\n");
    fflush(stdout);
    for (int r = 3; r < argc; r++) {
        unsigned conns, messages, gone = 0, seen = 0, wrong = 0;
        conn *all = NULL;
        if (sscanf(argv[r], "%u:%u:%u", &bytes, &conns, &messages) != 3) return 2;
        buffers = bytes > 1000000 ? 2 : 128;
        while (gone < conns) {
            struct rdma_cm_event *e;
            struct pollfd fd = {.fd = ch->fd, .events = POLLIN};
            for (conn *c = all; c; c = c->next)
                if (c->id) look(c);
            if (poll(&fd, 1, 0) != 1) continue;
            need(rdma_get_cm_event(ch, &e) == 0, "event");
            struct rdma_cm_id *id = e->id;
            int kind = e->event;
            conn *c = kind == RDMA_CM_EVENT_CONNECT_REQUEST ? NULL : id->context;
            if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) all = take(id, all);
            rdma_ack_cm_event(e);
            if (kind != RDMA_CM_EVENT_DISCONNECTED) continue;
            drop(c);
            rdma_destroy_id(id);
            c->id = NULL;
            seen += c->seen;
            wrong += c->wrong;
            gone++;
        }
        printf("%u bytes, %u connections: %u messages, %u wrong\n", bytes, conns, seen,
               wrong + (seen != conns * messages));
        fflush(stdout);
    }
    return 0;
}
