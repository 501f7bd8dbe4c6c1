// bench.c: how fast the shipped kernels are on a GPU, beside what its copies do in the same run: GB/s
// of payload. `bench` [MOVES.ptx…]: the moves of other builds of kernels.cu, too.
#include "device.h"
#include "kernels/kernels.h"

enum { ROUNDS = 7, WITHIN = 64 }; // packets are shuffled within so many

static uint64_t seed = 1;
static uint32_t random32(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

// ---- time -------------------------------------------------------------------------------------------------

static cu_event before, after;

static void begin(void) { CU(capture, gpu.stream, 2); }

static int by_size(const void *a, const void *b) {
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

// Seconds that what was launched since begin takes: the median of some rounds.
static double end(void) {
    cu_graph graph;
    cu_graph_exec run;
    double t[ROUNDS];
    CU(capture_end, gpu.stream, &graph);
    CU(graph_make, &run, graph, 0);
    for (int i = -1; i < ROUNDS; i++) {
        float ms;
        CU(event_record, before, gpu.stream);
        CU(graph_run, run, gpu.stream);
        CU(event_record, after, gpu.stream);
        CU(event_wait, after);
        CU(event_between, &ms, before, after);
        if (i >= 0) t[i] = ms / 1e3;
    }
    CU(graph_exec_free, run);
    CU(graph_free, graph);
    qsort(t, ROUNDS, sizeof *t, by_size);
    return t[ROUNDS / 2];
}

// ---- lists ------------------------------------------------------------------------------------------------

// Rows of packets in memory, and lists that put them together, as many as don't fit the cache.
typedef struct job {
    uint32_t len, n, offset, sets, in_bits, out_bits, what;
    uint32_t far;                                       // as of dqk_list
    uint64_t stride, set_src, set_dst, src, dst, moves; // bytes of a set; addresses
} job;

static dqk_move *staging; // pinned

static void make_moves(job *j, uint64_t at) {
    for (uint32_t s = 0; s < j->sets; s++) {
        for (uint32_t i = 0; i < j->n; i++)
            staging[i] = (dqk_move){j->src + s * j->set_src + i * j->stride + j->offset, i, j->len, j->what};
        for (uint32_t i = 0; i < j->n; i++) {
            uint32_t k = i / WITHIN * WITHIN + random32() % WITHIN;
            if (k >= j->n) continue;
            uint64_t slot = staging[i].dst;
            staging[i].dst = staging[k].dst;
            staging[k].dst = slot;
        }
        for (uint32_t i = 0; i < j->n; i++)
            staging[i].dst =
                j->dst + s * j->set_dst + staging[i].dst * ((uint64_t)j->len * j->out_bits / j->in_bits);
        CU(copy_in, at + (uint64_t)s * j->n * sizeof(dqk_move), staging, j->n * sizeof(dqk_move), gpu.stream);
        device_wait();
    }
    j->moves = at;
}

static dqk_list list_of(const job *j, uint32_t set, uint32_t parts) {
    return (dqk_list){.moves = j->moves + (uint64_t)set * j->n * sizeof(dqk_move),
                      .n = j->n,
                      .parts = parts,
                      .far = j->far};
}

static cu_ptr d_src, d_dst, d_moves;
static uint8_t *pinned;

#define SIDE ((uint64_t)1 << 31) // bytes of the large memories

static job job_of(uint32_t len, uint32_t n, uint32_t offset, uint32_t in_bits, uint32_t out_bits,
                  uint64_t src, uint64_t room) {
    job j = {.len = len,
             .n = n,
             .offset = offset,
             .in_bits = in_bits,
             .out_bits = out_bits,
             .src = src,
             .dst = d_dst};
    j.stride = (len + offset + 127) / 128 * 128;
    j.set_src = j.stride * n;
    j.set_dst = ((uint64_t)len * out_bits / in_bits * n + 255) / 256 * 256;
    uint64_t sets = 400e6 / (double)(j.set_src + j.set_dst) + 1;
    if (sets > room / j.set_src) sets = room / j.set_src;
    if (sets > SIDE / j.set_dst) sets = SIDE / j.set_dst;
    if (sets > 128) sets = 128;
    j.sets = (uint32_t)sets;
    j.what = in_bits == out_bits && in_bits == 8 ? DQK_COPY : DQK_CONVERT;
    make_moves(&j, d_moves);
    return j;
}

// GB/s of payload of a job.
static double speed(const job *j, cu_function f, uint32_t blocks, uint32_t parts, uint32_t conversion) {
    begin();
    for (uint32_t s = 0; s < j->sets; s++) {
        dqk_list l = list_of(j, s, parts);
        l.conversion = conversion;
        uint32_t most = (j->n * parts + 7) / 8;
        device_launch(f, blocks < most ? blocks : most, DQK_THREADS, &l);
    }
    return (double)j->len * j->n * j->sets / end() / 1e9;
}

// ---- figures ----------------------------------------------------------------------------------------------

static void resources(const char *ptx, const char *name) {
    int regs, local, blocks;
    double t = now_ns();
    cu_function f = device_function(ptx, name);
    t = now_ns() - t;
    CU(function_attribute, &regs, 4, f);
    CU(function_attribute, &local, 3, f);
    CU(occupancy, &blocks, f, DQK_THREADS, 0);
    printf("  %-18s %3d registers %3d bytes local %2d blocks a multiprocessor (%d %%)  load %.1f ms\n", name,
           regs, local, blocks, blocks * 100 / 8, t / 1e6);
}

// Of the driver's copies, one after the other, which it does its own way: not in a graph.
static double copies(uint64_t bytes, bool host) {
    enum { N = 256 << 20 };
    double t[ROUNDS];
    for (int i = -1; i < ROUNDS; i++) {
        float ms;
        CU(event_record, before, gpu.stream);
        for (uint64_t at = 0; at < bytes; at += N) {
            if (host)
                CU(copy_in, d_dst + at, pinned, N, gpu.stream);
            else
                CU(copy, d_dst + at, d_src + at, N, gpu.stream);
        }
        CU(event_record, after, gpu.stream);
        CU(event_wait, after);
        CU(event_between, &ms, before, after);
        if (i >= 0) t[i] = ms / 1e3;
    }
    qsort(t, ROUNDS, sizeof *t, by_size);
    return (double)bytes / t[ROUNDS / 2] / 1e9;
}

static double copy_speed(void) { return copies(SIDE, false); }
static double host_copy_speed(void) { return copies((uint64_t)256 << 20, true); }

static void reorder(const char *ptx, bool all) {
    cu_function f = device_function(ptx, "dqk_moves");
    int fit;
    CU(occupancy, &fit, f, DQK_THREADS, 0);
    double ceiling = copy_speed();
    printf("reorder on the device, %d blocks a multiprocessor fit; copy %.0f GB/s\n", fit, ceiling);
    static const uint32_t lens[] = {1024, 4096, 8192}, ns[] = {1024, 16384}, offsets[] = {42, 64};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++)
            for (int c = 0; c < (all ? 2 : 1); c++) {
                job j = job_of(lens[a], ns[b], offsets[c], 8, 8, d_src, SIDE);
                printf("  %5u B x %5u at %u:", lens[a], ns[b], offsets[c]);
                double best = 0;
                for (uint32_t part = 1024; part <= 8192; part *= 2) {
                    if (part > lens[a]) continue;
                    for (int k = all ? 0 : 1; k < 3; k++) {
                        uint32_t blocks = (uint32_t)(gpu.multiprocessors * (k == 0   ? fit
                                                                            : k == 1 ? 2 * fit
                                                                                     : 1 << 16));
                        double v = speed(&j, f, blocks, lens[a] / part, 0);
                        if (v > best) best = v;
                        printf(" %s%.0f", k == (all ? 0 : 1) ? "| " : "", v);
                    }
                }
                printf("  best %.3f\n", best / ceiling);
            }
}

static void gather(const char *ptx, bool all) {
    cu_function f = device_function(ptx, "dqk_moves");
    double ceiling = host_copy_speed();
    printf("gather from host memory at 42, copy %.1f GB/s; blocks 8 16 32 64, for each part size\n", ceiling);
    static const uint32_t lens[] = {1024, 4096, 8192};
    for (int a = 0; a < 3; a++) {
        job j = job_of(lens[a], (32 << 20) / lens[a], 42, 8, 8, (uintptr_t)pinned, (uint64_t)256 << 20);
        j.far = 1;
        printf("  %5u B:", lens[a]);
        for (uint32_t part = 1024; part <= lens[a]; part *= all ? 2 : 4) {
            printf(" |");
            for (uint32_t blocks = 8; blocks <= 64; blocks *= 2)
                printf(" %.1f", speed(&j, f, blocks, lens[a] / part, 0));
        }
        if (all) {
            job k = job_of(lens[a], (32 << 20) / lens[a], 64, 8, 8, (uintptr_t)pinned, (uint64_t)256 << 20);
            printf(" | far 0: %.1f", (j.far = 0, speed(&j, f, 16, dqk_parts(lens[a]), 0)));
            printf(" | aligned, 16 blocks: %.1f", speed(&k, f, 16, dqk_parts(lens[a]), 0));
        }
        printf("\n");
    }
}

static void conversions(void) {
    double ceiling = copy_speed();
    printf("conversions, 4096 B x 16384 at 42: GB/s of input (of the bound by traffic)\n");
    static const uint8_t in[] = {4, 8, 16, 32, 16, 32}, out[] = {16, 16, 32, 64, 32, 8};
    for (uint32_t c = 1; c <= DQK_CONVERSIONS; c++) {
        uint32_t a = in[(c - 1) / 6], b = out[(c - 1) % 6];
        if (c > 12 && c <= DQK_SWAPPED) continue; // as their swapped ones
        cu_function f = device_function(dqk_ptx(c), dqk_kernel(c));
        int fit;
        CU(occupancy, &fit, f, DQK_THREADS, 0);
        job j = job_of(4096, 16384, 42, a, b, d_src, SIDE);
        double bound = 2 * ceiling / (1 + (double)b / a);
        printf("  %2u %-16s bound %5.0f:", c, dqk_kernel(c), bound);
        for (uint32_t parts = 1; parts <= 4; parts *= 2) {
            double best = 0;
            for (uint32_t most = (uint32_t)(gpu.multiprocessors * fit); most < 1 << 17; most *= 8) {
                double v = speed(&j, f, most, parts, c);
                best = v > best ? v : best;
            }
            printf(" %5.0f (%.2f)", best, best / bound);
        }
        printf("\n");
    }
}

// ---- launches ---------------------------------------------------------------------------------------------

enum { MOST = 8, LISTS = 2000, STREAMS = 4 }; // MOST: lists under way

// Lists of so many packets of 1 KiB in host memory, `flight` under way on `ways` streams: GB/s, us from a
// launch to its ticket, us of a launch.
static void lists_of(uint32_t packets, uint32_t flight, uint32_t ways, cu_ptr done,
                     volatile uint64_t *tickets, const cu_stream *streams) {
    static double took[LISTS], began[MOST];
    cu_function f = device_function(dqk_ptx(0), dqk_kernel(0));
    uint32_t all = (64 << 20) / 1152;
    for (uint32_t i = 0; i < all; i++)
        staging[i] = (dqk_move){(uintptr_t)pinned + i * 1152ull + 42, d_dst + i * 1024ull, 1024, DQK_COPY};
    memset((void *)tickets, 0, 4096);
    double start = now_ns(), launching = 0;
    for (uint32_t i = 0; i < LISTS + flight; i++) {
        uint32_t k = i % flight;
        if (i >= flight) {
            while (tickets[k * 8] != i - flight + 1)
                if (now_ns() - start > 5e9) device_must(-1, "a ticket");
            took[i - flight] = now_ns() - began[k];
        }
        if (i >= LISTS) continue;
        dqk_list l = {.moves = (uintptr_t)(staging + (uint64_t)i * packets % (all - packets)),
                      .ticket = (uintptr_t)&tickets[k * 8],
                      .value = i + 1,
                      .done = done + k * 4,
                      .n = packets,
                      .parts = 1,
                      .far = 1};
        double t = began[k] = now_ns();
        CU(launch, f, DQK_HOST_BLOCKS, 1, 1, DQK_THREADS, 1, 1, 0, streams[i % ways], (void *[]){&l}, NULL);
        launching += now_ns() - t;
    }
    double t = now_ns() - start;
    for (uint32_t i = 0; i < ways; i++)
        CU(stream_wait, streams[i]);
    qsort(took, LISTS, sizeof *took, by_size);
    printf("  %4u KiB, %u under way on %u streams: %5.1f GB/s, %6.1f us to the ticket (p99 %.1f), %.2f us a "
           "launch\n",
           packets, flight, ways, 1024.0 * packets * LISTS / t, took[LISTS / 2] / 1e3,
           took[LISTS * 99 / 100] / 1e3, launching / LISTS / 1e3);
}

static void launches(void) {
    volatile uint64_t *tickets = host_memory(4096);
    cu_ptr done = device_memory(4096);
    cu_stream streams[STREAMS];
    CU(fill, done, 0, 4096, gpu.stream);
    device_wait();
    for (int i = 0; i < STREAMS; i++)
        CU(stream_create, &streams[i], 1);
    printf("lists of 1 KiB packets in host memory, moves read in place, %d blocks\n", DQK_HOST_BLOCKS);
    for (uint32_t packets = 1; packets <= 1024; packets *= packets == 1 ? 64 : 4) {
        lists_of(packets, 1, 1, done, tickets, streams);
        lists_of(packets, 4, 2, done, tickets, streams);
        lists_of(packets, 8, 4, done, tickets, streams);
    }
}

static void heads(void) {
    enum { N = 4096, HEAD = 128 };
    dqk_move *m = host_memory(N * sizeof *m);
    for (uint32_t i = 0; i < N; i++)
        m[i] = (dqk_move){d_src + i * 2048ull, (uintptr_t)pinned + i * HEAD, HEAD, DQK_COPY};
    cu_function f = device_function(dqk_ptx(0), dqk_kernel(0));
    printf("first %d bytes of packets to the host:", HEAD);
    for (uint32_t n = 256; n <= N; n *= 4) {
        dqk_list l = {.moves = (uintptr_t)m, .n = n, .parts = 1};
        begin();
        for (int i = 0; i < 8; i++)
            device_launch(f, dqk_blocks(&l, (uint32_t)gpu.multiprocessors), DQK_THREADS, &l);
        double t = end() / 8;
        printf(" %u %.1f us (%.1f GB/s)", n, t * 1e6, n * HEAD / t / 1e9);
    }
    printf("\n");
}

static char *file_of(const char *name) {
    FILE *f = fopen(name, "r");
    if (!f) device_must(-1, name);
    char *p = calloc(1, 1 << 20);
    if (fread(p, 1, (1 << 20) - 1, f) == 0) device_must(-1, name);
    fclose(f);
    return p;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!device_open()) return 77;
    printf("%s, %d multiprocessors\n", gpu.model, gpu.multiprocessors);
    CU(event_create, &before, 0);
    CU(event_create, &after, 0);
    d_src = device_memory(SIDE);
    d_dst = device_memory(SIDE);
    d_moves = device_memory(64 << 20);
    staging = host_memory(4 << 20);
    pinned = host_memory((size_t)256 << 20);
    for (size_t i = 0; i < (size_t)256 << 20; i += 4)
        *(uint32_t *)(pinned + i) = random32();
    for (uint64_t at = 0; at < SIDE; at += (uint64_t)256 << 20)
        CU(copy_in, d_src + at, pinned, (size_t)256 << 20, gpu.stream);
    device_wait();
    printf("resources\n");
    for (uint32_t c = 0; c <= DQK_SWAPPED; c++)
        resources(dqk_ptx(c), dqk_kernel(c));
    reorder(dqk_ptx(0), true);
    gather(dqk_ptx(0), true);
    conversions();
    heads();
    launches();
    for (int i = 1; i < argc; i++) {
        printf("== %s\n", argv[i]);
        char *ptx = file_of(argv[i]);
        resources(ptx, "dqk_moves");
        reorder(ptx, false);
        gather(ptx, false);
    }
    return 0;
}
