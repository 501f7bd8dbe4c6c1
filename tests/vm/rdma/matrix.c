// matrix.c: the other end of matrix.lua: a server on librdmacm and libibverbs as their manual pages have
// them. For each run of its command line it takes so many connections, lends each memory of its own, of which
// it gives in its first message, and reports how much of what has come is wrong when all have gone. OPERATION
// is what the client does:
//   send   messages, each checked when it comes: its length, its number (big endian, in the first four
//          bytes, as far as they go) and the pattern behind it
//   write  writes the same into the lent memory, one behind the other; what is around them stays as it was
//   imm    the same, and each immediate value is how many have been written by then: they are checked
//   read   reads such messages out of the lent memory, and sends what it has read
//   add    adds 1, 2, 3 … to 8 bytes
//   swap   exchanges these 8 bytes: 0 for 1, 1 for 2 …
//
//   matrix ADDRESS PORT OPERATION:BYTES:CONNECTIONS:MESSAGES …
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct conn {
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr, *open;
    unsigned char *at, *lent;
    unsigned seen, wrong, first; // the first that is wrong
    struct conn *next;
} conn;

#define BEFORE 3 // the first message's place in what is lent: no multiple of anything
#define BEHIND 61
#define FILL   0xee
#define EARLY  64

static char operation[8];
static unsigned bytes, buffers, messages;

static int is(const char *what) { return strcmp(operation, what) == 0; }

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

static unsigned char pattern(unsigned k) { return (unsigned char)((k % 256) * 131 + 7); }

static int is_right(unsigned number, const unsigned char *p, unsigned len) {
    unsigned head = len < 4 ? len : 4, ok = len == bytes,
             want = number & (head < 4 ? (1u << 8 * head) - 1 : ~0u), got = 0;
    for (unsigned k = 0; k < head; k++)
        got = got << 8 | p[k];
    for (unsigned k = head; k < len && ok; k++)
        ok = p[k] == pattern(k);
    return ok && got == want;
}

// ---- what is lent -----------------------------------------------------------------------------------------

static size_t lent_bytes(void) { return BEFORE + (size_t)messages * bytes + BEHIND; }

static unsigned char *place(const conn *c, unsigned k) { return c->lent + BEFORE + (size_t)k * bytes; }

static void lend(conn *c) {
    c->lent = malloc(lent_bytes()); // atomics need 8 bytes at 8: it has them
    memset(c->lent, is("add") || is("swap") ? 0 : FILL, lent_bytes());
    for (unsigned k = 0; is("read") && k < messages; k++)
        for (unsigned i = 0; i < bytes; i++)
            place(c, k)[i] =
                i >= 4 ? pattern(i) : (unsigned char)(k >> 8 * ((bytes < 4 ? bytes : 4) - 1 - i));
    c->open = ibv_reg_mr(c->pd, c->lent, lent_bytes(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    need(c->open != NULL, "memory to lend");
}

static void tell(conn *c) {
    static char text[64];
    int n =
        snprintf(text, sizeof text, "%" PRIuPTR " %u %zu", (uintptr_t)c->lent, c->open->rkey, lent_bytes());
    struct ibv_sge sge = {(uintptr_t)text, (unsigned)n, 0};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_INLINE},
                       *bad;
    need(ibv_post_send(c->id->qp, &wr, &bad) == 0, "send");
}

// Checks what has been written up to message n.
static void look_up_to(conn *c, unsigned n) {
    for (; c->seen < n && c->seen < messages; c->seen++) {
        const unsigned char *p = place(c, c->seen);
        if (is_right(c->seen, p, bytes)) continue;
        if (c->wrong++ == 0) c->first = c->seen;
    }
}

// The first wrong message as it is at the end: it may have been checked before it was there.
static void show_wrong(const conn *c) {
    const unsigned char *p = place(c, c->first);
    unsigned k = 4;
    while (k < bytes && p[k] == pattern(k))
        k++;
    printf("message %u is %s at the end: it begins %02x%02x%02x%02x, and its pattern ends at byte %u of %u\n",
           c->first, is_right(c->first, p, bytes) ? "right" : "wrong", p[0], p[1], p[2], p[3], k, bytes);
}

// At the end, when nothing more can come.
static void look_at_lent(conn *c) {
    uint64_t got;
    uint64_t want = is("add") ? (uint64_t)messages * (messages + 1) / 2 : messages;
    memcpy(&got, c->lent + 8, 8);
    if (is("add") || is("swap")) {
        c->seen = messages;
        c->wrong += got != want;
        return;
    }
    if (is("write")) look_up_to(c, messages);
    if (c->wrong > 0 && (is("write") || is("imm"))) show_wrong(c);
    for (unsigned k = 0; k < BEFORE; k++)
        c->wrong += c->lent[k] != FILL;
    for (unsigned k = 0; k < BEHIND; k++)
        c->wrong += place(c, messages)[k] != FILL;
}

// ---- connections ------------------------------------------------------------------------------------------

static void look(conn *c) {
    struct ibv_wc wc[16];
    int n;
    while ((n = ibv_poll_cq(c->cq, 16, wc)) > 0)
        for (int k = 0; k < n; k++) {
            if (wc[k].status != IBV_WC_SUCCESS) continue; // flushed, at the end
            if (wc[k].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
                look_up_to(c, ntohl(wc[k].imm_data));
            } else {
                c->wrong += !is_right(c->seen, c->at + (size_t)wc[k].wr_id * (bytes + 1), wc[k].byte_len);
                c->seen++;
            }
            post(c, (unsigned)wc[k].wr_id);
        }
}

static conn *take(struct rdma_cm_id *id, conn *next) {
    conn *c = calloc(1, sizeof *c);
    struct rdma_conn_param p = {.responder_resources = 8, .initiator_depth = 8, .rnr_retry_count = 7};
    c->id = id;
    c->next = next;
    id->context = c;
    c->pd = ibv_alloc_pd(id->verbs);
    c->cq = ibv_create_cq(id->verbs, (int)buffers + 2, NULL, NULL, 0);
    struct ibv_qp_init_attr make = {
        .send_cq = c->cq, .recv_cq = c->cq, .cap = {2, buffers, 1, 1, 64}, .qp_type = IBV_QPT_RC};
    need(rdma_create_qp(id, c->pd, &make) == 0, "queue pair");
    c->at = malloc((size_t)buffers * (bytes + 1));
    c->mr = ibv_reg_mr(c->pd, c->at, (size_t)buffers * (bytes + 1), IBV_ACCESS_LOCAL_WRITE);
    need(c->mr != NULL, "memory");
    for (unsigned k = 0; k < buffers; k++)
        post(c, k);
    lend(c);
    need(rdma_accept(id, &p) == 0, "accept");
    return c;
}

static void drop(conn *c) {
    look(c);
    rdma_disconnect(c->id);
    rdma_destroy_qp(c->id);
    look_at_lent(c);
    ibv_dereg_mr(c->open);
    free(c->lent);
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
    struct rdma_cm_id
        *early[EARLY]; // those that asked before the last run's end was known: its lengths aren't theirs
    unsigned n_early = 0;
    for (int r = 3; r < argc; r++) {
        unsigned conns, taken = 0, gone = 0, seen = 0, wrong = 0;
        conn *all = NULL;
        if (sscanf(argv[r], "%7[a-z]:%u:%u:%u", operation, &bytes, &conns, &messages) != 4) return 2;
        buffers = bytes > 1000000 ? 2 : 128;
        for (; taken < n_early; taken++)
            all = take(early[taken], all);
        n_early = 0;
        while (gone < conns) {
            struct rdma_cm_event *e;
            struct pollfd fd = {.fd = ch->fd, .events = POLLIN};
            for (conn *c = all; c; c = c->next)
                if (c->id) look(c);
            if (poll(&fd, 1, 0) != 1) continue;
            need(rdma_get_cm_event(ch, &e) == 0, "event");
            struct rdma_cm_id *id = e->id;
            int kind = e->event;
            bool asks = kind == RDMA_CM_EVENT_CONNECT_REQUEST;
            conn *c = asks ? NULL : id->context;
            if (asks && taken == conns)
                early[n_early++] = id;
            else if (asks)
                all = take(id, all), taken++;
            rdma_ack_cm_event(e);
            if (kind == RDMA_CM_EVENT_ESTABLISHED) tell(c);
            if (kind != RDMA_CM_EVENT_DISCONNECTED) continue;
            drop(c);
            rdma_destroy_id(id);
            c->id = NULL;
            seen += c->seen;
            wrong += c->wrong;
            gone++;
        }
        printf("%s, %u bytes, %u connections: %u messages, %u wrong\n", operation, bytes, conns, seen,
               wrong + (seen != conns * messages));
        fflush(stdout);
    }
    return 0;
}
