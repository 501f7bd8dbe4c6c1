// reorder_cases.c: what the reorder stage reports of the cases of reorder_cases.py.
#include "cases.h"
#include "reorder_rig.h"

enum { SEQUENCE, BY_SLOT, BY_SOURCE };

static const dq_insn batch_of[] = {{.op = DQ_OP_LOAD, .b = 48, .c = 8 * BED_HEAD}, {.op = DQ_OP_RET}};
static const dq_insn slot_of[] = {{.op = DQ_OP_LOAD, .b = 16, .c = 8 * BED_HEAD + 48}, {.op = DQ_OP_RET}};
static const dq_insn source_of[] = {{.op = DQ_OP_LOAD, .b = 14, .c = 8 * BED_HEAD + 48}, {.op = DQ_OP_RET}};

static void take(const dq_event *ev) {
    const dq_aggregate *a = dq_burst_aggregate(ev->b);
    append_aggregate(a, a->ordinal);
}

static void send(rig *r, const uint64_t *numbers, uint32_t n) {
    if (n == 0) return;
    dq_burst *b;
    dq_view v;
    DQ_EQ(dq_tx_alloc(r->b.tx[0][0], n, &b), DQ_OK);
    dq_burst_view(b, &v);
    for (uint32_t i = 0; i < n; i++)
        bed_frame(bed_bytes(&v, 0, i), LEN, 1000, 7, numbers[i]);
    DQ_EQ(dq_burst_set_len(b, 0, -1, LEN), DQ_OK);
    DQ_EQ(dq_tx_send(r->b.tx[0][0], b), DQ_OK);
    pass(&r->b, 100000, take);
}

static void open_case(rig *r, char **words) {
    int rule = atoi(strtok_r(NULL, " ", words));
    dq_reorder_conf c = {.payload_offset = BED_HEAD, .slot_bytes = PAYLOAD, .fill = DQ_FILL_KEEP};
    c.seq_bits = (uint32_t)atoi(strtok_r(NULL, " ", words));
    c.slots = (uint32_t)atoi(strtok_r(NULL, " ", words));
    c.window = (uint32_t)atoi(strtok_r(NULL, " ", words));
    c.wrap = strtoull(strtok_r(NULL, " ", words), NULL, 10);
    c.timeout_ns = 1000 * atoll(strtok_r(NULL, " ", words));
    if (rule == SEQUENCE) {
        c.seq = number();
    } else {
        c.batch = (dq_number){batch_of, 2};
        c.slot = (dq_number){slot_of, 2};
        if (rule == BY_SOURCE) c.source = (dq_number){source_of, 2};
    }
    rig_open(r, (bed_conf){.batch = 32, .bufs = 256, .buf_size = 128, .more_bufs = 128}, c);
    rig_start(r);
}

static void print_case(const rig *r) {
    const dq_line l = blocks(r);
    const uint64_t *x = l.extra;
    printf("batches %" PRIu64 " partial %" PRIu64 " skipped %" PRIu64 " missing %" PRIu64 " cut %" PRIu64
           " late %" PRIu64 " duplicate %" PRIu64 " outliers %" PRIu64 " resyncs %" PRIu64 "%s\n",
           x[DQ_EXTRA_BATCHES], x[DQ_EXTRA_PARTIAL], x[DQ_EXTRA_SKIPPED], x[DQ_EXTRA_MISSING],
           x[DQ_EXTRA_CUT], l.dropped[DQ_DROP_LATE], l.dropped[DQ_DROP_DUPLICATE], x[DQ_EXTRA_OUTLIERS],
           x[DQ_EXTRA_RESYNCS], text);
}

static void run_case(char *line, bool silence) {
    char *words = line;
    rig r;
    uint64_t numbers[32];
    uint32_t n = 0;
    open_case(&r, &words);
    forget();
    for (const char *word; (word = strtok_r(NULL, " ", &words)) != NULL;) {
        int64_t gap_us;
        uint64_t number;
        if (sscanf(word, "%" SCNd64 ":%" SCNu64, &gap_us, &number) != 2) exit(1);
        if (gap_us > 0 || n == 32) {
            send(&r, numbers, n);
            n = 0;
        }
        if (gap_us > 0) pass(&r.b, 1000 * gap_us, take);
        numbers[n++] = number;
    }
    send(&r, numbers, n);
    if (silence) pass(&r.b, 1000000000, take);
    finish(&r.b, take);
    print_case(&r);
    close_case(&r.b);
}

int main(int argc, char **argv) { return run_cases(argc, argv, run_case); }
