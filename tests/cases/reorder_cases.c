// reorder_cases.c: reads cases of reorder_cases.py from a file and prints what the stage says of each, on the
// virtual clock. Of every other case a second without packets is in front of the stop, and lets batches' time
// run out: it must not change anything.
#include "reorder_rig.h"

#include <inttypes.h>

enum { SEQUENCE, BY_SLOT, BY_SOURCE };

static const dq_insn batch_of[] = {{.op = DQ_OP_LOAD, .b = 48, .c = 8 * BED_HEAD}, {.op = DQ_OP_RET}};
static const dq_insn slot_of[] = {{.op = DQ_OP_LOAD, .b = 16, .c = 8 * BED_HEAD + 48}, {.op = DQ_OP_RET}};
static const dq_insn source_of[] = {{.op = DQ_OP_LOAD, .b = 14, .c = 8 * BED_HEAD + 48}, {.op = DQ_OP_RET}};

static char *text; // of the aggregates, " ORDINAL:PRESENT" each
static size_t text_len, text_cap;

static void append(const char *what, size_t n) {
    if (text_len + n + 1 > text_cap) {
        text_cap = 2 * (text_len + n + 1);
        text = realloc(text, text_cap);
        if (!text) exit(1);
    }
    memcpy(text + text_len, what, n);
    text_len += n;
    text[text_len] = 0;
}

static void serve(rig *r) {
    dq_event ev[16];
    for (int n; (n = dq_wait(r->b.w, 0, ev, 16)) > 0;)
        for (int k = 0; k < n; k++) {
            const dq_aggregate *a = dq_burst_aggregate(ev[k].b);
            char line[128];
            int at = snprintf(line, sizeof line, " %" PRIu64 ":", a->ordinal);
            for (uint32_t c = 0; c < a->cells; c++)
                line[at++] = a->present[0] >> c & 1 ? '1' : '0';
            append(line, (size_t)at);
            dq_burst_unref(ev[k].b);
        }
}

// Lets so much time pass.
static void pass(rig *r, int64_t ns) {
    const int64_t until = dq_now(r->b.s) + ns;
    for (;;) {
        serve(r);
        if (dq_step(r->b.s) > 0) continue;
        int64_t next = dq_next_time(r->b.s);
        if (next > until) break;
        dq_advance(r->b.s, next);
    }
    dq_advance(r->b.s, until);
    serve(r);
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
    pass(r, 100000);
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
    char *words = NULL;
    rig r;
    uint64_t numbers[32];
    uint32_t n = 0;
    strtok_r(line, "\n", &words);
    words = line;
    open_case(&r, &words);
    text_len = 0;
    append("", 0);
    for (const char *word; (word = strtok_r(NULL, " ", &words)) != NULL;) {
        int64_t gap_us;
        uint64_t number;
        if (sscanf(word, "%" SCNd64 ":%" SCNu64, &gap_us, &number) != 2) exit(1);
        if (gap_us > 0 || n == 32) {
            send(&r, numbers, n);
            n = 0;
        }
        if (gap_us > 0) pass(&r, 1000 * gap_us);
        numbers[n++] = number;
    }
    send(&r, numbers, n);
    if (silence) pass(&r, 1000000000);
    while (dq_session_stop(r.b.s, 10000000000) > 0)
        serve(&r);
    serve(&r);
    dq_session_finish(r.b.s);
    print_case(&r);
    bed_check_ledger(r.b.s, true);
    DQ_EQ(dq_session_close(r.b.s), 0);
    dq_waiter_free(r.b.w);
}

int main(int argc, char **argv) {
    dq_begin(1, argv);
    dq_case = "cases";
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!f) return 1;
    char *line = NULL;
    size_t cap = 0;
    for (uint64_t k = 0; getline(&line, &cap, f) > 0; k++)
        run_case(line, k % 2 == 1);
    fclose(f);
    free(line);
    free(text);
    return dq_done();
}
