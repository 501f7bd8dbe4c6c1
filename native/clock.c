// clock.c: the session's clock. On the real clock it is the monotonic clock moved to the epoch once, at the
// start, so that pacing and timeouts don't jump with the wall clock; on the virtual clock it stands until
// dq_advance.
#include "dqi.h"

#include <sched.h>
#include <time.h>

static int64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t dqi_mono_ns(void) { return read_clock(CLOCK_MONOTONIC); }

void dqi_yield(void) { sched_yield(); }

void dqi_clock_start(dq_session *s) {
    s->mono0_ns = dqi_mono_ns();
    s->start_ns = dqi_virtual(s) ? s->conf.start_ns : read_clock(CLOCK_REALTIME);
    atomic_store(&s->virtual_ns, s->start_ns);
}

int64_t dq_now(const dq_session *s) {
    if (dqi_virtual(s)) return atomic_load_explicit(&s->virtual_ns, memory_order_relaxed);
    return s->start_ns + dqi_mono_ns() - s->mono0_ns;
}

int64_t dq_start_ns(const dq_session *s) { return s->start_ns; }

void dq_advance(dq_session *s, int64_t t_ns) {
    if (dqi_virtual(s) && t_ns > dq_now(s)) atomic_store(&s->virtual_ns, t_ns);
}
