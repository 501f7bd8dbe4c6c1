// dq_pipeline.h: queue operations: sending, waiting, pipes and stages.
#ifndef DQ_PIPELINE_H
#define DQ_PIPELINE_H

#include "core/dq_burst.h"
#include "program/dq_program.h"

// ---- queues -----------------------------------------------------------------------------------------------
// Allocates a burst of n packets with buffers of each of q's regions, lengths 0. The caller owns it.
// NO_FREE_BURST_BUFFERS, NO_FREE_PACKET_BUFFERS, INVALID_PARAMETER (n is 0 or above the batch size),
// NOT_SUPPORTED (q has no regions).
int dq_tx_alloc(dq_queue *q, uint32_t n, dq_burst **out);
// Queues b for sending; consumes the caller's reference on DQ_OK only. NO_SPACE_AVAILABLE: the ring is full;
// b's connection has used its share of the queue because its peer does not read; or, with several
// connections, half of the queue's bursts are not yet processed. NOT_SUPPORTED: segments of b are in memory
// the CPU can't read and q's own regions have no such memory in these segments. In direct mode, on the
// owner's thread, sends immediately what can be sent.
int dq_tx_send(dq_queue *q, dq_burst *b);
// Sets the pace in bits/s and packets/s of the queue's packets (frames without FCS, or payloads); 0: not
// limited.
void dq_tx_pace(dq_queue *q, double bps, double pps);
// Replaces the pace: packets leave with the gaps of their receive times divided by speed (above 0). Packets
// of templates and packets with send times are not affected.
void dq_tx_follow(dq_queue *q, double speed);
// Returns the source of q's receive times (dq_stamps), known once the session is open.
int dq_rx_stamps(const dq_queue *q);
// Returns 1 if the device enforces the send times of a transmit queue's packets, 0 if the queue's poller
// does.
int dq_tx_device_times(const dq_queue *q);
// Discards the packets waiting in a receive queue, counted as flushed; returns their number.
int64_t dq_rx_flush(dq_queue *q);

// Makes the queue's poller send count packets of t (0: until the stop) at the queue's pace. Replaces the
// current transmission; t NULL ends it. t must outlive the transmission. INVALID_PARAMETER if t is longer
// than a buffer.
int dq_tx_transmit(dq_queue *q, dq_template *t, uint64_t count);
// Returns the packets of a transmit queue that have not left yet: queued, inside the engine, and the rest of
// a transmission; UINT64_MAX if the transmission is unlimited. Any thread.
uint64_t dq_tx_waiting(const dq_queue *q);
// Returns the packets of the current transmission still to be sent; UINT64_MAX if unlimited, 0 if there is
// none.
uint64_t dq_tx_remaining(const dq_queue *q);

// ---- waiting ----------------------------------------------------------------------------------------------

typedef enum dq_event_kind { DQ_EV_BURST = 1, DQ_EV_CONNECT, DQ_EV_DISCONNECT, DQ_EV_OP } dq_event_kind;

// An event. BURST: b is the receiver's reference. CONNECT/DISCONNECT: conn and, in code, the reason (0 or a
// negative dq_err). OP: the operation watched with this tag has completed (dq_op.h). tag is the one given to
// the tap.
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
// Makes w's task the owner of a direct queue, which has no owner or one that is not waiting.
int dq_waiter_adopt(dq_waiter *w, dq_queue *q);
// Ends w's ownership of q, if any. On its task's thread, or while the task is not waiting.
void dq_waiter_disown(dq_waiter *w, dq_queue *q);
// Ends the current dq_wait of w, or its next one. Any thread.
void dq_waiter_wake(dq_waiter *w);
// Serves w's direct queues and taps. Returns the number of events (at most max) as soon as there are any, or
// 0 after timeout_ns (negative: no timeout) or after dq_waiter_wake. Owner's thread; blocks.
int dq_wait(dq_waiter *w, int64_t timeout_ns, dq_event *ev, int max);

// ---- pipes ------------------------------------------------------------------------------------------------
typedef enum dq_policy { DQ_POLICY_DROP, DQ_POLICY_WAIT } dq_policy;

// Sends every burst of q through the stages in order. Pipes may be added and removed while packets flow: the
// queue's worker pauses briefly. The pipes of a direct queue change on its owner's thread. conn != 0: only
// bursts of that connection, which then reach no other pipe.
int dq_pipe_add(dq_queue *q, dq_stage *const *stages, uint32_t n, uint32_t conn, dq_pipe **out,
                dq_diag *diag);
void dq_pipe_remove(dq_pipe *p);
// Sends every burst of q through these stages first; q's pipes get the remaining packets. May be called once,
// before the start.
int dq_queue_claim(dq_queue *q, dq_stage *const *stages, uint32_t n, dq_diag *diag);
// Sets whether the sources of a stage's own queue, and so the queue, carry payloads (the default) or frames.
// Before the queue has a source.
void dq_stage_queue_holds(dq_queue *q, bool payloads);

#endif
