// pair.c: a peer without connection manager, on libibverbs alone as its manual pages have it: as an FPGA or
// another's program would be. Both ends get each other's in files. It reports what came, and what it sent:
//
//   pair DEVICE ADDRESS rc|uc OURS THEIRS
//
// OURS gets "qpn psn addr rkey bytes"; THEIRS has "qpn psn gid" of the other end. What comes first is a
// message of text "addr rkey" of memory that is lent to it, then a WRITE with immediate; it answers with a
// WRITE of 5001 bytes at 3 there, and a message of 1000 bytes behind it.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENT (1u << 20)
#define SLOT 8192u

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

static struct ibv_context *open_device(const char *name) {
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    for (int k = 0; k < n; k++)
        if (strcmp(ibv_get_device_name(list[k]), name) == 0) return ibv_open_device(list[k]);
    return NULL;
}

static int gid_index(struct ibv_context *ctx, const char *address) {
    unsigned char want[16] = {[10] = 0xff, [11] = 0xff};
    union ibv_gid g;
    need(inet_pton(AF_INET, address, want + 12) == 1, "address");
    for (int k = 0; k < 16; k++)
        if (ibv_query_gid(ctx, 1, k, &g) == 0 && memcmp(g.raw, want, 16) == 0) return k;
    return -1;
}

static struct ibv_wc next(struct ibv_cq *cq) {
    struct ibv_wc wc;
    int n = 0;
    for (int k = 0; k < 200000 && (n = ibv_poll_cq(cq, 1, &wc)) == 0; k++)
        usleep(100);
    need(n == 1, "nothing came");
    if (wc.status != IBV_WC_SUCCESS) fprintf(stderr, "pair: %s\n", ibv_wc_status_str(wc.status)), exit(1);
    return wc;
}

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    int rc = strcmp(argv[3], "rc") == 0;
    struct ibv_context *ctx = open_device(argv[1]);
    need(ctx != NULL, "device");
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *in = ibv_create_cq(ctx, 16, NULL, NULL, 0), *out = ibv_create_cq(ctx, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr make = {.send_cq = out,
                                    .recv_cq = in,
                                    .cap = {8, 8, 1, 1, 0},
                                    .qp_type = rc ? IBV_QPT_RC : IBV_QPT_UC,
                                    .sq_sig_all = 1};
    struct ibv_qp *qp = ibv_create_qp(pd, &make);
    static unsigned char lent[LENT], slots[8 * SLOT];
    int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    struct ibv_mr *mr = ibv_reg_mr(pd, lent, LENT, rights),
                  *mine = ibv_reg_mr(pd, slots, sizeof slots, IBV_ACCESS_LOCAL_WRITE);
    need(qp && mr && mine, "queue pair");
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    need(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "INIT");
    for (unsigned k = 0; k < 4; k++) {
        struct ibv_sge sge = {(uintptr_t)(slots + k * SLOT), SLOT, mine->lkey};
        struct ibv_recv_wr wr = {.wr_id = k, .sg_list = &sge, .num_sge = 1}, *bad;
        need(ibv_post_recv(qp, &wr, &bad) == 0, "recv");
    }
    unsigned psn = 0x123456;
    FILE *f = fopen(argv[4], "w");
    fprintf(f, "%u %u %lu %u %u\n", qp->qp_num, psn, (unsigned long)(uintptr_t)lent, mr->rkey, LENT);
    fclose(f);

    unsigned qpn = 0, their_psn = 0;
    char gid[64] = "";
    for (int k = 0; k < 600 && qpn == 0; k++) {
        if ((f = fopen(argv[5], "r")) != NULL) {
            if (fscanf(f, "%u %u %63s .", &qpn, &their_psn, gid) != 3) qpn = 0;
            fclose(f);
        }
        if (qpn == 0) usleep(100000);
    }
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = qpn,
                             .rq_psn = their_psn,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12};
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.sgid_index = (unsigned char)gid_index(ctx, argv[2]);
    a.ah_attr.grh.hop_limit = 64;
    need(inet_pton(AF_INET6, gid, a.ah_attr.grh.dgid.raw) == 1, "gid");
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    need(ibv_modify_qp(qp, &a, mask | (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0,
         "RTR");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .sq_psn = psn,
                             .timeout = 16,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .max_rd_atomic = 1};
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (rc) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    need(ibv_modify_qp(qp, &a, mask) == 0, "RTS");
    f = fopen("/dev/shm/pair-ready", "w"); // its sends may come now
    fclose(f);

    struct ibv_wc wc = next(in);
    unsigned long addr = 0;
    unsigned rkey = 0;
    unsigned char *text = slots + wc.wr_id * SLOT;
    text[wc.byte_len] = 0;
    need(sscanf((char *)text, "%lu %u", &addr, &rkey) == 2, "text");
    printf("message %u\n", wc.byte_len);
    wc = next(in);
    printf("imm %u sum %u\n", ntohl(wc.imm_data), sum(lent, LENT));

    unsigned char *send = slots + 4 * SLOT;
    for (unsigned k = 0; k < 2 * SLOT; k++)
        send[k] = (unsigned char)(k * 7 + k / 251);
    struct ibv_sge sge[2] = {{(uintptr_t)send, 5001, mine->lkey}, {(uintptr_t)send, 1000, mine->lkey}};
    struct ibv_send_wr wr[2] =
        {{.next = &wr[1], .sg_list = &sge[0], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE},
         {.sg_list = &sge[1], .num_sge = 1, .opcode = IBV_WR_SEND}},
                       *bad;
    wr[0].wr.rdma.remote_addr = addr + 3;
    wr[0].wr.rdma.rkey = rkey;
    printf("writes %u sends %u\n", sum(send, 5001), sum(send, 1000));
    fflush(stdout);
    need(ibv_post_send(qp, wr, &bad) == 0, "send");
    next(out);
    next(out);
    if (rc) { // what isn't allowed, in the end
        wr[0].next = NULL;
        wr[0].wr.rdma.rkey = rkey + 256;
        need(ibv_post_send(qp, wr, &bad) == 0, "send");
        int n;
        do
            n = ibv_poll_cq(out, 1, &wc);
        while (n == 0);
        need(n == 1 && wc.status == IBV_WC_REM_ACCESS_ERR, "a wrong key");
    }
    usleep(300000); // the last packets, of a connection that isn't reliable, are on their way
    ibv_destroy_qp(qp);
    return 0;
}
