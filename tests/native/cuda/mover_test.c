// mover_test.c: GPUs' memory and lists of moves, on the library that stands in for the driver, linked in.
//
// What lies in a GPU's memory is checked where that library has it, never at its address. The cases in
// which the GPU is lost run in children of their own: it stays lost.
#include "../../gpu/fake/fake_cuda.c"
#include "../../gpu/fake/fake_error.c"
#include "../../gpu/fake/fake_handles.c"
#include "../../gpu/fake/fake_list.c"
#include "../../gpu/fake/fake_time.c"
#include "../../gpu/fake/fake_user.c"

#include "dqtest.h"

#include "core/burst.h"
#include "core/clock.h"
#include "cuda/memory.h"
#include "cuda/mover.h"

#include <dlfcn.h>
#include <sys/wait.h>

#define BUFS   64
#define SIZE   4096
#define PLACES 1024 // in the GPU's memory: lists that are under way at a time write to different ones
#define WAIT   INT64_C(20000000000) // longer is a hang

typedef struct bench {
    dq_session *s;
    dq_region *host, *gpu;
    dqi_burst_pool *bursts;
    dqi_mover *m;
    dqi_histogram ran;
} bench;

static void must(int err, const dq_diag *d, const char *what) {
    if (err == DQ_OK) return;
    fprintf(stderr, "%s: %s: %s: %s\n", dq_case, what, dq_err_name(err), d->text);
    exit(1);
}

static dq_region *region(dq_session *s, dq_kind kind, const char *name, uint32_t bufs, uint32_t size) {
    dq_diag d = {{0}};
    dq_region_conf c = {.kind = (int32_t)kind, .affinity = -1, .num_bufs = bufs, .buf_size = size};
    dq_region *r;
    snprintf(c.name, sizeof c.name, "%s", name);
    must(dq_region_add(s, &c, &r, &d), &d, name);
    return r;
}

static dq_session *session(void) {
    dq_diag d = {{0}};
    dq_session *s;
    dq_session_conf c = {.rx_meta_buffers = 8, .tx_meta_buffers = 8};
    must(dq_session_new(&c, &s, &d), &d, "session");
    return s;
}

static void open_bench(bench *b, int64_t delay_ns, uint32_t bytes) {
    dq_diag d = {{0}};
    *b = (bench){.s = session()};
    b->host = region(b->s, DQ_KIND_HOST_PINNED, "host", BUFS, SIZE);
    b->gpu = region(b->s, DQ_KIND_DEVICE, "gpu", PLACES, SIZE);
    must(dq_session_open(b->s, &d), &d, "open");
    b->bursts = dqi_burst_pool_new(b->s, BUFS, 1, 1);
    const dqi_mover_conf c = {.gpu = b->gpu->gpu, .bytes = bytes, .delay_ns = delay_ns, .ran = &b->ran};
    must(dqi_mover_new(&c, "mover", &b->m, &d), &d, "mover");
}

static void close_bench(bench *b) {
    dqi_mover_free(b->m);
    dqi_burst_pool_free(b->bursts);
    DQ_EQ(dq_session_close(b->s), 0);
}

// Nothing that the session had is left with the driver but what movers of the process share: nothing.
static uint32_t ranges_left(void) {
    uint32_t n = 0;
    for (int i = 0; i < MAX_RANGES; i++)
        n += ranges[i].bytes > 0;
    return n;
}

static dq_burst *packet(bench *b, uint8_t with) {
    dq_burst *x = dqi_burst_get(b->bursts);
    if (!x || dqi_burst_fill(x, &b->host, 1, 1) != DQ_OK) {
        if (x) dq_burst_unref(x);
        return NULL;
    }
    x->n = x->n_bufs = 1;
    x->len[0][0] = SIZE;
    memset(dqi_bytes(x, 0, 0), with, SIZE);
    return x;
}

static uint64_t device_at(const bench *b, uint32_t buf) {
    return (uintptr_t)b->gpu->device + (uint64_t)buf * b->gpu->stride;
}

static bool poll_until_idle(bench *b) {
    for (int64_t from = dqi_mono_ns(); dqi_mover_next(b->m) != INT64_MAX; rest(20)) {
        dqi_mover_poll(b->m, dqi_mono_ns());
        if (dqi_mono_ns() - from > WAIT) return false;
    }
    return true;
}

// ---- cases ------------------------------------------------------------------------------------------------

// Payloads and fills get where they belong; bursts and latches are released once.
static void moves(void) {
    bench b;
    open_bench(&b, 0, 1 << 20);
    _Atomic uint32_t latch = 0;
    for (uint32_t k = 0; k < BUFS; k++) {
        dq_burst *x = packet(&b, (uint8_t)k);
        DQ_CHECK(x != NULL);
        DQ_CHECK(dqi_mover_room(b.m, 2));
        dqk_move m[] = {{(uintptr_t)dqi_bytes(x, 0, 0) + 1, device_at(&b, k) + 3, 1000, DQK_COPY},
                        {0x5a, device_at(&b, k) + 1003, SIZE - 1003, DQK_FILL}};
        dqi_mover_add(b.m, m, 2, true, x, &latch);
        dq_burst_unref(x);
    }
    DQ_EQ(latch, 1); // one list
    DQ_EQ(dqi_region_level(b.host), 0);
    dqi_mover_push(b.m, false);
    DQ_CHECK(dqi_mover_next(b.m) != INT64_MAX);
    dqi_mover_push(b.m, true);
    DQ_CHECK(poll_until_idle(&b));
    DQ_EQ(latch, 0);
    DQ_EQ(dqi_region_level(b.host), BUFS);
    for (uint32_t k = 0; k < BUFS; k++) {
        const uint8_t *p = fake_reach(device_at(&b, k), SIZE);
        bool ok = p && p[2] == 0xa5 && p[SIZE - 1] == 0x5a;
        for (uint32_t i = 3; ok && i < 1003; i++)
            ok = p[i] == (uint8_t)k;
        DQ_CHECK(ok);
    }
    dqi_mover_counts c;
    dqi_mover_read(b.m, &c);
    DQ_EQ(c.launches, 1);
    DQ_EQ(c.moves, 2 * BUFS);
    DQ_EQ(c.bytes, BUFS * (1000 + SIZE - 1003));
    close_bench(&b);
    DQ_EQ(ranges_left(), 0);
    DQ_EQ(used, 0);
}

// A list goes out when it has its bytes, when it is full and when it is old; without any it never does.
static void when_lists_go_out(void) {
    bench b;
    dqi_mover_counts c;
    open_bench(&b, 1000000, 2000);
    uint32_t place = 0; // each move has its own
#define NEXT_MOVE (dqk_move){7, device_at(&b, place++), 1000, DQK_FILL}
    dqk_move m = NEXT_MOVE;
    dqi_mover_push(b.m, true);
    DQ_EQ(dqi_mover_next(b.m), INT64_MAX);
    DQ_CHECK(dqi_mover_room(b.m, 1));
    dqi_mover_add(b.m, &m, 1, true, NULL, NULL);
    dqi_mover_push(b.m, false);
    dqi_mover_read(b.m, &c);
    DQ_EQ(c.launches, 0); // 1000 bytes of 2000
    DQ_CHECK(dqi_mover_next(b.m) <= 1000000);
    dqi_mover_poll(b.m, dqi_mono_ns() - 1000000);
    dqi_mover_read(b.m, &c);
    DQ_EQ(c.launches, 0);
    dqi_mover_poll(b.m, dqi_mono_ns() + 1000000); // it is old then
    dqi_mover_read(b.m, &c);
    DQ_EQ(c.launches, 1);
    DQ_CHECK(poll_until_idle(&b));
    DQ_CHECK(dqi_mover_room(b.m, 2));
    dqk_move two[] = {m, m};
    two[0].dst = device_at(&b, place++);
    two[1].dst = device_at(&b, place++);
    dqi_mover_add(b.m, two, 2, true, NULL, NULL);
    dqi_mover_push(b.m, false);
    dqi_mover_read(b.m, &c);
    DQ_EQ(c.launches, 2); // it has its bytes
    DQ_CHECK(dqi_mover_room(b.m, DQI_LIST_MOVES));
    m = NEXT_MOVE;
    dqi_mover_add(b.m, &m, 1, true, NULL, NULL);
    DQ_CHECK(dqi_mover_room(b.m, DQI_LIST_MOVES)); // in the next list
    dqi_mover_read(b.m, &c);
    DQ_EQ(c.launches, 3);
    DQ_CHECK(poll_until_idle(&b));
    close_bench(&b);
}

// Each list's time is noted once, and is within that of the test's own clock.
static void run_times(void) {
    enum { LISTS_SENT = 5 };
    bench b;
    open_bench(&b, 0, 1 << 20);
    uint64_t most = 0;
    for (uint32_t k = 0; k < LISTS_SENT; k++) {
        int64_t from = dqi_mono_ns();
        dqk_move m = {k, device_at(&b, k), 100, DQK_FILL};
        DQ_CHECK(dqi_mover_room(b.m, 1));
        dqi_mover_add(b.m, &m, 1, true, NULL, NULL);
        dqi_mover_push(b.m, true);
        DQ_CHECK(poll_until_idle(&b));
        most += (uint64_t)(dqi_mono_ns() - from);
    }
    dq_histogram h = {.queue_id = 0};
    dqi_histogram_read(&b.ran, &h);
    uint64_t n = 0;
    for (uint32_t k = 0; k < DQ_HISTOGRAM_BUCKETS; k++)
        n += h.n[k];
    DQ_EQ(n, LISTS_SENT);
    DQ_CHECK(h.sum > 0 && h.sum <= most);
    close_bench(&b);
}

// Tickets of what has been under way for longer are checked less often, but no later than a sixteenth of
// that.
static void looks(void) {
    bench b;
    DQ_EQ(dqi_look_ns(0), 3000);
    DQ_EQ(dqi_look_ns(160000), 10000);
    DQ_EQ(dqi_look_ns(INT64_C(10000000000)), 1000000);
    conf.delay_us = 20000;
    open_bench(&b, 0, 1);
    bool grew = false;
    for (uint32_t k = 0; k < 50 && !grew; k++) { // by chance: one that takes a millisecond
        dqk_move m = {k, device_at(&b, k), 100, DQK_FILL};
        DQ_CHECK(dqi_mover_room(b.m, 1));
        int64_t from = dqi_mono_ns();
        dqi_mover_add(b.m, &m, 1, true, NULL, NULL);
        dqi_mover_push(b.m, true);
        for (int64_t next; (next = dqi_mover_next(b.m)) != INT64_MAX; dqi_mover_poll(b.m, dqi_mono_ns())) {
            DQ_CHECK(next <= dqi_look_ns(dqi_mono_ns() - from));
            grew |= next > 3000;
        }
    }
    DQ_CHECK(grew);
    close_bench(&b);
    conf.delay_us = 0;
}

// All lists under way: there is no room until one has ended.
static void no_list_is_free(void) {
    bench b;
    conf.delay_us = 20000;
    open_bench(&b, 0, 1);
    uint32_t n = 0;
    for (; n < 100 && dqi_mover_room(b.m, 1); n++) {
        dqk_move m = {n, device_at(&b, n % PLACES), 100, DQK_FILL};
        dqi_mover_add(b.m, &m, 1, true, NULL, NULL);
        dqi_mover_push(b.m, false);
    }
    DQ_CHECK(n >= 8 && n < 100);
    DQ_CHECK(!dqi_mover_lost(b.m));
    DQ_CHECK(poll_until_idle(&b));
    DQ_CHECK(dqi_mover_room(b.m, 1));
    close_bench(&b);
    conf.delay_us = 0;
}

// One thread appends, another polls: every burst comes back once, every latch ends at 0.
typedef struct feed {
    bench *b;
    _Atomic uint32_t latches[8];
    _Atomic bool end;
} feed;

static void *poll_it(void *arg) {
    feed *f = arg;
    while (!atomic_load(&f->end) || dqi_mover_next(f->b->m) != INT64_MAX)
        if (dqi_mover_poll(f->b->m, dqi_mono_ns()) == 0) rest(10);
    return NULL;
}

static void two_threads(void) {
    bench b;
    pthread_t t;
    conf.delay_us = 100;
    open_bench(&b, 20000, 8 * SIZE);
    feed f = {.b = &b};
    pthread_create(&t, NULL, poll_it, &f);
    int64_t until = dqi_mono_ns() + WAIT;
    for (uint32_t k = 0; k < 3000 && dqi_mono_ns() < until;) {
        dq_burst *x = dqi_mover_room(b.m, 1) ? packet(&b, (uint8_t)k) : NULL;
        if (!x) {
            rest(10);
            continue;
        }
        dqk_move m = {(uintptr_t)dqi_bytes(x, 0, 0), device_at(&b, k % PLACES), SIZE, DQK_COPY};
        dqi_mover_add(b.m, &m, 1, true, x, &f.latches[k % 8]);
        dqi_mover_push(b.m, false);
        dq_burst_unref(x);
        k++;
    }
    atomic_store(&f.end, true);
    pthread_join(t, NULL);
    for (int i = 0; i < 8; i++)
        DQ_EQ(f.latches[i], 0);
    DQ_EQ(dqi_region_level(b.host), BUFS);
    DQ_CHECK(dqi_mono_ns() < until);
    close_bench(&b);
    conf.delay_us = 0;
}

// What can't be had is an error, and nothing is left behind.
static void refusals(void) {
    dq_diag d = {{0}};
    dq_session *s = session();
    dq_region *fits = region(s, DQ_KIND_DEVICE, "fits", 1, 64);
    DQ_CHECK(!fits->cpu);
    region(s, DQ_KIND_DEVICE, "large", 1 << 16, 1 << 16);
    DQ_EQ(dq_session_open(s, &d), DQ_NO_SPACE_AVAILABLE);
    DQ_EQ_STR(d.text,
              "memory region large: it takes 4096 MiB, and GPU 0 (Fake GPU) has 4094 MiB of 4096 free; hint: "
              "lower num_bufs or buf_size");
    DQ_EQ(dq_session_close(s), 0);
    s = session();
    region(s, DQ_KIND_DEVICE, "other", 4, 64)->conf.gpu = 7;
    DQ_EQ(dq_session_open(s, &d), DQ_NOT_SUPPORTED);
    DQ_EQ_STR(d.text, "memory region other: there is no GPU 7: this host has 1, numbered from 0");
    DQ_EQ(dq_session_close(s), 0);
    DQ_EQ(ranges_left(), 0);
    DQ_EQ(used, 0);
}

// A region's memory as another process would map it.
static void exported(void) {
    bench b;
    dq_diag d = {{0}};
    int fd = -1;
    open_bench(&b, 0, 1);
    dqk_move m = {0x77, device_at(&b, 1), SIZE, DQK_FILL};
    DQ_CHECK(dqi_mover_room(b.m, 1));
    dqi_mover_add(b.m, &m, 1, true, NULL, NULL);
    dqi_mover_push(b.m, true);
    DQ_CHECK(poll_until_idle(&b));
    must(dqi_gpu_memory_export(dqi_cuda_memory_of(b.gpu), &fd, "region", &d), &d, "export");
    uint8_t *p = mmap(NULL, 2 * b.gpu->stride, PROT_READ, MAP_SHARED, fd, 0);
    DQ_CHECK(p != MAP_FAILED && p[b.gpu->stride] == 0x77 && p[b.gpu->stride - 1] == 0xa5);
    munmap(p, 2 * b.gpu->stride);
    // And as another process's GPU does.
    dqi_gpu_memory there = {0};
    must(dqi_gpu_memory_import(b.gpu->gpu, fd, dqi_cuda_memory_of(b.gpu)->bytes, &there, "region", &d), &d,
         "import");
    close(fd);
    DQ_CHECK(there.at != (uintptr_t)b.gpu->device);
    const uint8_t *q = fake_reach(there.at, there.bytes);
    DQ_CHECK(q && q[b.gpu->stride] == 0x77 && q[b.gpu->stride - 1] == 0xa5);
    dqi_gpu_memory_free(&there);
    DQ_EQ(dqi_gpu_memory_export(dqi_cuda_memory_of(b.host), &fd, "region", &d), DQ_NOT_SUPPORTED);
    DQ_EQ_STR(d.text, "region: it has no memory of a GPU that can be exported");
    close_bench(&b);
}

// ---- a GPU that is lost -----------------------------------------------------------------------------------

// Everything is releases, room is refused, and CUDA's words are kept.
static void lose(const char *words) {
    bench b;
    open_bench(&b, 0, 1);
    _Atomic uint32_t latch = 0;
    char buf[256];
    for (uint32_t k = 0; k < 4 && dqi_mover_room(b.m, 1); k++) {
        dq_burst *x = packet(&b, 1);
        dqk_move m = {(uintptr_t)dqi_bytes(x, 0, 0), device_at(&b, k), SIZE, DQK_COPY};
        if (words[0] == 'i') m.dst = 4096; // of no buffer
        dqi_mover_add(b.m, &m, 1, true, x, &latch);
        dqi_mover_push(b.m, true);
        dq_burst_unref(x);
    }
    DQ_CHECK(poll_until_idle(&b));
    DQ_CHECK(dqi_mover_lost(b.m));
    DQ_CHECK(!dqi_mover_room(b.m, 1));
    DQ_EQ(latch, 0);
    DQ_EQ(dqi_region_level(b.host), BUFS);
    DQ_CHECK(dqi_gpu_lost(b.gpu->gpu, buf, sizeof buf));
    DQ_CHECK(strstr(buf, "GPU 0 (Fake GPU): CUDA_ERROR_") && strstr(buf, words));
    close_bench(&b);
    dq_diag d = {{0}};
    DQ_CHECK(!dqi_gpu_open(0, "another", &d));
    DQ_CHECK(strstr(d.text, "another: GPU 0 (Fake GPU): ") && strstr(d.text, "lost earlier in this process"));
}

static void in_child(const char *words) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        lose(words);
        exit(atomic_load(&dq_failures) > 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    DQ_EQ(status, 0);
}

static void kernel_traps(void) {
    conf.trap = 2;
    in_child("unspecified launch failure");
    conf.trap = 0;
}

static void launch_fails(void) {
    conf.fail = 3;
    in_child("unspecified launch failure");
    conf.fail = 0;
}

static void writes_outside(void) { in_child("illegal memory access"); }

int main(int argc, char **argv) {
    if (!dlsym(RTLD_DEFAULT, "cuInit")) DQ_SKIP("a static program: the driver's calls are looked up by name");
    dq_begin(argc, argv);
    DQ_RUN(kernel_traps);
    DQ_RUN(launch_fails);
    DQ_RUN(writes_outside);
    DQ_RUN(moves);
    DQ_RUN(when_lists_go_out);
    DQ_RUN(run_times);
    DQ_RUN(looks);
    DQ_RUN(no_list_is_free);
    DQ_RUN(two_threads);
    DQ_RUN(refusals);
    DQ_RUN(exported);
    return dq_done();
}
