// waiter.c: dq_wait of a task: its direct queues, the taps that feed it, and wake-ups from other threads.
#include "pipeline/waiter.h"
#include "core/clock.h"
#include "core/err.h"
#include "pipeline/op.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <string.h>

// Packets received by a busy task's direct queues before it gets their events: small bursts share one call
// into the script, while their packets are still cached.
#define ENOUGH_PACKETS 512

struct dq_waiter {
    dqi_poller poller;
    pthread_mutex_t lock; // control threads add and remove taps
    dqi_tap **taps;
    uint32_t n, cap, next;
    dqi_op_end *first, *last; // completions not yet delivered to the task
    bool closed;
    _Atomic uint32_t refs; // the task's, and one per watched operation
    _Atomic uint32_t woken;
};

int dq_waiter_new(dq_waiter **out, dq_diag *diag) {
    dq_waiter *w = calloc(1, sizeof *w);
    int err = w ? dqi_poller_init(&w->poller, NULL) : DQ_ESYS - ENOMEM;
    if (err != DQ_OK) {
        free(w);
        return dqi_fail(diag, err, "task: wake-up descriptor: %s", dq_err_name(err));
    }
    pthread_mutex_init(&w->lock, NULL);
    atomic_init(&w->refs, 1);
    *out = w;
    return DQ_OK;
}

void dqi_waiter_hold(dq_waiter *w) { atomic_fetch_add(&w->refs, 1); }

static void unhold(dq_waiter *w) {
    if (atomic_fetch_sub(&w->refs, 1) != 1) return;
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void dq_waiter_free(dq_waiter *w) {
    if (!w) return;
    for (uint32_t i = 0; i < w->poller.n; i++)
        w->poller.queues[i]->poller = NULL;
    for (uint32_t i = 0; i < w->n; i++)
        w->taps[i]->waiter = NULL;
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    dqi_op_end *e = w->first;
    w->first = w->last = NULL;
    dqi_poller_close(&w->poller);
    pthread_mutex_unlock(&w->lock);
    while (e) {
        dqi_op_end *next = e->next;
        dq_op_free(e->op);
        e = next;
    }
    free(w->taps);
    unhold(w);
}

void dqi_waiter_ended(dq_waiter *w, dqi_op_end *e) {
    pthread_mutex_lock(&w->lock);
    bool open = !w->closed;
    if (open) {
        *(w->first ? &w->last->next : &w->first) = e;
        w->last = e;
        dqi_wake_up(&w->poller.wake); // under the lock: its descriptor is open
    }
    pthread_mutex_unlock(&w->lock);
    if (!open) dq_op_free(e->op);
    unhold(w);
}

int dq_waiter_adopt(dq_waiter *w, dq_queue *q) {
    if (!q->conf.direct) return DQ_INVALID_PARAMETER;
    if (q->poller == &w->poller) return DQ_OK;
    if (q->poller) dqi_poller_remove(q->poller, q);
    return dqi_poller_add(&w->poller, q);
}

void dq_waiter_disown(dq_waiter *w, dq_queue *q) {
    if (q->poller == &w->poller) dqi_poller_remove(q->poller, q);
}

void dq_waiter_wake(dq_waiter *w) {
    atomic_store(&w->woken, 1);
    dqi_wake_up(&w->poller.wake);
}

int dqi_waiter_add(dq_waiter *w, dqi_tap *t) {
    pthread_mutex_lock(&w->lock);
    int err = DQ_OK;
    if (w->n == w->cap) {
        uint32_t cap = w->cap ? 2 * w->cap : 8;
        dqi_tap **more = realloc(w->taps, cap * sizeof *more);
        if (more) {
            w->taps = more;
            w->cap = cap;
        } else {
            err = DQ_ESYS - ENOMEM;
        }
    }
    if (err == DQ_OK) w->taps[w->n++] = t;
    pthread_mutex_unlock(&w->lock);
    return err;
}

void dqi_waiter_remove(dq_waiter *w, dqi_tap *t) {
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = 0; i < w->n; i++)
        if (w->taps[i] == t) w->taps[i--] = w->taps[--w->n];
    pthread_mutex_unlock(&w->lock);
}

void dqi_waiter_kick(dq_waiter *w) { dqi_wake_up(&w->poller.wake); }

// Takes the oldest event of t; false: there is none. Task's thread.
static bool tap_pop(dqi_tap *t, dq_event *ev) {
    void *p;
    uint32_t kind;
    if (!dqi_consumer_pop(&t->in, &p, &kind)) return false;
    memset(ev, 0, sizeof *ev);
    ev->tag = t->tag;
    ev->kind = (int32_t)kind;
    if (kind != DQ_EV_BURST) { // packed by dqi_iface_event
        ev->conn = (uint32_t)(uintptr_t)p;
        ev->code = (int32_t)((uint64_t)(uintptr_t)p >> 32);
        return true;
    }
    ev->b = p;
    dqi_burst_view_raw(ev->b, &ev->view);
    ev->conn = ev->view.conn;
    dqi_gauge_add(&t->in.held, -(int64_t)ev->view.n);
    dqi_add(&t->c->out, ev->view.n);
    dqi_add(&t->c->out_bytes, ev->view.bytes);
    return true;
}

// Takes at most max events, round robin over the taps so that a busy one can't starve the others.
static int collect(dq_waiter *w, dq_event *ev, int max) {
    int n = 0;
    pthread_mutex_lock(&w->lock);
    for (bool more = true; more && n < max;) {
        more = false;
        for (uint32_t i = 0; i < w->n && n < max; i++) {
            dqi_tap *t = w->taps[(w->next + i) % w->n];
            if (!tap_pop(t, &ev[n])) continue;
            n++;
            more = true;
        }
    }
    if (w->n > 0) w->next = (w->next + 1) % w->n;
    for (dqi_op_end *e; n < max && (e = w->first) != NULL;) {
        w->first = e->next;
        ev[n++] = (dq_event){.tag = e->tag, .kind = DQ_EV_OP};
        dq_op_free(e->op);
    }
    pthread_mutex_unlock(&w->lock);
    return n;
}

static bool taps_waiting(dq_waiter *w) {
    pthread_mutex_lock(&w->lock);
    bool any = w->first != NULL;
    for (uint32_t i = 0; i < w->n && !any; i++)
        any = dqi_ring_level(&w->taps[i]->in.ring) > 0;
    pthread_mutex_unlock(&w->lock);
    return any;
}

static bool take_wake(dq_waiter *w) {
    return atomic_load_explicit(&w->woken, memory_order_relaxed) && atomic_exchange(&w->woken, 0);
}

// Sleeps unless a tap has filled meanwhile: its producer may have read `sleeping` before it was set.
static void sleep_until(dq_waiter *w, int64_t until) {
    dqi_wake_announce(&w->poller.wake);
    if (taps_waiting(w) || atomic_load(&w->woken)) {
        dqi_wake_stay(&w->poller.wake);
        return;
    }
    dqi_poller_sleep(&w->poller, until);
    dqi_wake_stay(&w->poller.wake); // if it did not sleep, a later wake-up would cost a system call
}

// Polls and collects until there are enough packets or no more events. Returns the events; *work: the work
// done.
static int serve(dq_waiter *w, dq_event *ev, int max, int *work) {
    int n = 0, got, busy;
    uint32_t packets = 0;
    *work = 0;
    do {
        *work += busy = dqi_poller_once(&w->poller);
        got = collect(w, ev + n, max - n);
        for (int i = n; i < n + got; i++)
            packets += ev[i].view.n;
        n += got;
    } while (busy > 0 && got > 0 && n < max && packets < ENOUGH_PACKETS);
    return n;
}

int dq_wait(dq_waiter *w, int64_t timeout_ns, dq_event *ev, int max) {
    int64_t start = 0, until = INT64_MAX;
    if (atomic_exchange_explicit(&w->poller.task, dqi_self(), memory_order_relaxed) != dqi_self())
        dqi_thread_set_timer_slack();
    for (;;) {
        int work, n = serve(w, ev, max, &work);
        if (n > 0 || take_wake(w) || timeout_ns == 0) return n;
        int64_t now = dqi_mono_ns();
        if (start == 0) {
            start = now;
            if (timeout_ns > 0 && timeout_ns < INT64_MAX - now) until = now + timeout_ns;
        }
        if (now >= until) return 0;
        if (work > 0) {
            start = now; // busy: restart the idle time, keep the timeout
            continue;
        }
        if (!dqi_poller_tries(&w->poller, now - start)) sleep_until(w, until);
    }
}
