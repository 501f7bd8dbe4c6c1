// cases.h: reads cases from a file, a line each, and prints what a stage reports of each, on the virtual
// clock.
#ifndef CASES_H
#define CASES_H

#include "bed_pipe.h"

#include <inttypes.h>

static char *text; // of the aggregates, " ORDINAL:PRESENT" each
static size_t text_len, text_cap;

static inline void append(const char *what, size_t n) {
    if (text_len + n + 1 > text_cap) {
        text_cap = 2 * (text_len + n + 1);
        text = realloc(text, text_cap);
        if (!text) exit(1);
    }
    memcpy(text + text_len, what, n);
    text_len += n;
    text[text_len] = 0;
}

// Begins a case.
static inline void forget(void) {
    text_len = 0;
    append("", 0);
}

// An aggregate as text: a digit a cell behind its number.
static inline void append_aggregate(const dq_aggregate *a, uint64_t number) {
    char line[32];
    append(line, (size_t)snprintf(line, sizeof line, " %" PRIu64 ":", number));
    for (uint32_t c = 0; c < a->cells; c++)
        append(a->present[c / 64] >> c % 64 & 1 ? "1" : "0", 1);
}

typedef void (*cases_event)(const dq_event *ev);

static inline void serve(bed *b, cases_event take) {
    dq_event ev[16];
    for (int n; (n = dq_wait(b->w, 0, ev, 16)) > 0;)
        for (int k = 0; k < n; k++) {
            take(&ev[k]);
            dq_burst_unref(ev[k].b);
        }
}

// Lets so much time pass.
static inline void pass(bed *b, int64_t ns, cases_event take) {
    const int64_t until = dq_now(b->s) + ns;
    for (;;) {
        serve(b, take);
        if (dq_step(b->s) > 0) continue;
        int64_t next = dq_next_time(b->s);
        if (next > until) break;
        dq_advance(b->s, next);
    }
    dq_advance(b->s, until);
    serve(b, take);
}

// Ends the stream, after which figures are final.
static inline void finish(bed *b, cases_event take) {
    while (dq_session_stop(b->s, 10000000000) > 0)
        serve(b, take);
    serve(b, take);
    dq_session_finish(b->s);
    bed_check_ledger(b->s, true);
}

static inline void close_case(bed *b) {
    DQ_EQ(dq_session_close(b->s), 0);
    dq_waiter_free(b->w);
}

// Runs each line of the file; of every other case a second without packets is in front of the stop, and lets
// time-outs pass: it must not change anything.
static inline int run_cases(int argc, char **argv, void (*run)(char *line, bool silence)) {
    dq_begin(1, argv);
    dq_case = "cases";
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!f) return 1;
    char *line = NULL, *rest;
    size_t cap = 0;
    for (uint64_t k = 0; getline(&line, &cap, f) > 0; k++) {
        strtok_r(line, "\n", &rest);
        run(line, k % 2 == 1);
    }
    fclose(f);
    free(line);
    free(text);
    return dq_done();
}

#endif
