// tx_ring.c: transmit proxy: a stage polled with its queue. It reads slots, validates each against the
// kernel's regions, and submits bursts to the queue whose packets stay in the kernel's memory; pace, flows
// and engine are the queue's. It keeps a reference to each burst: once that is the only one, the packets have
// been sent and their tickets are completed, in order.
//
// File writes are passed to a writer like bursts from scripts: its threads take the reference, so slow or
// full disks do not block a queue, and the writer's ledger line counts the outcome.
//
// Several rings of one queue share it by deficit round robin (Shreedhar and Varghese, 1995): in each round of
// the poller a ring submits up to QUANTUM bytes. Together they have up to FLYING bytes in flight, in equal
// parts: packets queued behind them would wait for these.
#include "core/clock.h"
#include "core/err.h"
#include "gpunetio/host/context.h"
#include "gpunetio/host/tx_memory.h"
#include "gpunetio/host/tx_remote.h"
#include "gpunetio/host/tx_timers.h"
#include "gpunetio/host/tx_wait.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/stage_queue.h"
#include "writer/burst_op.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUANTUM    (64u << 10)
#define FLYING     (1u << 20)
#define FLYING_MIN (64u << 10)
#define AHEAD      8 // slots after a missing one that are checked for others,
#define PREFETCH   8 // slots prefetched after one that is read
#define LOOK_AHEAD 8 // on every eighth poll that does not find it

// ---- rejection --------------------------------------------------------------------------------------------

static dq_reason reason_of(int fault) {
    switch (fault) {
    case GN_FAULT_REGION:
    case GN_FAULT_RIGHTS:
        return DQ_DROP_NOT_ITS_REGION;
    case GN_FAULT_RANGE:
        return DQ_DROP_OUTSIDE_REGION;
    case GN_FAULT_PEER:
        return DQ_DROP_NO_PEER;
    case GN_FAULT_FAILED:
    case GN_FAULT_WAIT:
    case GN_FAULT_FLUSHED:
        return DQ_DROP_SEND_ERROR;
    case GN_FAULT_STOPPED:
        return DQ_DROP_STOPPED;
    default:
        return DQ_DROP_BAD_DESCRIPTOR;
    }
}

// Publishes an error, before the ticket is completed.
static void tell_fault(dqi_gn_tx *t, int fault, uint64_t ticket) {
    gn_poke(&t->state->dropped, dqi_get(&t->refused));
    if (t->mlx5.completions) {
        gn_mlx5_fail(&t->mlx5, ticket, fault);
        if (fault == GN_FAULT_FLUSHED) return; // the entry in error is reported
    }
    atomic_store_explicit(&t->fault, (uint32_t)fault, memory_order_relaxed);
    uint64_t failed = atomic_load_explicit(&t->failed, memory_order_relaxed);
    if (failed == 0) atomic_store_explicit(&t->failed, failed = ticket + 1, memory_order_relaxed);
    gn_poke(&t->state->failed, failed);
    gn_store(&t->state->error, gn_error((gn_u32)fault, ticket));
}

// Publishes completion, after the errors of the tickets.
static void tell_completed(dqi_gn_tx *t) {
    if (t->mlx5.completions)
        gn_mlx5_complete(&t->mlx5, atomic_load_explicit(&t->completed, memory_order_relaxed));
    gn_store(&t->state->completed, atomic_load_explicit(&t->completed, memory_order_relaxed) |
                                       (dqi_get(&t->refused) ? GN_SOME_FAILED : 0));
}

// Counts n descriptors, or packets, as not sent.
static void refuse(dqi_gn_tx *t, int fault, uint64_t ticket, uint32_t n) {
    dqi_drop(&t->c, reason_of(fault), n);
    dqi_add(&t->refused, n);
    tell_fault(t, fault, ticket);
}

// Counts a descriptor as not done. After a wait the next operation is not done, either.
static void refuse_slot(dqi_gn_tx *t, int fault, uint64_t ticket, const gn_desc *d) {
    refuse(t, fault, ticket, 1);
    t->unmet = d->op == GN_OP_WAIT;
}

static void break_ring(dqi_gn_tx *t, uint64_t ticket) {
    char why[200];
    snprintf(
        why, sizeof why,
        "its ring takes nothing any more: ticket %llu was taken by the kernel and did not come in %llu ms",
        (unsigned long long)ticket, GN_HOLE_NS / 1000000);
    tell_fault(t, GN_FAULT_HOLE, ticket);
    atomic_store_explicit(&t->broken, true, memory_order_release);
    gn_store(&t->state->epoch, 1 | GN_BROKEN_RING);
    dqi_stage_fail(t->stage, why);
}

// ---- slots ------------------------------------------------------------------------------------------------

bool dqi_gn_tx_posted(const dqi_gn_tx *t, uint64_t ticket, gn_u64 words[GN_TX_WORDS]) {
    if (t->mlx5.completions)
        return gn_mlx5_is_posted(&t->mlx5, ticket) &&
               (ticket - atomic_load_explicit(&t->completed, memory_order_acquire)) >> t->log2 == 0;
    __builtin_prefetch(&t->slots[gn_index(ticket + PREFETCH, t->log2)]);
    return gn_read(t->slots[gn_index(ticket, t->log2)].w, GN_TX_WORDS, gn_lap(ticket, t->log2), words);
}

// Whether others wait behind this missing ticket.
static bool is_hole(const dqi_gn_tx *t, uint64_t ticket) {
    gn_u64 words[GN_TX_WORDS];
    if (gn_load(&t->posted->waits) > ticket) return true;
    uint64_t most = UINT64_C(1) << t->log2;
    for (uint64_t k = 1; k <= AHEAD && k < most; k++)
        if (dqi_gn_tx_posted(t, ticket + k, words)) return true;
    return false;
}

static void watch_hole(dqi_gn_tx *t, uint64_t ticket) {
    if (t->mlx5.completions || t->missed++ % LOOK_AHEAD) return; // a doorbell has no holes
    int64_t now = dqi_mono_ns();
    if (!is_hole(t, ticket))
        t->hole_ns = 0;
    else if (t->hole_ns == 0)
        t->hole_ns = now;
    else if (now - t->hole_ns > (int64_t)GN_HOLE_NS)
        break_ring(t, ticket);
}

// ---- packets ----------------------------------------------------------------------------------------------

// Whether the packet is within one buffer of its region, as devices require.
static bool in_buffer(const dq_region *r, uint64_t offset, uint32_t bytes) {
    uint64_t in = offset % r->stride;
    return r->group > 1 || in + bytes <= r->stride;
}

static bool conn_is(dqi_gn_tx *t, uint32_t conn) {
    const dqi_conn_ops *ops = t->queue->iface->ops->conns;
    dq_conn_info info;
    if (conn == 0 || (ops && conn == t->conn)) return true;
    if (!ops || ops->read(t->queue->iface, conn, &info) != DQ_OK) return false;
    t->conn = conn;
    return true;
}

static uint32_t device_only_of(const dqi_gn_tx *t, const gn_desc *d) {
    return (uint32_t)!t->gn->bound[gn_place_region(d->from)]->cpu |
           (d->flags & GN_SPLIT ? (uint32_t)!t->gn->bound[gn_place_region(d->from2)]->cpu << 1 : 0);
}

static int check_send(dqi_gn_tx *t, const gn_desc *d) {
    bool split = d->flags & GN_SPLIT;
    if (split && t->queue->conf.n_regions != 2) return GN_FAULT_FLAGS;
    const dq_region *r = t->gn->bound[gn_place_region(d->from)];
    if (!in_buffer(r, gn_place_offset(d->from), d->bytes)) return GN_FAULT_RANGE;
    if (split && !in_buffer(t->gn->bound[gn_place_region(d->from2)], gn_place_offset(d->from2), d->bytes2))
        return GN_FAULT_RANGE;
    return conn_is(t, d->conn) ? GN_FAULT_NONE : GN_FAULT_PEER;
}

static uint32_t imm_of(const gn_desc *d) {
    if (!(d->flags & GN_IMM)) return DQI_IMM_NONE;
    return d->op == GN_OP_PUT ? DQI_IMM_WRITE : DQI_IMM_SEND;
}

static void put_segment(const dqi_gn_tx *t, dq_burst *b, uint32_t s, gn_u64 place, uint32_t bytes) {
    b->off[s][b->n] = t->gn->bound[gn_place_region(place)]->offset + gn_place_offset(place);
    b->len[s][b->n] = bytes;
    b->bytes += bytes;
}

// Fills the columns of the next packet, whose segments are set, and counts it.
static void put_columns(dqi_gn_tx *t, dq_burst *b, const gn_desc *d) {
    b->flow[b->n] = 0;
    b->ts[b->n] = DQ_NO_TIME;
    b->tx_time[b->n] = d->time ? (int64_t)(d->time + (uint64_t)dq_start_ns(t->gn->session)) : 0;
    b->timed = b->timed || d->time != 0;
    dqi_burst_set_imm(b, b->n, (dqi_imm){d->imm, imm_of(d)});
    b->n++;
}

static void put_packet(dqi_gn_tx *t, dq_burst *b, const gn_desc *d) {
    put_segment(t, b, 0, d->from, d->bytes);
    if (b->nseg > 1) put_segment(t, b, 1, d->flags & GN_SPLIT ? d->from2 : d->from, d->bytes2);
    put_columns(t, b, d);
}

// Whether the packet can be added to b.
static bool fits(const dq_burst *b, const gn_desc *d, uint32_t device_only) {
    return b->n == 0 ||
           (b->n < b->cap && b->bytes < QUANTUM && b->conn == d->conn && b->device_only == device_only);
}

// Returns a burst for packets in the kernel's memory; NULL: all are in flight.
static dq_burst *empty_burst(dqi_gn_tx *t) {
    dq_burst *b = dqi_burst_get(t->bursts);
    if (!b) return NULL;
    b->queue = t->queue;
    b->payload = t->queue->iface->ops->payload;
    b->slices = true;
    b->flags = DQ_BURST_SHARED;
    return b;
}

// Whether the packet can be added to *b, allocated if NULL: it needs no other burst.
static bool has_room(dqi_gn_tx *t, dq_burst **b, const gn_desc *d, uint32_t device_only) {
    if (!*b && !(*b = empty_burst(t))) return false;
    return fits(*b, d, device_only);
}

// Adds a packet to *b, allocated if NULL. Returns false if it needs another burst, or none is free.
static bool take_send(dqi_gn_tx *t, dq_burst **b, const gn_desc *d) {
    uint32_t device_only = device_only_of(t, d);
    if (!has_room(t, b, d, device_only)) return false;
    (*b)->conn = d->conn;
    (*b)->device_only = (uint8_t)device_only;
    put_packet(t, *b, d);
    return true;
}

// Whether the queue's engine carries the descriptor's immediate value, if it has one.
static bool carries(const dqi_gn_tx *t, const gn_desc *d) {
    if (!(d->flags & GN_IMM)) return true;
    bool (*does)(const dq_queue *, uint32_t) = t->queue->iface->ops->carries_imm;
    return does && does(t->queue, d->imm);
}

// Adds the packet without bytes of a put with an immediate value to *b, which has room.
static void notify(dqi_gn_tx *t, dq_burst *b, const gn_desc *d) {
    b->conn = d->conn;
    for (uint32_t s = 0; s < b->nseg; s++) {
        b->off[s][b->n] = t->queue->conf.regions[s]->offset;
        b->len[s][b->n] = 0;
    }
    put_columns(t, b, d);
}

// Executes an operation on the session's memory. *done false: retry later. Returns a gn_fault.
static int take_memory(dqi_gn_tx *t, const gn_desc *d, dq_burst **b, bool *done) {
    bool notifies = d->flags & GN_IMM;
    int fault = dqi_gn_memory_fault(t, d);
    if (t->copied == 0) t->began_ns = dqi_gn_timers_now(t);
    if (fault != GN_FAULT_NONE) return fault;
    *done = (!notifies || has_room(t, b, d, 0)) && dqi_gn_memory(t, d);
    if (*done) dqi_gn_timers_note(t, d->op, t->began_ns, 1);
    if (*done && notifies) notify(t, *b, d);
    return GN_FAULT_NONE;
}

// ---- files ------------------------------------------------------------------------------------------------

static int give_file(dqi_gn_tx *t, dq_stage *writer, dq_burst *b, dq_op **op) {
    dq_op *made = dqi_op_take(t->pool, 1);
    if (!made) return DQ_NO_SPACE_AVAILABLE;
    int err = dqi_writer_put(writer, b, made);
    if (err == DQ_OK) {
        *op = made;
        return DQ_OK;
    }
    dq_op_lost(made, 1, "not begun");
    dq_op_free(made);
    return err;
}

// Passes bytes to a writer: *op completes when they are in a file; NULL: retry later. Returns a gn_fault.
static int take_file(dqi_gn_tx *t, const gn_desc *d, dq_op **op) {
    const dq_gn_conf *c = &t->gn->conf;
    if (d->conn >= c->n_writers) return GN_FAULT_WRITER;
    dq_burst *b = empty_burst(t);
    if (!b) return GN_FAULT_NONE;
    b->device_only = (uint8_t)device_only_of(t, d);
    put_packet(t, b, d);
    int err = give_file(t, c->writers[d->conn], b, op);
    dq_burst_unref(b);
    if (err == DQ_NO_SPACE_AVAILABLE) return GN_FAULT_NONE;
    if (err != DQ_OK) return GN_FAULT_FAILED;
    dqi_add(&t->c.in, 1);
    dqi_add(&t->c.in_bytes, d->bytes);
    dqi_add(&t->c.out, 1);
    dqi_add(&t->c.out_bytes, d->bytes);
    dqi_add(&t->c.bursts, 1);
    return GN_FAULT_NONE;
}

// ---- submission -------------------------------------------------------------------------------------------

static void fly(dqi_gn_tx *t, dq_burst *b, uint64_t end, uint64_t bytes) {
    t->flights[t->n_flights++ % DQI_GN_FLIGHTS] = (dqi_gn_flight){
        .b = b, .op = t->next_op, .end = end, .bytes = bytes, .since = t->next_since, .what = t->next_what};
    t->flying += bytes;
    t->next_op = NULL;
}

// Whether packets of the ring may still be in its queue, which operations on a peer's memory do not enter:
// they would overtake the packets.
static bool packets_queued(const dqi_gn_tx *t) {
    bool queued = false;
    if (dqi_tx_idle(t->queue)) return false;
    for (uint64_t k = t->first_flight; k != t->n_flights && !queued; k++)
        queued = t->flights[k % DQI_GN_FLIGHTS].b != NULL;
    return queued;
}

// Starts an asynchronous operation, which becomes `next`.
static int take_op(dqi_gn_tx *t, const gn_desc *d, bool *done) {
    int fault = d->op == GN_OP_FILE ? take_file(t, d, &t->next_op) : dqi_gn_remote(t, d, &t->next_op);
    *done = fault != GN_FAULT_NONE || t->next_op != NULL;
    t->next_bytes = dqi_gn_bytes(d);
    t->next_what = d->op;
    return fault;
}

// Adds a packet to *b, or executes the slot; an operation over a connection or to a file must be alone. *done
// false: retry later. Returns a gn_fault.
static int take_slot(dqi_gn_tx *t, const gn_desc *d, bool alone, dq_burst **b, bool *done) {
    int fault = GN_FAULT_NONE;
    *done = true;
    if (!carries(t, d)) return GN_FAULT_IMM;
    if (d->op == GN_OP_SEND) {
        if ((fault = check_send(t, d)) == GN_FAULT_NONE) *done = take_send(t, b, d);
    } else if (d->op == GN_OP_WAIT) {
        fault = dqi_gn_wait(t, d, done);
    } else if (d->op != GN_OP_FILE && !dqi_gn_is_remote(t, d)) {
        fault = take_memory(t, d, b, done);
    } else if (!alone || (d->op != GN_OP_FILE && packets_queued(t))) {
        *done = false;
    } else {
        fault = take_op(t, d, done);
    }
    return fault;
}

// Returns a gn_fault. After an error entries in mlx5's format are dropped: FLUSHED.
static int check_slot(dqi_gn_tx *t, const gn_u64 *words, uint64_t ticket, const gn_given *given, gn_desc *d) {
    return t->mlx5.completions ? gn_mlx5_take(&t->mlx5, t->slots->w, ticket, given, d)
                               : gn_check(words, ticket, given, d);
}

// Whether no further slot is taken with what was: an operation begins alone. A failed packet of mlx5's format
// has its own completion entry, so it is a burst of its own.
static bool is_full(const dqi_gn_tx *t, const dq_burst *b) {
    return t->next_op || (b && t->mlx5.completions);
}

// Processes slots from `accepted` on, up to a full burst or an operation, which becomes `next`. Returns false
// if there are none.
static bool take_slots(dqi_gn_tx *t) {
    const gn_given given = {t->gn->regions, t->gn->n_regions, t->ops, t->most};
    uint64_t from = atomic_load_explicit(&t->accepted, memory_order_relaxed), at = from;
    dq_burst *b = NULL;
    bool more = true;
    t->next_since = dqi_gn_timers_now(t);
    for (gn_u64 words[GN_TX_WORDS];
         more && !is_full(t, b) && at - from < t->queue->conf.batch_size && dqi_gn_tx_posted(t, at, words);) {
        gn_desc d;
        int fault = check_slot(t, words, at, &given, &d);
        if (fault == GN_FAULT_NONE)
            fault = t->unmet && d.op ? GN_FAULT_WAIT : take_slot(t, &d, at == from, &b, &more);
        if (fault != GN_FAULT_NONE) dqi_add(&t->c.in, 1), refuse_slot(t, fault, at, &d);
        at += more;
    }
    if (b && b->n == 0) {
        dq_burst_unref(b);
        b = NULL;
    }
    if (at == from) {
        if (more) watch_hole(t, at);
        return false;
    }
    t->hole_ns = 0;
    atomic_store_explicit(&t->accepted, at, memory_order_relaxed);
    gn_store(&t->state->accepted, at);
    if (!b) t->deficit -= (int64_t)((at - from) * sizeof(gn_slot));
    if (!b && !t->next_op && t->first_flight == t->n_flights) { // no packet before it is in flight
        atomic_store_explicit(&t->completed, at, memory_order_release);
        tell_completed(t);
        return true;
    }
    if (b) {
        dqi_add(&t->c.in, b->n);
        dqi_add(&t->c.in_bytes, b->bytes);
        dqi_gauge_add(&t->held, b->n);
    }
    t->next = b;
    t->next_end = at;
    t->has_next = true;
    return true;
}

// Submits the next burst. Returns false if the queue is full.
static bool hand_over(dqi_gn_tx *t) {
    dq_burst *b = t->next;
    uint64_t bytes = b ? b->bytes : t->next_op ? t->next_bytes : 0;
    uint32_t n = b ? b->n : 0;
    if (b) dqi_burst_hold(b);
    int err = b ? dqi_tx_put(t->queue, b) : DQ_OK;
    if (b && err != DQ_OK) dq_burst_unref(b);
    if (err == DQ_NO_SPACE_AVAILABLE) return false;
    t->has_next = false;
    t->next = NULL;
    dqi_gauge_add(&t->held, -(int64_t)n);
    if (err != DQ_OK) {
        refuse(t, GN_FAULT_FAILED, t->next_end - 1, n);
        dq_burst_unref(b);
        b = NULL;
        bytes = 0;
    } else if (b) {
        dqi_add(&t->c.out, n);
        dqi_add(&t->c.out_bytes, bytes);
        dqi_add(&t->c.bursts, 1);
    }
    t->deficit -= (int64_t)bytes;
    fly(t, b, t->next_end, bytes);
    return true;
}

static int take(dqi_gn_tx *t) {
    int work = 0;
    t->deficit += QUANTUM;
    while (t->deficit > 0 && t->flying < t->most_flying && t->n_flights - t->first_flight < DQI_GN_FLIGHTS) {
        if (!t->has_next && !take_slots(t)) {
            work += t->copied > 0 || t->wait_ns != 0;
            t->deficit = 0;
            break;
        }
        if (t->has_next && !hand_over(t)) break;
        work++;
    }
    if (t->deficit > QUANTUM) t->deficit = QUANTUM; // it could not submit its share
    return work;
}

// Whether an operation has completed; publishes its outcome.
static bool has_ended(dqi_gn_tx *t, const dqi_gn_flight *f) {
    dq_op_state is;
    dq_op_read(f->op, &is);
    if (!is.done) return false;
    if (is.failed && f->what == GN_OP_FILE) { // counted by the writer
        dqi_add(&t->refused, 1);
        tell_fault(t, GN_FAULT_FAILED, f->end - 1);
    } else if (is.failed) {
        dqi_add(&t->c.in, 1);
        refuse(t, GN_FAULT_FAILED, f->end - 1, 1);
    } else if (f->what == GN_OP_FILE) {
        dqi_gn_timers_note(t, f->what, f->since, 1);
    } else {
        dqi_add(&t->c.extra[DQ_EXTRA_ONE_SIDED], 1);
        dqi_add(&t->c.extra[DQ_EXTRA_ONE_SIDED_BYTES], f->bytes);
        dqi_gn_timers_note(t, f->what, f->since, 1);
    }
    dq_op_free(f->op);
    return true;
}

// Completes sent bursts.
static int reap(dqi_gn_tx *t) {
    int work = 0;
    for (; t->first_flight != t->n_flights; t->first_flight++, work++) {
        const dqi_gn_flight *f = &t->flights[t->first_flight % DQI_GN_FLIGHTS];
        if (f->b && !dqi_burst_exclusive(f->b)) break;
        if (f->op && !has_ended(t, f)) break;
        if (f->b) dqi_gn_timers_note(t, GN_OP_SEND, f->since, f->b->n);
        dq_burst_unref(f->b);
        t->flying -= f->bytes;
        atomic_store_explicit(&t->completed, f->end, memory_order_release);
    }
    if (work) tell_completed(t);
    return work;
}

// ---- stage ------------------------------------------------------------------------------------------------

static int tx_poll(dq_stage *st) {
    dqi_gn_tx *t = st->impl;
    if (atomic_load_explicit(&t->detached, memory_order_relaxed)) return 0;
    gn_poke(&t->gn->proxy->beat, gn_peek(&t->gn->proxy->beat) + 1);
    int work = reap(t);
    if (!atomic_load_explicit(&t->broken, memory_order_relaxed)) work += take(t);
    if (t->first_flight != t->n_flights) {
        if (work) dqi_tx_poll(t->queue); // to send in this round
        work += reap(t);
    }
    return dqi_gn_look_again(&t->look, st, work);
}

static uint64_t tx_held(const dq_stage *st) {
    return (uint64_t)dqi_gauge_get(&((const dqi_gn_tx *)st->impl)->held);
}

static void tx_line(const dq_stage *st, dq_line *line) {
    dqi_line_add(line, &((const dqi_gn_tx *)st->impl)->c);
}

void dqi_gn_tx_detach(dqi_gn_tx *t) {
    if (!t->stage || atomic_exchange(&t->detached, true)) return;
    if (t->next) {
        refuse(t, GN_FAULT_STOPPED, t->next_end - 1, t->next->n);
        dqi_gauge_add(&t->held, -(int64_t)t->next->n);
        dq_burst_unref(t->next);
    }
    t->next = NULL;
    t->has_next = false;
    dq_op_free(t->next_op);
    t->next_op = NULL;
    for (; t->first_flight != t->n_flights; t->first_flight++) {
        dq_burst_unref(t->flights[t->first_flight % DQI_GN_FLIGHTS].b);
        dq_op_free(t->flights[t->first_flight % DQI_GN_FLIGHTS].op);
    }
    dq_burst_unref(t->scratch); // pending operations reference it
    t->scratch = NULL;
}

static void tx_finish(dq_stage *st) { dqi_gn_tx_detach(st->impl); }

static void free_memory(dqi_gn_tx *t) {
    dqi_burst_pool_free(t->bursts);
    dqi_op_pool_free(t->pool);
    free(t->took);
    free(t->mlx5.of);
}

static void tx_free(dq_stage *st) {
    dqi_gn_tx *t = st->impl;
    free_memory(t);
    dqi_gn_unref(t->gn);
}

static const dqi_stage_ops tx_ops = {
    .line_kind = DQ_LINE_STAGE,
    .held = tx_held,
    .line = tx_line,
    .histogram = dqi_gn_timers_histogram,
    .poll = tx_poll,
    .finish = tx_finish,
    .free = tx_free,
};

static uint32_t longest(const dq_gn *g) {
    uint32_t most = 0;
    for (uint32_t k = 0; k < g->n_regions - g->n_peers; k++)
        if (g->bound[k]->conf.buf_size > most) most = g->bound[k]->conf.buf_size;
    return most;
}

// Returns a ring's share of the bytes in flight.
static uint64_t most_flying(const dqi_gn_tx *t) {
    uint64_t rings = 0;
    for (uint32_t k = 0; k < t->gn->conf.n_tx; k++)
        rings += t->gn->conf.tx[k] == t->queue;
    return FLYING / rings > FLYING_MIN ? FLYING / rings : FLYING_MIN;
}

// Allocates all memory of the ring.
static bool get_memory(dqi_gn_tx *t, dq_session *s) {
    const dq_queue_conf *q = &t->queue->conf;
    t->bursts = dqi_burst_pool_new(s, DQI_GN_FLIGHTS + 1, q->batch_size, q->n_regions);
    bool begins = t->gn->conn || t->gn->conf.n_writers > 0;
    if (begins) t->pool = dqi_op_pool_new(DQI_GN_FLIGHTS + 1);
    bool mlx5 = t->mlx5.completions;
    if (mlx5) t->mlx5.of = calloc((size_t)1 << t->log2, sizeof *t->mlx5.of);
    return t->bursts && (t->pool || !begins) && (t->mlx5.of || !mlx5) && dqi_gn_timers_open(t);
}

int dqi_gn_tx_open(dqi_gn_tx *t, dq_session *s, const char *name, dq_diag *diag) {
    dq_stage *st;
    t->most = longest(t->gn);
    t->most_flying = most_flying(t);
    int err = get_memory(t, s) ? dqi_stage_add(s, name, &tx_ops, t, &st, diag)
                               : dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", t->gn->what);
    if (err != DQ_OK) {
        free_memory(t);
        return err;
    }
    t->stage = st;
    atomic_fetch_add(&t->gn->refs, 1);
    dqi_poller_hold(t->queue->poller);
    err = dqi_stage_feed(st, t->queue, diag);
    dqi_poller_release(t->queue->poller);
    dqi_queue_kick(t->queue);
    return err;
}
