// op.c: operations: the work adds, the task looks or is told; whoever lets go last frees.
//
// The end comes once, on the thread that settles the last part: bursts go back, then the operation is done,
// then its watcher hears of it. A watch that comes after the end is told at once, by the same rule under the
// same lock.
#include "pipeline/op.h"
#include "core/dq_burst.h"
#include "pipeline/waiter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dq_op {
    _Atomic uint32_t refs, left; // left: parts that are open
    _Atomic uint32_t completed, failed;
    _Atomic uint64_t bytes;
    _Atomic bool done;
    dqi_spin lock; // of what follows
    char error[256];
    bool ended;
    dq_waiter *waiter; // who watches
    dqi_op_end end;    // what it gets
    uint32_t n_bursts;
    dq_burst **bursts;
    size_t about_bytes;
    uint8_t about[] __attribute__((aligned(16)));
};

dq_op *dqi_op_new(uint32_t parts, const void *about, size_t bytes) {
    dq_op *op = calloc(1, sizeof *op + bytes);
    if (!op) return NULL;
    if (bytes > 0) memcpy(op->about, about, bytes);
    op->about_bytes = bytes;
    atomic_init(&op->refs, parts > 0 ? 2 : 1);
    atomic_init(&op->left, parts);
    atomic_init(&op->done, parts == 0);
    op->ended = parts == 0;
    return op;
}

int dq_op_new(uint32_t parts, dq_op **out) {
    *out = dqi_op_new(parts, NULL, 0);
    return *out ? DQ_OK : DQ_ESYS - ENOMEM;
}

const void *dqi_op_about(const dq_op *op) { return op && op->about_bytes > 0 ? op->about : NULL; }

bool dqi_op_hold(dq_op *op, dq_burst *b) {
    dq_burst **more = realloc(op->bursts, (op->n_bursts + 1) * sizeof *more);
    if (!more) return false;
    dq_burst_ref(b);
    op->bursts = more;
    op->bursts[op->n_bursts++] = b;
    return true;
}

static void unref(dq_op *op) {
    if (atomic_fetch_sub(&op->refs, 1) != 1) return;
    free(op->bursts);
    free(op);
}

void dq_op_free(dq_op *op) {
    if (op) unref(op);
}

// ---- the end ----------------------------------------------------------------------------------------------

static void end(dq_op *op) {
    for (uint32_t k = 0; k < op->n_bursts; k++)
        dq_burst_unref(op->bursts[k]);
    op->n_bursts = 0;
    atomic_store(&op->done, true);
    dqi_lock(&op->lock);
    op->ended = true;
    dq_waiter *w = op->waiter;
    dqi_unlock(&op->lock);
    if (w) dqi_waiter_ended(w, &op->end);
    unref(op); // the work's hold
}

static void settle(dq_op *op, uint32_t n) {
    if (n > 0 && atomic_fetch_sub(&op->left, n) == n) end(op);
}

void dq_op_ok(dq_op *op, uint32_t n, uint64_t bytes) {
    if (!op) return;
    atomic_fetch_add(&op->bytes, bytes);
    atomic_fetch_add(&op->completed, n);
    settle(op, n);
}

void dq_op_lost(dq_op *op, uint32_t n, const char *why) {
    if (!op || n == 0) return;
    dqi_lock(&op->lock);
    if (op->error[0] == 0) snprintf(op->error, sizeof op->error, "%s", why);
    dqi_unlock(&op->lock);
    atomic_fetch_add(&op->failed, n);
    settle(op, n);
}

// ---- who wants to know ------------------------------------------------------------------------------------

void dq_op_read(const dq_op *op, dq_op_state *out) {
    out->done = atomic_load(&op->done); // first: then the others are final
    out->failed = atomic_load(&op->failed);
    out->completed = atomic_load(&op->completed);
    out->bytes = atomic_load(&op->bytes);
}

void dq_op_error(const dq_op *op, char *buf, size_t len) {
    dqi_spin *lock = (dqi_spin *)(uintptr_t)&op->lock;
    dqi_lock(lock);
    snprintf(buf, len, "%s", op->error);
    dqi_unlock(lock);
}

int dq_op_watch(dq_op *op, dq_waiter *w, uint64_t tag) {
    dqi_lock(&op->lock);
    bool watched = op->waiter != NULL, ended = op->ended;
    if (!watched) {
        dqi_waiter_hold(w);
        atomic_fetch_add(&op->refs, 1); // until the task has heard
        op->waiter = w;
        op->end = (dqi_op_end){.op = op, .tag = tag};
    }
    dqi_unlock(&op->lock);
    if (watched) return DQ_INVALID_PARAMETER;
    if (ended) dqi_waiter_ended(w, &op->end);
    return DQ_OK;
}
