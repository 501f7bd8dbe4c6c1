// gn_mlx5_abi_test.c: entries written by rdma-core's functions are understood, and its structures read our
// completion entries.
#include "dqtest.h"

#if __has_include(<infiniband/mlx5dv.h>)
#include "gpunetio/device/gn_mlx5.h"

#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/mlx5dv.h>

enum { QUEUE = 0x123456, OWN = 0, PEER = 1, INDEX = 0x1fffe };

static const gn_region rows[] = {{0x7f0000001000, 4096, 0, GN_READ | GN_WRITE, 0},
                                 {0x7f0000080000, 4096, 0, GN_REMOTE | GN_READ | GN_WRITE | GN_ADD, 0}};
static const gn_given given = {rows, 2, ~0u, 4096};

typedef union entry {
    struct {
        struct mlx5_wqe_ctrl_seg control;
        struct mlx5_wqe_raddr_seg remote;
        union {
            struct mlx5_wqe_data_seg data[2];
            struct {
                struct mlx5_wqe_atomic_seg operands;
                struct mlx5_wqe_data_seg result;
            } atomic;
            struct mlx5_wqe_inl_data_seg in_line;
        };
    };
    struct {
        struct mlx5_wqe_ctrl_seg alone;
        struct mlx5_wqe_data_seg sent[2];
    };
    gn_u64 words[8];
    uint8_t bytes[64];
} entry;

static gn_mlx5_pending pending[4];
static struct mlx5_cqe64 completions[4];
static uint32_t record[2];
static entry queued[4];

static gn_mlx5_queue queue_of(uint64_t first) {
    memset(pending, 0, sizeof pending);
    memset(completions, 0xff, sizeof completions);
    return (gn_mlx5_queue){.completions = (gn_u8 *)completions,
                           .record = &record[MLX5_SND_DBR],
                           .rows = rows,
                           .of = pending,
                           .number = QUEUE,
                           .log2 = 2,
                           .completed = first};
}

static entry begin(uint8_t opcode, uint8_t segments, uint64_t index) {
    entry e;
    memset(&e, 0, sizeof e);
    mlx5dv_set_ctrl_seg(&e.control, (uint16_t)index, opcode, 0, QUEUE, MLX5_WQE_CTRL_CQ_UPDATE, segments, 0,
                        0);
    e.remote.raddr = htobe64(rows[PEER].base + 64);
    e.remote.rkey = htonl(PEER);
    return e;
}

static gn_desc taken(gn_mlx5_queue *q, const entry *e, uint64_t index) {
    gn_desc d;
    queued[index % 4] = *e;
    DQ_EQ(gn_mlx5_take(q, queued[0].words, index, &given, &d), GN_FAULT_NONE);
    gn_mlx5_complete(q, index + 1);
    return d;
}

static void entries(void) {
    gn_mlx5_queue q = queue_of(INDEX);
    entry e = begin(MLX5_OPCODE_RDMA_WRITE, 4, INDEX);
    mlx5dv_set_data_seg(&e.data[0], 100, OWN, rows[OWN].base + 1);
    mlx5dv_set_data_seg(&e.data[1], 7, OWN, rows[OWN].base + 300);
    gn_desc d = taken(&q, &e, INDEX);
    DQ_EQ(d.op, GN_OP_PUT);
    DQ_EQ(d.bytes + 1000 * d.bytes2, 7100);
    DQ_EQ(d.from, gn_place(OWN, 1));
    DQ_EQ(d.from2, gn_place(OWN, 300));
    DQ_EQ(d.to, gn_place(PEER, 64));

    e = begin(MLX5_OPCODE_RDMA_READ, 3, INDEX + 1);
    mlx5dv_set_data_seg(&e.data[0], 100, OWN, rows[OWN].base + 1);
    DQ_EQ(taken(&q, &e, INDEX + 1).op, GN_OP_GET);

    e = begin(MLX5_OPCODE_RDMA_WRITE, 3, INDEX + 2);
    e.in_line.byte_count = htonl(5 | MLX5_INLINE_SEG);
    memcpy(&e.in_line + 1, "hello", 5);
    d = taken(&q, &e, INDEX + 2);
    DQ_EQ(d.bytes, 5);
    DQ_CHECK(memcmp(d.data, "hello", 5) == 0);

    e = begin(MLX5_OPCODE_SEND, 2, INDEX + 3);
    mlx5dv_set_data_seg(&e.sent[0], 60, OWN, rows[OWN].base);
    DQ_EQ(taken(&q, &e, INDEX + 3).op, GN_OP_SEND);
    e = begin(MLX5_OPCODE_NOP, 1, INDEX + 4);
    DQ_EQ(taken(&q, &e, INDEX + 4).op, GN_OP_NOP);
    e = begin(0x23, 2, INDEX + 5); // DUMP, which rdma-core's header lacks
    DQ_EQ(taken(&q, &e, INDEX + 5).op, GN_OP_NOP);
}

static void atomics(void) {
    gn_mlx5_queue q = queue_of(0);
    static const uint8_t opcodes[] = {MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_ATOMIC_CS};
    for (uint64_t k = 0; k < 2; k++) {
        entry e = begin(opcodes[k], 4, k);
        e.atomic.operands.swap_add = htobe64(9);
        e.atomic.operands.compare = htobe64(4);
        mlx5dv_set_data_seg(&e.atomic.result, 8, OWN, rows[OWN].base + 16);
        gn_desc d = taken(&q, &e, k);
        DQ_EQ(d.op, k ? GN_OP_CAS : GN_OP_ADD);
        DQ_EQ(d.operand, 9);
        if (k) DQ_EQ(d.compare, 4);
        DQ_EQ(d.result, gn_place(OWN, 16));
    }
}

static void completion_entries(void) {
    gn_mlx5_queue q = queue_of(INDEX);
    DQ_EQ(mlx5dv_get_cqe_opcode(&completions[0]), MLX5_CQE_INVALID);
    for (uint64_t k = 0; k < 6; k++) {
        entry e = begin(MLX5_OPCODE_RDMA_READ, 3, INDEX + k);
        mlx5dv_set_data_seg(&e.data[0], 100, OWN, rows[OWN].base);
        taken(&q, &e, INDEX + k);
        struct mlx5_cqe64 *c = &completions[k % 4];
        DQ_EQ(mlx5dv_get_cqe_opcode(c), MLX5_CQE_REQ);
        DQ_EQ(mlx5dv_get_cqe_owner(c), k / 4);
        DQ_EQ(ntohs(c->wqe_counter), (INDEX + k) & 0xffff);
        DQ_EQ(ntohl(c->byte_cnt), 100);
        DQ_EQ(ntohl(c->sop_drop_qpn), MLX5_OPCODE_RDMA_READ << 24 | QUEUE);
    }
    entry e = begin(MLX5_OPCODE_RDMA_READ, 3, INDEX + 6);
    mlx5dv_set_data_seg(&e.data[0], 5000, OWN, rows[OWN].base);
    gn_desc d;
    queued[(INDEX + 6) % 4] = e;
    DQ_EQ(gn_mlx5_take(&q, queued[0].words, INDEX + 6, &given, &d), GN_FAULT_RANGE);
    gn_mlx5_complete(&q, INDEX + 7);
    struct mlx5_err_cqe *error = (struct mlx5_err_cqe *)&completions[2];
    DQ_EQ(mlx5dv_get_cqe_opcode(&completions[2]), MLX5_CQE_REQ_ERR);
    DQ_EQ(error->syndrome, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
    DQ_EQ(error->vendor_err_synd, GN_FAULT_RANGE);
    DQ_EQ(ntohs(error->wqe_counter), 4);
    DQ_EQ(ntohl(error->s_wqe_opcode_qpn), MLX5_OPCODE_RDMA_READ << 24 | QUEUE);
}

static void syndromes(void) {
    DQ_EQ(GN_MLX5_LOCAL_LENGTH, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    DQ_EQ(GN_MLX5_LOCAL_OPERATION, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    DQ_EQ(GN_MLX5_LOCAL_PROTECTION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
    DQ_EQ(GN_MLX5_FLUSHED, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    DQ_EQ(GN_MLX5_REMOTE_REQUEST, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
    DQ_EQ(GN_MLX5_REMOTE_ACCESS, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    DQ_EQ(GN_MLX5_REMOTE_OPERATION, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(entries);
    DQ_RUN(atomics);
    DQ_RUN(completion_entries);
    DQ_RUN(syndromes);
    return dq_done();
}
#else
int main(void) { dq_lack("rdma", "no <infiniband/mlx5dv.h>"); }
#endif
