// op.c: reference-counted operations, shared by the worker and the task.
//
// Completion happens once, on the thread that settles the last part: the burst is released, the operation
// marked done, and the watcher notified. A watch added after completion is notified immediately, under the
// same lock.
#include "pipeline/op.h"
#include "core/dq_burst.h"
#include "pipeline/waiter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dq_op {
    _Atomic uint32_t refs, left; // left: unsettled parts
    _Atomic uint32_t completed, failed;
    _Atomic uint64_t bytes;
    _Atomic bool done;
    dqi_spin lock; // protects the following fields
    char error[256];
    bool ended;
    dq_waiter *waiter; // waiter of the watching task
    dqi_op_end end;    // completion event for the waiter
    dq_burst *held;    // reference until completion
    dqi_op_pool *home; // pool it returns to; NULL: it is freed
    size_t about_bytes;
    uint8_t about[] __attribute__((aligned(16)));
};

struct dqi_op_pool {
    dqi_spin lock;
    uint32_t n, size; // free ones; total
    bool left;        // owner has freed the pool: the last returned op frees the memory
    uint8_t *ops;
    dq_op *free[];
};

// Initializes an operation in possibly reused memory.
static dq_op *begin(dq_op *op, dqi_op_pool *home, uint32_t parts) {
    memset(op, 0, sizeof *op);
    op->home = home;
    op->ended = parts == 0;
    atomic_init(&op->refs, parts > 0 ? 2 : 1);
    atomic_init(&op->left, parts);
    atomic_init(&op->done, parts == 0);
    return op;
}

dq_op *dqi_op_new(uint32_t parts, const void *about, size_t bytes) {
    dq_op *op = malloc(sizeof *op + bytes);
    if (!op) return NULL;
    begin(op, NULL, parts);
    if (bytes > 0) memcpy(op->about, about, bytes);
    op->about_bytes = bytes;
    return op;
}

int dq_op_new(uint32_t parts, dq_op **out) {
    *out = dqi_op_new(parts, NULL, 0);
    return *out ? DQ_OK : DQ_ESYS - ENOMEM;
}

// ---- pool -------------------------------------------------------------------------------------------------

dqi_op_pool *dqi_op_pool_new(uint32_t n) {
    dqi_op_pool *p = calloc(1, sizeof *p + n * sizeof *p->free);
    if (p) p->ops = calloc(n, sizeof(dq_op));
    if (!p || !p->ops) {
        free(p);
        return NULL;
    }
    p->n = p->size = n;
    for (uint32_t k = 0; k < n; k++)
        p->free[n - 1 - k] = (dq_op *)(void *)(p->ops + k * sizeof(dq_op));
    return p;
}

// Returns an operation, or marks the owner as gone (back NULL); frees the pool once both are complete.
static void settle_pool(dqi_op_pool *p, dq_op *back) {
    dqi_lock(&p->lock);
    if (back)
        p->free[p->n++] = back;
    else
        p->left = true;
    bool last = p->left && p->n == p->size;
    dqi_unlock(&p->lock);
    if (!last) return;
    free(p->ops);
    free(p);
}

void dqi_op_pool_free(dqi_op_pool *p) {
    if (p) settle_pool(p, NULL);
}

dq_op *dqi_op_take(dqi_op_pool *p, uint32_t parts) {
    dqi_lock(&p->lock);
    dq_op *op = p->n > 0 ? p->free[--p->n] : NULL;
    dqi_unlock(&p->lock);
    return op ? begin(op, p, parts) : NULL;
}

// ---- references -------------------------------------------------------------------------------------------

const void *dqi_op_about(const dq_op *op) { return op && op->about_bytes > 0 ? op->about : NULL; }

void dqi_op_hold(dq_op *op, dq_burst *b) {
    dq_burst_ref(b);
    op->held = b;
}

static void unref(dq_op *op) {
    if (atomic_fetch_sub(&op->refs, 1) != 1) return;
    if (op->home)
        settle_pool(op->home, op);
    else
        free(op);
}

void dq_op_free(dq_op *op) {
    if (op) unref(op);
}

// ---- completion -------------------------------------------------------------------------------------------

static void end(dq_op *op) {
    dq_burst_unref(op->held);
    op->held = NULL;
    atomic_store(&op->done, true);
    dqi_lock(&op->lock);
    op->ended = true;
    dq_waiter *w = op->waiter;
    dqi_unlock(&op->lock);
    if (w) dqi_waiter_ended(w, &op->end);
    unref(op); // the worker's reference
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

// ---- state and watching -----------------------------------------------------------------------------------

void dq_op_read(const dq_op *op, dq_op_state *out) {
    out->done = atomic_load(&op->done); // first: the other values are then final
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
        atomic_fetch_add(&op->refs, 1); // until the task has received the event
        op->waiter = w;
        op->end = (dqi_op_end){.op = op, .tag = tag};
    }
    dqi_unlock(&op->lock);
    if (watched) return DQ_INVALID_PARAMETER;
    if (ended) dqi_waiter_ended(w, &op->end);
    return DQ_OK;
}
