// poller.c: polling of queues by a worker thread, or by a task in dq_wait.
//
// The idle mode is adaptive: a poller without work spins for a while (a packet arriving then needs no
// wake-up), then sleeps in poll(2) on its wake-up descriptor and the engines' descriptors, until the next
// known time. The spin time depends on the last sleep: after a short one, more spinning would have caught the
// work; after a long one, spinning only kept the core from the producer or consumer thread. A sleep is short
// if it is below a multiple of this machine's wake-up latency, which the poller measures. The lead before a
// packet's departure adapts to how late its sleeps end. Control threads pause the poller before they change
// its lists (dqi_poller_hold), so the packet path takes no lock.
#include "pipeline/poller.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/thread.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/stage.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SPIN_MIN  2500   // spin time of an idle poller after one short sleep
#define SPIN_MAX  20000  // minimum after several; longer spins call sched_yield
#define SPIN_LAST 500000 // maximum
#define WAKES     8      // maximum in wake-up latencies, so that two threads that alternate do not both sleep
#define TRIALS    8      // initial sleeps of a worker that measure the wake-up latency
#define TRIAL_NS  20000
#define LEAD_NS   30000 // a sleep ends this much early, as it may overshoot
#define LEAD_MIN  10000 // for departures: the 99th percentile of overshoots, within these limits
#define LEAD_MAX  100000
#define LEAD_STEP 500
#define NAP_MIN   30000 // shorter sleeps are skipped
#define REST_MIN  5000  // a shorter rest ends before the sleep
#define MAX_ARMED 256

int dqi_poller_init(dqi_poller *p, dq_session *s) {
    *p = (dqi_poller){.session = s, .core = -1, .spin_ns = SPIN_MAX, .lead_ns = LEAD_NS};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return dqi_wake_init(&p->wake);
}

void dqi_poller_close(dqi_poller *p) {
    dqi_wake_close(&p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    free(p->queues);
    free(p->stages);
    p->queues = NULL;
    p->stages = NULL;
}

// Transmit queues come first in the list: bursts released by handlers and stages are sent, and their buffers
// reused, before more is received. Otherwise two bursts of each queue would be in flight, with twice the
// cache footprint.
int dqi_poller_add(dqi_poller *p, dq_queue *q) {
    if (p->n == p->cap) {
        uint32_t cap = p->cap ? 2 * p->cap : 8;
        dq_queue **more = realloc(p->queues, cap * sizeof *more);
        if (!more) return DQ_ESYS - ENOMEM;
        p->queues = more;
        p->cap = cap;
    }
    uint32_t at = p->n;
    while (q->conf.dir == DQ_TX && at > 0 && p->queues[at - 1]->conf.dir != DQ_TX)
        at--;
    memmove(&p->queues[at + 1], &p->queues[at], (p->n++ - at) * sizeof(dq_queue *));
    p->queues[at] = q;
    q->poller = p;
    int err = DQ_OK;
    for (uint32_t i = 0; i < atomic_load(&q->session->n_stages) && err == DQ_OK; i++)
        if (q->session->stages[i]->source == q) err = dqi_poller_add_stage(p, q->session->stages[i]);
    return err;
}

static int add_itself(dqi_poller *p, dq_stage *st) {
    dq_stage **more = realloc(p->stages, (p->n_stages + 1) * sizeof(dq_stage *));
    if (!more) return DQ_ESYS - ENOMEM;
    p->stages = more;
    p->stages[p->n_stages++] = st;
    return DQ_OK;
}

int dqi_poller_add_stage(dqi_poller *p, dq_stage *st) {
    const dq_session *s = st->session;
    int err = st->ops->poll && !st->threaded ? add_itself(p, st) : DQ_OK;
    for (uint32_t i = 0; i < atomic_load(&s->n_stage_queues) && err == DQ_OK; i++)
        if (s->stage_queues[i]->owner == st) err = dqi_poller_add(p, s->stage_queues[i]);
    return err;
}

static void remove_stage(dqi_poller *p, const dq_stage *st) {
    const dq_session *s = st->session;
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (p->stages[i] != st) p->stages[left++] = p->stages[i];
    p->n_stages = left;
    for (uint32_t i = 0; i < atomic_load(&s->n_stage_queues); i++)
        if (s->stage_queues[i]->owner == st) dqi_poller_remove(p, s->stage_queues[i]);
}

void dqi_poller_remove(dqi_poller *p, dq_queue *q) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->queues[i] != q) p->queues[left++] = p->queues[i];
    p->n = left;
    q->poller = NULL;
    for (uint32_t i = 0; i < atomic_load(&q->session->n_stages); i++)
        if (q->session->stages[i]->source == q) remove_stage(p, q->session->stages[i]);
}

const void *dqi_self(void) {
    static _Thread_local char self;
    return &self;
}

static bool is_mine(const dqi_poller *p) {
    return !p->own_thread || pthread_equal(p->thread, pthread_self());
}

void dqi_poller_hold(dqi_poller *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    if (p->running && !is_mine(p)) {
        atomic_fetch_add(&p->hold, 1);
        dqi_wake_up(&p->wake);
        while (p->running && !p->held)
            pthread_cond_wait(&p->changed, &p->lock);
    }
}

void dqi_poller_release(dqi_poller *p) {
    if (!p) return;
    if (p->running && !is_mine(p)) {
        atomic_fetch_sub(&p->hold, 1);
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

void dqi_poller_begin(dqi_poller *p) {
    if (!p->own_thread) atomic_fetch_add(&p->rounds, 1);
}

void dqi_poller_end(dqi_poller *p) {
    if (!p->own_thread) atomic_fetch_add(&p->rounds, 1);
}

void dqi_poller_pass(dqi_poller *p) {
    if (p->own_thread) {
        dqi_poller_hold(p);
        dqi_poller_release(p);
        return;
    }
    uint32_t round = atomic_load(&p->rounds);
    while (round % 2 == 1 && atomic_load(&p->rounds) == round)
        sched_yield();
}

// Worker's side of dqi_poller_hold: pauses while a control thread requests it.
static void stand_still(dqi_poller *p) {
    pthread_mutex_lock(&p->lock);
    p->held = true;
    pthread_cond_broadcast(&p->changed);
    while (atomic_load(&p->hold) != 0)
        pthread_cond_wait(&p->changed, &p->lock);
    p->held = false;
    pthread_mutex_unlock(&p->lock);
}

// Whether the poller serves s: not before the start, nor on the virtual clock, where dq_step polls.
static bool is_served(const dq_session *s) { return s->state >= DQI_STARTED && !dqi_virtual(s); }

int dqi_poller_once(dqi_poller *p) {
    int work = 0;
    dqi_poller_begin(p);
    for (uint32_t i = 0; i < p->n; i++)
        if (is_served(p->queues[i]->session)) work += dqi_queue_poll(p->queues[i]);
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (is_served(p->stages[i]->session)) work += dqi_stage_poll(p->stages[i]);
    dqi_poller_end(p);
    return work;
}

// Next due times of a poller's queues and stages, in ns from now; INT64_MAX: never.
typedef struct dues {
    int64_t work;  // 0: now
    int64_t awake; // when to be awake for it
    int64_t rest;  // due time of resting queues, where a few us of delay do not matter
} dues;

static int64_t left_until(const dq_session *s, int64_t ns) {
    int64_t left = ns - dq_now(s);
    return left < 0 ? 0 : left;
}

static void note_due(dues *d, int64_t left, int64_t lead_ns) {
    if (left < d->work) d->work = left;
    if (left - lead_ns < d->awake) d->awake = left - lead_ns;
}

static dues next_due(const dqi_poller *p) {
    dues d = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const dq_stage *st = p->stages[i];
        if (st->next_ns != INT64_MAX && is_served(st->session))
            note_due(&d, left_until(st->session, st->next_ns), LEAD_NS);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const dq_queue *q = p->queues[i];
        if (q->next_ns == INT64_MAX || !is_served(q->session)) continue;
        int64_t left = left_until(q->session, q->next_ns);
        if (q->rx.rest_until) {
            if (left < d.rest) d.rest = left;
            continue;
        }
        note_due(&d, left, q->conf.dir == DQ_TX ? p->lead_ns : LEAD_NS);
    }
    return d;
}

static nfds_t arm(dqi_poller *p, struct pollfd *fds, nfds_t max) {
    nfds_t n = 1; // fds[0] is the wake-up descriptor
    for (uint32_t i = 0; i < p->n; i++) {
        dq_queue *q = p->queues[i];
        bool armed = q->iface->ops->arm && !q->rx.blocked && is_served(q->session);
        q->n_armed = armed ? (uint32_t)q->iface->ops->arm(q, fds + n, (int)(max - n)) : 0;
        n += q->n_armed;
    }
    return n;
}

static void call_woken(const dqi_poller *p, const struct pollfd *fds) {
    const struct pollfd *at = fds + 1;
    for (uint32_t i = 0; i < p->n; i++) {
        dq_queue *q = p->queues[i];
        if (q->n_armed > 0 && q->iface->ops->woken) q->iface->ops->woken(q, at, (int)q->n_armed);
        at += q->n_armed;
    }
}

static int64_t longest_spin(const dqi_poller *p) {
    int64_t ns = WAKES * p->wake_ns;
    return ns < SPIN_MAX ? SPIN_MAX : ns > SPIN_LAST ? SPIN_LAST : ns;
}

static void learn(dqi_poller *p, int64_t slept_ns) {
    int64_t most = longest_spin(p);
    if (slept_ns >= most)
        p->spin_ns = 0;
    else
        p->spin_ns = p->spin_ns == 0 ? SPIN_MIN : p->spin_ns < most / 2 ? 2 * p->spin_ns : most;
}

// Returns the wake-up latency of this core without contention.
static int64_t wake_takes(void) {
    int64_t least = INT64_MAX;
    for (int k = 0; k < TRIALS; k++) {
        int64_t began = dqi_mono_ns();
        nanosleep(&(struct timespec){.tv_nsec = TRIAL_NS}, NULL);
        int64_t over = dqi_mono_ns() - began - TRIAL_NS;
        if (over < least) least = over;
    }
    return least;
}

bool dqi_poller_tries(const dqi_poller *p, int64_t idle_ns) {
    if (idle_ns >= p->spin_ns || dqi_poller_rests(p)) return false;
    if (idle_ns < SPIN_MAX)
        dqi_pause();
    else
        sched_yield();
    return true;
}

// Adapts the lead to an overshoot of over_ns: a larger one raises it by 99 steps, any other lowers it by one,
// so that it converges to the 99th percentile. Overshoots above LEAD_MAX are ignored: another thread had the
// core.
static void learn_lead(dqi_poller *p, int64_t over_ns) {
    p->lead_ns += over_ns > p->lead_ns && over_ns <= LEAD_MAX ? 99 * LEAD_STEP : -LEAD_STEP;
    p->lead_ns = p->lead_ns < LEAD_MIN ? LEAD_MIN : p->lead_ns > LEAD_MAX ? LEAD_MAX : p->lead_ns;
}

void dqi_poller_sleep(dqi_poller *p, int64_t until_ns) {
    int64_t left = until_ns == INT64_MAX ? INT64_MAX : until_ns - dqi_mono_ns() - LEAD_NS;
    dues d = next_due(p);
    if (d.work == 0) sched_yield(); // may wait for another thread, freeing buffers, that needs this core
    if (d.awake < NAP_MIN || left < NAP_MIN || d.rest < REST_MIN) return;
    struct pollfd fds[MAX_ARMED];
    dqi_wake_announce(&p->wake);
    if (dqi_poller_once(p) > 0 || next_due(p).awake < NAP_MIN || atomic_load(&p->hold) != 0 ||
        atomic_load(&p->quit) != 0) {
        dqi_wake_stay(&p->wake);
        return;
    }
    nfds_t n = arm(p, fds, MAX_ARMED);
    d = next_due(p);
    if (d.awake < left) left = d.awake < 0 ? 0 : d.awake;
    if (d.rest < left) left = d.rest;
    int64_t began = dqi_mono_ns();
    bool slept_out = dqi_wake_sleep(&p->wake, fds, n, left);
    int64_t slept = dqi_mono_ns() - began;
    if (!slept_out) call_woken(p, fds);
    if (slept_out && left == d.awake) learn_lead(p, slept - left);
    if (d.rest == INT64_MAX) learn(p, slept);
}

bool dqi_poller_rests(const dqi_poller *p) {
    bool rests = false;
    for (uint32_t i = 0; i < p->n && !rests; i++)
        rests = p->queues[i]->rx.rest_until != 0;
    return rests;
}

void dqi_queue_kick(dq_queue *q) {
    dqi_poller *p = q->poller;
    if (p && !dqi_virtual(q->session)) dqi_wake_up(&p->wake);
}

void dqi_thread_set_timer_slack(void) { prctl(PR_SET_TIMERSLACK, 1ul); }

static void *worker(void *arg) {
    dqi_poller *p = arg;
    dqi_thread_name("poll", p->n > 0 ? p->queues[0]->conf.name : "");
    dqi_thread_set_timer_slack();
    p->wake_ns = wake_takes();
    int64_t idle_since = 0;
    while (!atomic_load_explicit(&p->quit, memory_order_acquire)) {
        if (atomic_load_explicit(&p->hold, memory_order_acquire) != 0) stand_still(p);
        if (dqi_poller_once(p) > 0) {
            idle_since = 0;
            continue;
        }
        int64_t now = dqi_mono_ns();
        if (idle_since == 0) idle_since = now;
        if (!dqi_poller_tries(p, now - idle_since)) dqi_poller_sleep(p, INT64_MAX);
    }
    return NULL;
}

int dqi_worker_start(dqi_poller *p, dq_diag *diag) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (p->core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)p->core, &set);
        pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    p->own_thread = p->running = true;
    atomic_store(&p->quit, 0); // of an earlier thread
    int err = dqi_thread_start(&p->thread, &attr, worker, p);
    pthread_attr_destroy(&attr);
    if (err != DQ_OK) {
        p->running = false;
        return dqi_fail(diag, err,
                        "worker on core %d: %s; hint: --cores auto chooses cores that this host has", p->core,
                        dq_err_name(err));
    }
    return DQ_OK;
}

void dqi_worker_stop(dqi_poller *p) {
    if (!p->running) return;
    atomic_store(&p->quit, 1);
    dqi_wake_up(&p->wake);
    pthread_join(p->thread, NULL);
    p->running = false;
}
