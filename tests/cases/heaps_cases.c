// heaps_cases.c: what the heaps stage reports of the cases of heaps_cases.py.
#include "cases.h"
#include "reorder/dq_reorder.h"

enum { MOST = 100, HEAD = BED_HEAD + 16 };

#define NUMBER(name, width, byte)                                                                            \
    static const dq_insn name[] = {{.op = DQ_OP_LOAD, .b = width, .c = 8 * (BED_HEAD + (byte))},             \
                                   {.op = DQ_OP_RET}}
NUMBER(id_of, 64, 0);
NUMBER(size_of, 32, 8);
NUMBER(offset_of, 32, 12);

typedef struct piece {
    int64_t gap_us;
    uint64_t id;
    uint32_t size, at, len;
} piece;

static void take(const dq_event *ev) {
    const dq_aggregate *a = dq_burst_aggregate(ev->b);
    append_aggregate(a, a->batch_id);
}

static void open_case(bed *b, char **words) {
    dq_diag d = {{0}};
    dq_queue *out;
    dq_stage *st;
    dq_heaps_conf c = {.id = {id_of, 2},
                       .size = {size_of, 2},
                       .offset = {offset_of, 2},
                       .payload_offset = HEAD,
                       .fill = DQ_FILL_KEEP};
    c.window = (uint32_t)atoi(strtok_r(NULL, " ", words));
    c.timeout_ns = 1000 * atoll(strtok_r(NULL, " ", words));
    bed_open(b, (bed_conf){.batch = 32, .bufs = 256, .buf_size = 256, .more_bufs = 128, .more_size = MOST});
    c.region = b->more;
    bed_must(dq_stage_heaps(b->s, "heaps", &c, &st, &out, &d), &d, "heaps");
    dq_stage *tap = bed_tap(b, 1, 64, DQ_POLICY_WAIT);
    bed_pipe(out, &tap, 1);
    bed_pipe(b->rx[0][0], &st, 1);
    bed_start(b);
}

static void put32(uint8_t *to, uint32_t v) {
    for (int k = 0; k < 4; k++)
        to[k] = (uint8_t)(v >> (24 - 8 * k));
}

static void send(bed *b, const piece *pieces, uint32_t n) {
    if (n == 0) return;
    dq_burst *x;
    dq_view v;
    DQ_EQ(dq_tx_alloc(b->tx[0][0], n, &x), DQ_OK);
    dq_burst_view(x, &v);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *to = bed_bytes(&v, 0, i);
        bed_frame(to, HEAD + MOST, 1000, 7, pieces[i].id);
        put32(to + BED_HEAD + 8, pieces[i].size);
        put32(to + BED_HEAD + 12, pieces[i].at);
        DQ_EQ(dq_burst_set_len(x, 0, (int32_t)i, HEAD + pieces[i].len), DQ_OK);
    }
    DQ_EQ(dq_tx_send(b->tx[0][0], x), DQ_OK);
    pass(b, 100000, take);
}

static void print_case(const bed *b) {
    const dq_line l = stage_line(b, "heaps");
    const uint64_t *x = l.extra, *why = l.dropped;
    printf("batches %" PRIu64 " partial %" PRIu64 " missing %" PRIu64 " cut %" PRIu64 " late %" PRIu64
           " duplicate %" PRIu64 " overlap %" PRIu64 " past_end %" PRIu64 " size_changed %" PRIu64
           " too_long %" PRIu64 "%s\n",
           x[DQ_EXTRA_BATCHES], x[DQ_EXTRA_PARTIAL], x[DQ_EXTRA_MISSING], x[DQ_EXTRA_CUT], why[DQ_DROP_LATE],
           why[DQ_DROP_DUPLICATE], why[DQ_DROP_OVERLAP], why[DQ_DROP_PAST_END], why[DQ_DROP_SIZE_CHANGED],
           why[DQ_DROP_TOO_LONG], text);
}

static void run_case(char *line, bool silence) {
    char *words = line;
    bed b;
    piece pieces[32], p;
    uint32_t n = 0;
    open_case(&b, &words);
    forget();
    for (const char *word; (word = strtok_r(NULL, " ", &words)) != NULL;) {
        if (sscanf(word, "%" SCNd64 ":%" SCNu64 ":%" SCNu32 ":%" SCNu32 ":%" SCNu32, &p.gap_us, &p.id,
                   &p.size, &p.at, &p.len) != 5)
            exit(1);
        if (p.gap_us > 0 || n == 32) {
            send(&b, pieces, n);
            n = 0;
        }
        if (p.gap_us > 0) pass(&b, 1000 * p.gap_us, take);
        pieces[n++] = p;
    }
    send(&b, pieces, n);
    if (silence) pass(&b, 1000000000, take);
    finish(&b, take);
    print_case(&b);
    close_case(&b);
}

int main(int argc, char **argv) { return run_cases(argc, argv, run_case); }
