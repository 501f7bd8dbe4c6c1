// clock.c: the session's clock. With the real clock it is the monotonic clock, offset once at the start to
// the Unix epoch, so that pacing and timeouts ignore steps of the wall clock; with the virtual clock it
// advances by dq_advance only. Kernel timestamps follow the wall clock: its steps are removed from them.

#include "core/clock.h"
#include "core/core.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

static int64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t dqi_mono_ns(void) { return read_clock(CLOCK_MONOTONIC); }

void dqi_yield(void) { sched_yield(); }

#define CLOSE_NS 10000 // two readings of the clock this close were not interrupted

typedef struct reading {
    int64_t mono_ns, wall_ns;
} reading;

// Reads both clocks at one instant: the quickest of several readings, as the thread may be preempted.
static reading read_both(void) {
    reading best = {0, 0};
    int64_t quickest = INT64_MAX;
    for (int k = 0; k < 8 && quickest >= CLOSE_NS; k++) {
        int64_t before = dqi_mono_ns(), wall = read_clock(CLOCK_REALTIME), took = dqi_mono_ns() - before;
        if (took >= quickest) continue;
        quickest = took;
        best = (reading){before + took / 2, wall};
    }
    return best;
}

void dqi_clock_start(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    reading now = read_both();
    core->mono0_ns = core->conf.mono_ns ? core->conf.mono_ns : now.mono_ns;
    core->start_ns = dqi_virtual(s) || core->conf.start_ns ? core->conf.start_ns : now.wall_ns;
    atomic_store(&core->virtual_ns, core->start_ns);
}

int64_t dq_now(const dq_session *s) {
    const dqi_core *core = dqi_core_of(s);
    if (dqi_virtual(s)) return atomic_load_explicit(&core->virtual_ns, memory_order_relaxed);
    return core->start_ns + dqi_mono_ns() - core->mono0_ns;
}

int64_t dq_start_ns(const dq_session *s) { return dqi_core_of(s)->start_ns; }

void dq_advance(dq_session *s, int64_t t_ns) {
    if (dqi_virtual(s) && t_ns > dq_now(s)) atomic_store(&dqi_core_of(s)->virtual_ns, t_ns);
}

// ---- stamps of the wall clock -----------------------------------------------------------------------------

#define STEP_NS INT64_C(1000000) // smaller differences are noise between clocks and cores, not a step

void dqi_stamps_set(dqi_stamps *t, int64_t wall_ns, int64_t now_ns) {
    int64_t ahead = wall_ns - now_ns;
    t->now = now_ns;
    if (llabs(ahead - t->ahead) < STEP_NS) return;
    t->was = t->ahead;
    t->ahead = ahead;
}

void dqi_stamps_look(dqi_stamps *t, const dq_session *s) {
    const dqi_core *core = dqi_core_of(s);
    int64_t wall = read_clock(CLOCK_REALTIME), now = dq_now(s);
    if (llabs(wall - now - t->ahead) >= STEP_NS) { // a step, or the thread was preempted
        reading both = read_both();
        wall = both.wall_ns;
        now = core->start_ns + both.mono_ns - core->mono0_ns;
    }
    dqi_stamps_set(t, wall, now);
}

int64_t dqi_stamps_time(dqi_stamps *t, int64_t stamp_ns) {
    int64_t at = stamp_ns - t->ahead, before = stamp_ns - t->was;
    bool fits = at > t->last - STEP_NS && at < t->now + STEP_NS;
    if (!fits && before >= t->last && before <= t->now) at = before;
    if (at > t->now) at = t->now;
    if (at < t->last) at = t->last;
    t->last = at;
    return at;
}
