// worker_gpu.c: worker of a kernel on a GPU, with a CUDA context of its own. Host pages are mapped at the
// program's addresses; pieces of GPU memory are mapped where the driver chooses (it ignores address hints),
// so the context's rows and the arguments are updated here.
#include "compute/compute.h"
#include "core/err.h"
#include "cuda/gpu_memory.h"
#include "gpunetio/host/worker.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define LOOK_MS 2 // between two checks for the kernel's end
#define WHAT    "its worker"

static void must(int err, const dq_diag *diag) {
    if (err != DQ_OK) dqi_worker_refuse(err, diag->text);
}

static void must_cuda(cu_result is, const char *call) {
    dq_diag diag = {{0}};
    must(dqi_cuda_check(is, WHAT, call, &diag), &diag);
}

static void reach_host(dqi_gpu *g, const dqi_worker_plan *p) {
    dq_diag diag = {{0}};
    for (uint32_t k = 0; k < p->n_maps; k++)
        must(dqi_pinned_reach(g, (uint8_t *)(uintptr_t)p->maps[k].at, p->maps[k].bytes, WHAT, &diag), &diag);
}

static void reach_pieces(dqi_gpu *g, dqi_worker_plan *p, const int *files) {
    gn_context *context = (gn_context *)(uintptr_t)p->gpu.block;
    gn_region *rows = gn_at(context, context->regions);
    cu_ptr at[1 + DQI_WORKER_PIECES];
    dq_diag diag = {{0}};
    for (uint32_t k = 0; k < p->gpu.n_pieces; k++) {
        dqi_gpu_memory m;
        must(dqi_gpu_memory_import(g, files[k], p->gpu.pieces[k], &m, WHAT, &diag), &diag);
        close(files[k]);
        at[1 + k] = m.at;
    }
    for (uint32_t k = 0; k < p->n_args; k++)
        if (p->gpu.of_arg[k]) p->values[k] += at[p->gpu.of_arg[k]];
    for (uint32_t k = 0; k < context->n_regions; k++)
        if (p->gpu.of_row[k]) rows[k].base = at[p->gpu.of_row[k]];
}

static void watch(dqi_gpu *g, cu_stream stream) {
    struct pollfd program = {.fd = DQI_WORKER_SOCKET, .events = POLLIN};
    char words[200];
    for (;;) {
        int n = poll(&program, 1, LOOK_MS);
        if (n > 0) _exit(1); // never readable: the program has ended
        cu_result is = g->cu->stream_query(stream);
        if (is == CU_ERROR_NOT_READY) continue;
        if (is == CU_SUCCESS) is = g->cu->context_synchronize(); // flushes the kernel's output
        dqi_gpu_note(g, is);
        if (!dqi_gpu_lost(g, words, sizeof words)) return;
        dqi_worker_refuse(DQ_GENERIC_FAILURE, words);
    }
}

void dqi_worker_on_gpu(dqi_worker_plan *p, const int *files) {
    dq_diag diag = {{0}};
    dq_kernel *kernel;
    dq_stream *s;
    dqi_gn_lines lines;
    void *args[DQ_MAX_KERNEL_ARGS + 1];
    dqi_gpu *g = dqi_gpu_open(p->gpu.number, WHAT, &diag);
    if (!g) dqi_worker_refuse(DQ_NOT_SUPPORTED, diag.text);
    reach_host(g, p);
    reach_pieces(g, p, files);
    must(dq_stream_new(WHAT, p->gpu.number, &s, &diag), &diag);
    must(dqi_gn_local_lines(g, (uint8_t *)(uintptr_t)p->gpu.block, &lines, WHAT, &diag), &diag);
    must(dq_kernel_from_ptx(WHAT, p->gpu.number, (const char *)(uintptr_t)p->gpu.ptx, p->gpu.entry, &kernel,
                            &diag),
         &diag);
    for (uint32_t k = 0; k < p->n_args; k++)
        args[k] = &p->values[k];
    dqi_worker_confine(DQI_CALLS_GPU);
    must_cuda(dqi_kernel_start(kernel, &p->grid, s->stream, args), dqi_kernel_call(kernel));
    dqi_worker_answer(DQ_OK, "");
    watch(g, s->stream);
    must(dqi_gn_lines_home(g, &lines, WHAT, &diag), &diag);
    fflush(NULL);
    dqi_worker_answer(DQ_OK, "");
    _exit(0);
}
