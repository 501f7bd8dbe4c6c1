// gpu.c: the shipped kernels alone, launched as the engine launches them, and the driver's copies.
#include "gpu.h"
#include "clock.h"
#include "core/err.h"
#include "core/region.h"
#include "cuda/gpu.h"
#include "kernels/kernels.h"
#include "reorder/convert.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ROUNDS = 64,
    WITHIN = 64, // packets are shuffled within so many
    LINE = 128,
    POISON = 0xa5,
    MOST_SETS = 128
};
#define HOST_BYTES ((uint64_t)256 << 20)
#define CHUNK      ((uint64_t)256 << 20) // of a copy
#define ROTATION   400e6                 // bytes that sets have together: more than caches hold

typedef struct cu_event_s *cu_event;
typedef struct cu_graph_s *cu_graph;
typedef struct cu_graph_exec_s *cu_graph_exec;

// Calls of the driver that only measuring needs.
#define CALLS(X)                                                                                             \
    X(copy, "cuMemcpyDtoDAsync_v2", (cu_ptr to, cu_ptr from, size_t n, cu_stream stream))                    \
    X(event_create, "cuEventCreate", (cu_event * out, unsigned flags))                                       \
    X(event_destroy, "cuEventDestroy_v2", (cu_event e))                                                      \
    X(event_record, "cuEventRecord", (cu_event e, cu_stream stream))                                         \
    X(event_wait, "cuEventSynchronize", (cu_event e))                                                        \
    X(event_between, "cuEventElapsedTime", (float *ms, cu_event from, cu_event to))                          \
    X(capture, "cuStreamBeginCapture_v2", (cu_stream stream, int mode))                                      \
    X(capture_end, "cuStreamEndCapture", (cu_stream stream, cu_graph * out))                                 \
    X(graph_make, "cuGraphInstantiateWithFlags",                                                             \
      (cu_graph_exec * out, cu_graph graph, unsigned long long flags))                                       \
    X(graph_run, "cuGraphLaunch", (cu_graph_exec graph, cu_stream stream))                                   \
    X(graph_free, "cuGraphDestroy", (cu_graph graph))                                                        \
    X(graph_exec_free, "cuGraphExecDestroy", (cu_graph_exec graph))
enum { CAPTURE_RELAXED = 2 };

// Host memory that GPUs read.
typedef struct pinned {
    uint8_t *at;
    size_t bytes;
} pinned;

struct dq_baseline_gpu {
    dqi_gpu *gpu;
    struct {
#define X(name, symbol, args) cu_result(*name) args;
        CALLS(X)
#undef X
    } cu;
    cu_stream stream;
    cu_event before, after;
    uint64_t side;   // bytes of src, and of dst
    cu_ptr src, dst; // on the GPU; src has what host has, over and over
    pinned host;
    double took[ROUNDS];
};

static int must(cu_result err, const char *call, dq_diag *diag) {
    return dqi_cuda_check(err, "bench", call, diag);
}

// ---- life -------------------------------------------------------------------------------------------------

static int pin(const dq_baseline_gpu *g, size_t bytes, pinned *out, dq_diag *diag) {
    size_t page = dqi_page_size();
    pinned p = {NULL, (bytes + page - 1) / page * page};
    p.at = mmap(NULL, p.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p.at == MAP_FAILED)
        return dqi_fail(diag, DQ_ESYS - errno, "bench: no %zu MiB of memory", p.bytes >> 20);
    cu_result err = g->gpu->cu->host_register(p.at, p.bytes, CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED);
    if (err == CU_SUCCESS)
        *out = p;
    else
        munmap(p.at, p.bytes);
    return must(err, "cuMemHostRegister", diag);
}

static void unpin(const dq_baseline_gpu *g, pinned *p) {
    if (!p->at) return;
    g->gpu->cu->host_unregister(p->at);
    munmap(p->at, p->bytes);
    p->at = NULL;
}

static int resolve(dq_baseline_gpu *g, dq_diag *diag) {
#define X(name, symbol, args)                                                                                \
    *(void **)&g->cu.name = dqi_cuda_symbol(symbol);                                                         \
    if (!g->cu.name) return dqi_fail(diag, DQ_NOT_SUPPORTED, "bench: the GPU's driver has no %s", symbol);
    CALLS(X)
#undef X
    return DQ_OK;
}

static uint32_t random32(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

// Packets have random bytes, the GPU's the same as the host's.
static int fill(dq_baseline_gpu *g, dq_diag *diag) {
    const dqi_cuda_driver *cu = g->gpu->cu;
    uint64_t state = 1;
    for (size_t i = 0; i < g->host.bytes; i += 4) {
        uint32_t v = random32(&state);
        memcpy(g->host.at + i, &v, 4);
    }
    cu_result err = CU_SUCCESS;
    for (uint64_t at = 0, n; at < g->side && err == CU_SUCCESS; at += n) {
        n = g->side - at < g->host.bytes ? g->side - at : g->host.bytes;
        err = cu->copy_to_device(g->src + at, g->host.at, n, g->stream);
    }
    if (err == CU_SUCCESS) err = cu->stream_synchronize(g->stream);
    return must(err, "cuMemcpyHtoDAsync", diag);
}

static int open_on(dq_baseline_gpu *g, uint64_t bytes, dq_diag *diag) {
    const dqi_cuda_driver *cu = g->gpu->cu;
    size_t free_bytes, total;
    int err = must(dqi_gpu_enter(g->gpu), "cuCtxSetCurrent", diag);
    if (err == DQ_OK) err = resolve(g, diag);
    if (err == DQ_OK) err = must(cu->mem_info(&free_bytes, &total), "cuMemGetInfo", diag);
    if (err != DQ_OK) return err;
    g->side = bytes < free_bytes / 3 ? bytes : free_bytes / 3;
    g->side -= g->side % (1 << 20);
    if (g->side == 0)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "bench: GPU %d (%s) has %zu MiB of memory free",
                        g->gpu->info.number, g->gpu->info.name, free_bytes >> 20);
    err = must(cu->stream_create(&g->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", diag);
    if (err == DQ_OK) err = must(g->cu.event_create(&g->before, 0), "cuEventCreate", diag);
    if (err == DQ_OK) err = must(g->cu.event_create(&g->after, 0), "cuEventCreate", diag);
    if (err == DQ_OK) err = must(cu->mem_alloc(&g->src, g->side), "cuMemAlloc", diag);
    if (err == DQ_OK) err = must(cu->mem_alloc(&g->dst, g->side), "cuMemAlloc", diag);
    if (err == DQ_OK) err = pin(g, g->side < HOST_BYTES ? g->side : HOST_BYTES, &g->host, diag);
    return err == DQ_OK ? fill(g, diag) : err;
}

int dq_baseline_gpu_open(uint64_t bytes, dq_baseline_gpu **out, dq_diag *diag) {
    dq_baseline_gpu *g = calloc(1, sizeof *g);
    if (!g) return dqi_fail(diag, DQ_ESYS - ENOMEM, "bench: no memory");
    g->gpu = dqi_gpu_open(0, "bench", diag);
    int err = g->gpu ? open_on(g, bytes, diag) : DQ_NOT_SUPPORTED;
    if (err == DQ_OK)
        *out = g;
    else
        dq_baseline_gpu_close(g);
    return err;
}

void dq_baseline_gpu_close(dq_baseline_gpu *g) {
    if (!g) return;
    if (g->gpu && dqi_gpu_enter(g->gpu) == CU_SUCCESS) {
        const dqi_cuda_driver *cu = g->gpu->cu;
        unpin(g, &g->host);
        if (g->src) cu->mem_free(g->src);
        if (g->dst) cu->mem_free(g->dst);
        if (g->before) g->cu.event_destroy(g->before);
        if (g->after) g->cu.event_destroy(g->after);
        if (g->stream) cu->stream_destroy(g->stream);
    }
    free(g);
}

// ---- time -------------------------------------------------------------------------------------------------

// What is timed: puts it on the stream.
typedef cu_result work(dq_baseline_gpu *g, const void *of);

// Seconds that one takes by the GPU's clock: the median of as many as fit into the time, 3 at least. *rounds:
// how many there were, one more than were timed.
static int measure(dq_baseline_gpu *g, work *put, const void *of, double seconds, double *took,
                   uint32_t *rounds, dq_diag *diag) {
    double end = baseline_seconds(CLOCK_MONOTONIC) + seconds;
    uint32_t n = 0;
    for (*rounds = 0; n < 3 || (n < ROUNDS && baseline_seconds(CLOCK_MONOTONIC) < end); ++*rounds) {
        float ms;
        cu_result err = g->cu.event_record(g->before, g->stream);
        if (err == CU_SUCCESS) err = put(g, of);
        if (err == CU_SUCCESS) err = g->cu.event_record(g->after, g->stream);
        if (err == CU_SUCCESS) err = g->cu.event_wait(g->after);
        if (err == CU_SUCCESS) err = g->cu.event_between(&ms, g->before, g->after);
        if (err != CU_SUCCESS) return must(err, "a round", diag);
        if (*rounds > 0) g->took[n++] = ms / 1e3;
    }
    *took = baseline_median(g->took, n);
    return DQ_OK;
}

typedef struct copy_of {
    bool host;
    uint64_t bytes;
} copy_of;

// Piece by piece, each as the driver does it best.
static cu_result put_copy(dq_baseline_gpu *g, const void *of) {
    const copy_of *c = of;
    cu_result err = CU_SUCCESS;
    for (uint64_t at = 0, n; at < c->bytes && err == CU_SUCCESS; at += n) {
        n = c->bytes - at < CHUNK ? c->bytes - at : CHUNK;
        err = c->host ? g->gpu->cu->copy_to_device(g->dst + at, g->host.at, n, g->stream)
                      : g->cu.copy(g->dst + at, g->src + at, n, g->stream);
    }
    return err;
}

int dq_baseline_gpu_copy(dq_baseline_gpu *g, int32_t host, double seconds, double *bytes_per_s,
                         dq_diag *diag) {
    const copy_of c = {host, host ? g->host.bytes : g->side};
    double took = 0;
    uint32_t rounds;
    int err = must(dqi_gpu_enter(g->gpu), "cuCtxSetCurrent", diag);
    if (err == DQ_OK) err = measure(g, put_copy, &c, seconds, &took, &rounds, diag);
    if (err == DQ_OK) *bytes_per_s = (double)c.bytes / took;
    return err;
}

// ---- lists ------------------------------------------------------------------------------------------------

// Sets of packets, a list each.
typedef struct lists {
    const dq_baseline_gpu_job *job;
    dqi_convert convert;
    uint32_t packets, made, sets;        // made: bytes that a payload becomes
    uint64_t stride, src_step, dst_step; // bytes of a packet, and of a set
    pinned moves;
    cu_ptr device_moves; // 0: kernels read moves where the host wrote them, as the engine's do
    cu_function kernel;
    cu_graph_exec graph;
} lists;

static int lay_out(const dq_baseline_gpu *g, const dq_baseline_gpu_job *job, lists *l, dq_diag *diag) {
    const uint64_t room = job->host ? g->host.bytes : g->side;
    *l = (lists){.job = job};
    int err = dqi_convert_find(&job->types, &l->convert, "bench", diag);
    if (err != DQ_OK) return err;
    if (!dqi_convert_size(&l->convert, job->payload, &l->made) || l->made == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "bench: payloads of %u bytes are not whole elements",
                        job->payload);
    l->stride = ((uint64_t)job->payload_offset + job->payload + LINE - 1) / LINE * LINE;
    uint64_t most = room / l->stride, fits = g->side / l->made;
    if (fits < most) most = fits;
    l->packets = job->packets < most ? job->packets : (uint32_t)most;
    l->src_step = l->stride * l->packets;
    l->dst_step = (uint64_t)l->made * l->packets;
    if (l->packets == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "bench: payloads of %u bytes: there is room for none",
                        job->payload);
    uint64_t sets = (uint64_t)(ROTATION / (double)(l->src_step + l->dst_step)) + 1;
    if (sets > room / l->src_step) sets = room / l->src_step;
    if (sets > g->side / l->dst_step) sets = g->side / l->dst_step;
    l->sets = (uint32_t)(sets < MOST_SETS ? sets : MOST_SETS);
    return DQ_OK;
}

static void make_set(const dq_baseline_gpu *g, const lists *l, uint32_t set, dqk_move *m) {
    uint64_t src = (l->job->host ? (uintptr_t)g->host.at : g->src) + set * l->src_step, state = set;
    for (uint32_t i = 0; i < l->packets; i++)
        m[i] = (dqk_move){src + i * l->stride + l->job->payload_offset, i, l->job->payload,
                          l->convert.conversion ? DQK_CONVERT : DQK_COPY};
    for (uint32_t i = 0; i < l->packets; i++) {
        uint32_t k = i / WITHIN * WITHIN + random32(&state) % WITHIN;
        if (k >= l->packets) continue;
        uint64_t slot = m[i].dst;
        m[i].dst = m[k].dst;
        m[k].dst = slot;
    }
    for (uint32_t i = 0; i < l->packets; i++)
        m[i].dst = g->dst + set * l->dst_step + m[i].dst * l->made;
}

static int make_moves(const dq_baseline_gpu *g, lists *l, dq_diag *diag) {
    const dqi_cuda_driver *cu = g->gpu->cu;
    size_t bytes = (size_t)l->sets * l->packets * sizeof(dqk_move);
    int err = pin(g, bytes, &l->moves, diag);
    if (err != DQ_OK) return err;
    for (uint32_t set = 0; set < l->sets; set++)
        make_set(g, l, set, (dqk_move *)l->moves.at + (size_t)set * l->packets);
    if (l->job->host) return DQ_OK;
    cu_result e = cu->mem_alloc(&l->device_moves, bytes);
    if (e == CU_SUCCESS) e = cu->copy_to_device(l->device_moves, l->moves.at, bytes, g->stream);
    if (e == CU_SUCCESS) e = cu->stream_synchronize(g->stream);
    return must(e, "cuMemAlloc", diag);
}

static cu_result launch(const dq_baseline_gpu *g, const lists *l, uint32_t set) {
    dqk_list arg = {.moves = (l->device_moves ? l->device_moves : (uintptr_t)l->moves.at) +
                             (uint64_t)set * l->packets * sizeof(dqk_move),
                    .n = l->packets,
                    .parts = dqk_list_parts(l->job->payload, l->convert.conversion),
                    .conversion = l->convert.conversion,
                    .far = (uint32_t)l->job->host};
    if (l->convert.packed) arg.packing = dqk_unpack_packing(&l->convert.unpack);
    return g->gpu->cu->launch(l->kernel, dqk_blocks(&arg, (uint32_t)g->gpu->info.multiprocessors), 1, 1,
                              DQK_THREADS, 1, 1, 0, g->stream, (void *[]){&arg}, NULL);
}

static int make_graph(dq_baseline_gpu *g, lists *l, dq_diag *diag) {
    cu_graph graph = NULL;
    cu_result err = g->cu.capture(g->stream, CAPTURE_RELAXED);
    if (err != CU_SUCCESS) return must(err, "cuStreamBeginCapture", diag);
    for (uint32_t set = 0; set < l->sets && err == CU_SUCCESS; set++)
        err = launch(g, l, set);
    cu_result end = g->cu.capture_end(g->stream, &graph);
    if (err == CU_SUCCESS) err = end;
    if (err == CU_SUCCESS) err = g->cu.graph_make(&l->graph, graph, 0);
    if (graph) g->cu.graph_free(graph);
    return must(err, "cuLaunchKernel", diag);
}

static cu_result put_graph(dq_baseline_gpu *g, const void *of) {
    return g->cu.graph_run(((const lists *)of)->graph, g->stream);
}

// ---- truth ------------------------------------------------------------------------------------------------

// What a payload has to become. A packet of the GPU's has what the host's memory has there, over and over.
static void make_want(const dq_baseline_gpu *g, const lists *l, const dqk_move *m, uint8_t *payload,
                      uint8_t *want) {
    uint64_t at = m->src - (l->job->host ? (uintptr_t)g->host.at : g->src);
    for (uint32_t i = 0; i < m->len; i++)
        payload[i] = g->host.at[(at + i) % g->host.bytes];
    dqi_convert_bytes(&l->convert, want, payload, m->len);
}

// The first packets of the last set, run once more over poison.
static int compare(dq_baseline_gpu *g, const lists *l, dq_diag *diag) {
    const dqi_cuda_driver *cu = g->gpu->cu;
    uint32_t n = l->packets < WITHIN ? l->packets : WITHIN;
    size_t bytes = (size_t)n * l->made;
    cu_ptr dst = g->dst + (l->sets - 1) * l->dst_step;
    uint8_t *got = malloc(bytes), *payload = malloc(l->job->payload), *want = malloc(l->made);
    cu_result err = got && payload && want ? cu->memset_async(dst, POISON, bytes, g->stream) : 2;
    if (err == CU_SUCCESS) err = launch(g, l, l->sets - 1);
    if (err == CU_SUCCESS) err = cu->copy_to_host(got, dst, bytes, g->stream);
    if (err == CU_SUCCESS) err = cu->stream_synchronize(g->stream);
    const dqk_move *m = (const dqk_move *)l->moves.at + (size_t)(l->sets - 1) * l->packets;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n && err == CU_SUCCESS; i++) {
        make_want(g, l, &m[i], payload, want);
        wrong += memcmp(want, got + (m[i].dst - dst), l->made) != 0;
    }
    free(got);
    free(payload);
    free(want);
    if (err != CU_SUCCESS) return must(err, "cuMemcpyDtoHAsync", diag);
    return wrong == 0 ? DQ_OK
                      : dqi_fail(diag, DQ_INTERNAL_ERROR, "bench: %s: %u of %u packets are wrong",
                                 dqk_kernel(l->convert.conversion), wrong, n);
}

int dq_baseline_gpu_run(dq_baseline_gpu *g, const dq_baseline_gpu_job *job, dq_baseline_gpu_figures *out,
                        dq_diag *diag) {
    lists l;
    double took = 0;
    uint32_t rounds = 0;
    int err = lay_out(g, job, &l, diag);
    if (err == DQ_OK) err = must(dqi_gpu_enter(g->gpu), "cuCtxSetCurrent", diag);
    if (err == DQ_OK)
        err = dqi_gpu_kernel(g->gpu, dqk_ptx(l.convert.conversion), dqk_kernel(l.convert.conversion),
                             &l.kernel, "bench", diag);
    if (err == DQ_OK) err = make_moves(g, &l, diag);
    if (err == DQ_OK) err = make_graph(g, &l, diag);
    if (err == DQ_OK) err = measure(g, put_graph, &l, job->seconds, &took, &rounds, diag);
    if (err == DQ_OK) err = compare(g, &l, diag);
    if (l.graph) g->cu.graph_exec_free(l.graph);
    if (l.device_moves) g->gpu->cu->mem_free(l.device_moves);
    unpin(g, &l.moves);
    if (err != DQ_OK) return err;
    uint64_t each = (uint64_t)l.packets * l.sets, all = each * rounds + l.packets;
    *out = (dq_baseline_gpu_figures){.bytes_per_s = (double)(each * job->payload) / took,
                                     .bytes = all * job->payload,
                                     .packets = all,
                                     .launches = (uint64_t)l.sets * rounds + 1};
    return DQ_OK;
}
