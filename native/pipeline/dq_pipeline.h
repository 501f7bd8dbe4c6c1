// dq_pipeline.h: queues at work: sending, waiting, pipes and stages.
#ifndef DQ_PIPELINE_H
#define DQ_PIPELINE_H

#include "core/dq_burst.h"
#include "program/dq_program.h"

// ---- queues -----------------------------------------------------------------------------------------------
// A burst of n packets with buffers of each of q's regions, lengths 0. The caller owns it.
// NO_FREE_BURST_BUFFERS, NO_FREE_PACKET_BUFFERS, INVALID_PARAMETER (n is 0 or above the batch size),
// NOT_SUPPORTED (q has no regions).
int dq_tx_alloc(dq_queue *q, uint32_t n, dq_burst **out);
// Queues b for sending. Takes the caller's reference on DQ_OK only. NO_SPACE_AVAILABLE when the ring is full,
// when b's connection has its share of the queue already, as its peer doesn't read, or, where there are
// several connections, when half of what the queue has is still to be looked at. NOT_SUPPORTED: segments of b
// lie where the CPU can't read them, and q's own regions have no such memory there. In direct mode, on the
// owner's thread, sends what can be sent at once.
int dq_tx_send(dq_queue *q, dq_burst *b);
// Changes the pace: bits/s and packets/s of what the queue holds (frames without FCS, or payloads); 0: not
// limited.
void dq_tx_pace(dq_queue *q, double bps, double pps);
// Instead of a pace: packets leave with the gaps of their receive times divided by speed (above 0). Those of
// templates and those with send times don't.
void dq_tx_follow(dq_queue *q, double speed);
// Where its receive times come from (dq_stamps), known once the session is open.
int dq_rx_stamps(const dq_queue *q);
// 1: the device keeps to the send times of a transmit queue's packets, 0: the queue's poller does.
int dq_tx_device_times(const dq_queue *q);
// Discards what waits in a receive queue, counted as flushed. Packets discarded.
int64_t dq_rx_flush(dq_queue *q);

// The queue's own thread sends count packets of t (0: until the stop) at the queue's pace. Replaces what was
// being transmitted; t NULL ends it. t must outlive the transmission. INVALID_PARAMETER when t is longer than
// a buffer.
int dq_tx_transmit(dq_queue *q, dq_template *t, uint64_t count);
// Packets of a transmit queue that have not left yet: those given to it, in its engine too, and the rest of a
// transmission; UINT64_MAX: that has no end. Any thread.
uint64_t dq_tx_waiting(const dq_queue *q);
// Packets of the current transmission still to be sent; UINT64_MAX for one without end, 0 when none.
uint64_t dq_tx_remaining(const dq_queue *q);

// ---- waiting ----------------------------------------------------------------------------------------------

typedef enum dq_event_kind { DQ_EV_BURST = 1, DQ_EV_CONNECT, DQ_EV_DISCONNECT, DQ_EV_OP } dq_event_kind;

// One thing that happened. BURST: b is the receiver's reference. CONNECT/DISCONNECT: conn and, in code, the
// reason (0 or a negative dq_err). OP: the operation that is watched with this tag has ended (dq_op.h). tag
// is what the tap was made with.
typedef struct dq_event {
    uint64_t tag;
    int32_t kind;
    int32_t code;
    uint32_t conn;
    dq_burst *b;
    dq_view view; // of b
} dq_event;

int dq_waiter_new(dq_waiter **out, dq_diag *diag);
void dq_waiter_free(dq_waiter *w);
// Makes w's task the owner of a direct queue (of none before, or of another that is not waiting).
int dq_waiter_adopt(dq_waiter *w, dq_queue *q);
// Ends that, where it is so: w polls q no more. Its task's thread, or while that is not waiting.
void dq_waiter_disown(dq_waiter *w, dq_queue *q);
// Ends a dq_wait of w now, or its next one. Any thread.
void dq_waiter_wake(dq_waiter *w);
// Serves w's direct queues and taps: returns as soon as there are events (their number, at most max), after
// timeout_ns (0 events; negative: for ever), or after dq_waiter_wake. Owner's thread; blocks.
int dq_wait(dq_waiter *w, int64_t timeout_ns, dq_event *ev, int max);

// ---- pipes ------------------------------------------------------------------------------------------------
typedef enum dq_policy { DQ_POLICY_DROP, DQ_POLICY_WAIT } dq_policy;
typedef enum dq_filter_kind { DQ_FILTER_MATCH, DQ_FILTER_PROG, DQ_FILTER_CBPF } dq_filter_kind;

typedef struct dq_filter_conf {
    int32_t kind; // dq_filter_kind
    const dq_match *match;
    const dq_insn *insns;
    uint32_t n_insns;
    const dq_cbpf_insn *cbpf;
    uint32_t n_cbpf;
} dq_filter_conf;

// Stages belong to the session and end with it. Names are unique in a session.
int dq_stage_filter(dq_session *s, const char *name, const dq_filter_conf *conf, dq_stage **out,
                    dq_diag *diag);
int dq_stage_count(dq_session *s, const char *name, dq_stage **out, dq_diag *diag);
// Passes one burst of `every`.
int dq_stage_sample(dq_session *s, const char *name, uint32_t every, dq_stage **out, dq_diag *diag);
int dq_stage_forward(dq_session *s, const char *name, dq_queue *tx, int policy, dq_stage **out,
                     dq_diag *diag);
// Rewrites fields of every packet where it lies, by the rules in order (copied); csum: dq_csum, or
// DQ_CSUM_COMPUTE. Packets without a field keep the others' changes. A pipe of which a stage does so to what
// comes has that alone.
int dq_stage_rewrite(dq_session *s, const char *name, const dq_rewrite_rule *rules, uint32_t n, int csum,
                     dq_stage **out, dq_diag *diag);
// Hands bursts to w's task as events with this tag; depth bursts may wait. sample: one of so many bursts (1:
// all).
int dq_stage_tap(dq_session *s, const char *name, dq_waiter *w, uint64_t tag, uint32_t depth, int policy,
                 uint32_t sample, dq_stage **out, dq_diag *diag);

// Sends every burst of q through the stages in order. Adding and removing are safe while packets flow (the
// queue's worker is held for a moment). A direct queue's pipes change on its owner's thread. conn != 0:
// bursts of that connection only, and they go to no other pipe.
int dq_pipe_add(dq_queue *q, dq_stage *const *stages, uint32_t n, uint32_t conn, dq_pipe **out,
                dq_diag *diag);
void dq_pipe_remove(dq_pipe *p);
// Every burst of q goes through these stages first, once, and its pipes get what they leave. Once, before the
// start.
int dq_queue_claim(dq_queue *q, dq_stage *const *stages, uint32_t n, dq_diag *diag);
// What the sources of a stage's own queue hold, and so it: payloads, which is so until this says frames.
// Before it has a source.
void dq_stage_queue_holds(dq_queue *q, bool payloads);

#endif
