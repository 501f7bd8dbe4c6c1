// dq_stages.h: the stages filter, count, sample, gaps, forward, rewrite and tap.
#ifndef DQ_STAGES_H
#define DQ_STAGES_H

#include "pipeline/dq_pipeline.h"
#include "program/dq_program.h"

typedef enum dq_filter_kind { DQ_FILTER_MATCH, DQ_FILTER_PROG, DQ_FILTER_CBPF } dq_filter_kind;

typedef struct dq_filter_conf {
    int32_t kind; // dq_filter_kind
    const dq_match *match;
    const dq_insn *insns;
    uint32_t n_insns;
    const dq_cbpf_insn *cbpf;
    uint32_t n_cbpf;
} dq_filter_conf;

// Stages belong to the session and are freed with it. Names are unique within a session.
int dq_stage_filter(dq_session *s, const char *name, const dq_filter_conf *conf, dq_stage **out,
                    dq_diag *diag);
int dq_stage_count(dq_session *s, const char *name, dq_stage **out, dq_diag *diag);
// Passes one of every `every` bursts.
int dq_stage_sample(dq_session *s, const char *name, uint32_t every, dq_stage **out, dq_diag *diag);
#define DQ_LEAST_GAP_BITS 4
#define DQ_MAX_GAP_WINDOW 65536

// Numbers that a gaps stage follows. A number within the window below the highest is reordered, or a
// duplicate; numbers that leave the window are missing. Packets whose numbers are further away count once
// some agree: up to jump ahead as loss, otherwise as a restart.
typedef struct dq_gaps_conf {
    dq_number counter;
    uint32_t bits;   // of the counter, at least DQ_LEAST_GAP_BITS
    uint32_t window; // numbers, at most DQ_MAX_GAP_WINDOW and a quarter of the counter's range
    uint64_t jump;   // numbers, from window to a quarter of the range
    dq_number by;    // stream, each with an account: the first DQ_SOURCES of them; n 0: one stream
} dq_gaps_conf;

// Counts missing, reordered and duplicate numbers of packets, which pass unchanged. Once the session is
// finished, its line has expected = unique + missing and in = unique + duplicate + late + outliers +
// unnumbered + untracked.
int dq_stage_gaps(dq_session *s, const char *name, const dq_gaps_conf *conf, dq_stage **out, dq_diag *diag);
int dq_stage_forward(dq_session *s, const char *name, dq_queue *tx, int policy, dq_stage **out,
                     dq_diag *diag);
// Rewrites fields of every packet in place, by the rules in order (copied); csum: dq_csum, or
// DQ_CSUM_COMPUTE. A packet that lacks a field keeps the changes of the other rules. A pipe with such a stage
// acting on received packets is the only one to get them.
int dq_stage_rewrite(dq_session *s, const char *name, const dq_rewrite_rule *rules, uint32_t n, int csum,
                     dq_stage **out, dq_diag *diag);
// Delivers bursts to w's task as events with this tag; up to depth bursts are queued. sample: delivers one of
// every `sample` bursts (1: all).
int dq_stage_tap(dq_session *s, const char *name, dq_waiter *w, uint64_t tag, uint32_t depth, int policy,
                 uint32_t sample, dq_stage **out, dq_diag *diag);

#endif
