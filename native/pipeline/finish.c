// finish.c: bounded termination of a session's stages.
#include "core/clock.h"
#include "core/thread.h"
#include "pipeline/dq_session.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define PAUSE_MIN 20000 // ns between two checks for progress
#define PAUSE_MAX 2000000

static void *finish_stage(void *arg) {
    dq_stage *st = arg;
    st->ops->finish(st);
    atomic_store(&st->finished, true); // the stage is not accessed after this
    return NULL;
}

static void begin(dq_stage *st) {
    pthread_t thread;
    if (st->ops->finish && st->ops->blocks && dqi_thread_start(&thread, NULL, finish_stage, st) == DQ_OK)
        pthread_detach(thread);
    else if (st->ops->finish)
        finish_stage(st);
    else
        atomic_store(&st->finished, true);
}

// Returns the number of unfinished stages; *held: their packets.
static uint32_t going_on(const dq_session *s, uint64_t *held) {
    uint32_t n = 0;
    *held = 0;
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++) {
        const dq_stage *st = s->stages[i];
        if (atomic_load(&st->finished)) continue;
        if (st->ops->held) *held += st->ops->held(st);
        n++;
    }
    return n;
}

static void wait_for_stages(const dq_session *s) {
    uint64_t held, before = UINT64_MAX;
    int64_t since = 0;
    for (int64_t pause = PAUSE_MIN; going_on(s, &held) > 0;) {
        int64_t now = dqi_mono_ns();
        if (held != before) since = now;
        before = held;
        if (now - since >= s->end_ns) return;
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        if (pause < PAUSE_MAX) pause *= 2;
    }
}

void dqi_stages_finish(dq_session *s) {
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++)
        begin(s->stages[i]);
    wait_for_stages(s);
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++)
        if (!atomic_load(&s->stages[i]->finished)) s->stages[i]->abandoned = true;
}

bool dqi_session_abandoned(const dq_session *s) {
    bool is = s->memory_leaked;
    for (uint32_t i = 0; i < atomic_load(&s->n_stages) && !is; i++)
        is = s->stages[i]->abandoned;
    return is;
}

void dqi_queue_fail(dq_queue *q, const char *fmt, ...) {
    dq_session *s = q->session;
    if (atomic_exchange(&s->failing, true)) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(s->failure, sizeof s->failure, fmt, args);
    va_end(args);
    atomic_store_explicit(&s->failed, q, memory_order_release);
}

const char *dq_session_failure(const dq_session *s, char *buf, size_t len) {
    const dq_queue *q = atomic_load_explicit(&s->failed, memory_order_acquire);
    snprintf(buf, len, "%s", q ? s->failure : "");
    return q ? q->conf.name : NULL;
}

void dq_session_leak_memory(dq_session *s) { s->memory_leaked = true; }

bool dq_stage_abandoned(const dq_stage *st) { return st->abandoned; }
