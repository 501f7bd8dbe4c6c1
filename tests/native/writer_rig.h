// writer_rig.h: for tests of the writer stage: one in a session of its own, fed as pipes feed it.
#ifndef WRITER_RIG_H
#define WRITER_RIG_H

#include "capture.h"

#include "writer/pcap_file.h"
#include "writer/writer.h"

#include <sched.h>

static inline dq_writer_conf writer_conf(const rig *r) {
    dq_writer_conf c = {.n_dirs = 1, .prefix = "t", .policy = DQ_POLICY_DROP};
    snprintf(c.dirs[0], sizeof c.dirs[0], "%s", r->dir);
    return c;
}

static inline dq_stage *new_writer(rig *r, const dq_writer_conf *c) {
    dq_stage *st = NULL;
    dq_diag diag = {0};
    int err = dq_stage_writer(r->s, "disk", c, &st, &diag);
    if (err == DQ_OK) err = st->ops->start(st, &diag);
    if (err != DQ_OK) fprintf(stderr, "%s\n", diag.text);
    must(err == DQ_OK, "writer");
    return st;
}

// Pushes as a pipe does: counts in, gives up the caller's reference.
static inline int push(dq_stage *st, dqi_node *node, dq_burst *b) {
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    dq_burst *out = NULL;
    int err = st->ops->push(st, node, b, &out);
    if (err == DQ_NOT_READY) return err;
    DQ_EQ(err, DQ_OK);
    DQ_CHECK(out == b); // a tap: the burst continues
    dqi_add(&node->c.in, n);
    dqi_add(&node->c.in_bytes, bytes);
    dq_burst_unref(out);
    return err;
}

static inline void push_waiting(dq_stage *st, dqi_node *node, dq_burst *b) {
    while (push(st, node, b) == DQ_NOT_READY)
        sched_yield();
}

// The writer's account, with what these nodes counted.
static inline dq_line account(const dq_stage *st, const dqi_node *nodes, uint32_t n) {
    dq_line l = {.kind = st->ops->line_kind};
    for (uint32_t i = 0; i < n; i++) {
        l.in += dqi_get(&nodes[i].c.in);
        l.in_bytes += dqi_get(&nodes[i].c.in_bytes);
        for (int k = 0; k < DQ_REASONS; k++)
            l.dropped[k] += dqi_get(&nodes[i].c.dropped[k]);
    }
    st->ops->line(st, &l);
    l.held = st->ops->held(st);
    return l;
}

static inline dq_line balanced(const dq_stage *st, const dqi_node *nodes, uint32_t n) {
    dq_line l = account(st, nodes, n);
    uint64_t dropped = 0;
    for (int k = 0; k < DQ_REASONS; k++)
        dropped += l.dropped[k];
    DQ_EQ(l.kind, DQ_LINE_WRITER);
    DQ_EQ(l.in, l.out + l.held + dropped);
    return l;
}

// Fails unless text holds want; an empty want: unless text is empty.
static inline void check_text(int line, const char *text, const char *want) {
    if (want[0] ? strstr(text, want) != NULL : text[0] == 0) return;
    fprintf(stderr, "got \"%.2000s\"\nwant \"%s\"\n", text, want);
    dq_failed(__FILE__, line, "text differs");
}
#define CHECK_TEXT(text, want) check_text(__LINE__, text, want)

static inline void check_error(dq_stage *st, const char *want) {
    char text[2048];
    dq_writer_error(st, text, sizeof text);
    CHECK_TEXT(text, want);
}

// What another program reports of a file, where it is installed.
static inline bool run_tool(const char *tool, const char *command, const char *path, char *out, size_t len) {
    char line[1024];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", tool);
    if (system(line) != 0) {
        printf("skip %s: not installed\n", tool);
        DQ_CHECK(!dq_required(tool));
        return false;
    }
    snprintf(line, sizeof line, command, path);
    FILE *f = popen(line, "r");
    must(f != NULL, tool);
    size_t n = fread(out, 1, len - 1, f);
    out[n] = 0;
    DQ_EQ(pclose(f), 0);
    return true;
}

static inline dq_burst *burst_of(rig *r, uint32_t n, uint32_t len, uint64_t tag) {
    dq_burst *b = rig_burst(r, n);
    for (uint32_t i = 0; i < n; i++) {
        fill_seg(b, 0, i, len, tag + i);
        b->ts[i] = (int64_t)(tag + i) + 1;
    }
    return b;
}

#endif
