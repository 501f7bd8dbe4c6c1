// worker_plan.c: memory passed to a worker: context, regions and arrays of its kernel, and no other memory of
// the program.
#include "compute/arguments.h"
#include "core/err.h"
#include "core/region.h"
#include "cuda/memory.h"
#include "gpunetio/host/worker.h"
#include "pipeline/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void add_map(dqi_worker_plan *p, dqi_worker_map m) {
    for (uint32_t k = 0; k < p->n_maps; k++)
        if (p->maps[k].at == m.at) return; // an array passed twice
    p->maps[p->n_maps++] = m;
}

static void add_shared(dqi_worker_plan *p, const uint8_t *at, uint64_t bytes) {
    add_map(p, dqi_worker_shared(at, bytes, DQI_FILE_SHARED));
}

// Adds a piece of a GPU's memory. *number: 1 + its index.
static int add_piece(dqi_worker_kit *kit, const dqi_gpu_memory *m, const char *what, uint8_t *number,
                     dq_diag *diag) {
    dqi_worker_gpu *g = &kit->plan.gpu;
    if (g->n_pieces == DQI_WORKER_PIECES)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "%s: more than %d regions and arrays of a GPU's memory",
                        what, DQI_WORKER_PIECES);
    int err = dqi_gpu_memory_export(m, &kit->files[DQI_FILES + g->n_pieces], what, diag);
    if (err != DQ_OK) return err;
    g->pieces[g->n_pieces++] = m->bytes;
    *number = (uint8_t)g->n_pieces;
    return DQ_OK;
}

static int add_region(dqi_worker_kit *kit, const dq_gn *g, uint32_t row, dq_diag *diag) {
    const dq_region *r = g->bound[row];
    if (r->bound)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: a persistent kernel can't use region %s, which is bound to memory of the "
                        "application",
                        g->what, r->conf.name);
    if (!r->cpu) return add_piece(kit, dqi_cuda_memory_of(r), g->what, &kit->plan.gpu.of_row[row], diag);
    add_map(&kit->plan, dqi_worker_region(g->session, r, r->huge ? DQI_FILE_HUGE : DQI_FILE_SMALL));
    return DQ_OK;
}

static int add_array(dqi_worker_kit *kit, const dq_gn *g, const dq_kernel_arg *args, uint32_t k,
                     dq_diag *diag) {
    uint8_t *of = kit->plan.gpu.of_arg;
    const dq_array *a = args[k].array;
    if (a->cpu) {
        add_shared(&kit->plan, a->cpu, a->mapped);
        return DQ_OK;
    }
    kit->plan.values[k] = 0;
    for (uint32_t i = 0; i < k && !of[k]; i++)
        if (args[i].kind == DQ_ARG_ARRAY && args[i].array == a) of[k] = of[i];
    return of[k] ? DQ_OK : add_piece(kit, &a->memory, g->what, &of[k], diag);
}

// An address in a piece of a GPU's memory is passed as an offset.
static void add_address(dqi_worker_kit *kit, const dq_gn *g, const dq_kernel_arg *args, uint32_t k) {
    uint32_t row = args[k].row - 1;
    if (args[k].row == 0 || !g->bound[row] || g->bound[row]->cpu) return;
    kit->plan.gpu.of_arg[k] = kit->plan.gpu.of_row[row];
    kit->plan.values[k] = args[k].value - g->regions[row].base;
}

static int add_kernel(dqi_worker_kit *kit, const dq_gn *g, const dq_kernel *k, dq_diag *diag) {
    dqi_worker_gpu *to = &kit->plan.gpu;
    size_t bytes = strlen(k->ptx) + 1;
    kit->ptx_bytes = bytes;
    int err = dqi_shared_new(NULL, &kit->ptx_bytes, &kit->ptx, g->what, diag);
    if (err != DQ_OK) return err;
    memcpy(kit->ptx, k->ptx, bytes);
    add_shared(&kit->plan, kit->ptx, kit->ptx_bytes);
    to->ptx = (uintptr_t)kit->ptx;
    to->block = (uintptr_t)g->block;
    to->number = k->gpu->info.number;
    if (snprintf(to->entry, sizeof to->entry, "%s", k->entry) < (int)sizeof to->entry) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: its name has more than %zu characters", g->what,
                    sizeof to->entry - 1);
}

int dqi_worker_pack(const dq_gn *g, const dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args,
                    uint32_t n, dqi_worker_kit *out, dq_diag *diag) {
    dqi_worker_plan *p = &out->plan;
    const dq_session *s = g->session;
    const int files[DQI_FILES] = {k->file, s->core.fds[0], s->core.fds[1], dqi_shared_file()};
    uint8_t none[1]; // numbers and arrays need no scratch memory
    if (dqi_shared_file() < 0)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: a process of its own can't share memory with it: hint: ulimit -f holds for "
                        "memory too: raise it",
                        g->what);
    for (int i = 0; i < DQI_FILES; i++)
        out->files[i] = files[i] >= 0 ? files[i] : files[DQI_FILE_SHARED];
    p->grid = *grid;
    p->n_args = n;
    dqi_arguments_fill(args, n, NULL, none, p->values);
    add_shared(p, g->block, g->bytes);
    int err = k->gpu ? add_kernel(out, g, k, diag) : DQ_OK;
    for (uint32_t i = 0; i < g->n_regions && err == DQ_OK; i++)
        if (g->bound[i]) err = add_region(out, g, i, diag);
    for (uint32_t i = 0; i < n && err == DQ_OK; i++)
        if (args[i].kind == DQ_ARG_ARRAY)
            err = add_array(out, g, args, i, diag);
        else
            add_address(out, g, args, i);
    return err;
}

void dqi_worker_unpack(dqi_worker_kit *kit) {
    for (uint32_t k = 0; k < kit->plan.gpu.n_pieces; k++)
        close(kit->files[DQI_FILES + k]);
    dqi_shared_free(NULL, kit->ptx, kit->ptx_bytes);
    *kit = (dqi_worker_kit){0};
}

int dqi_gn_worker_start(const char *what, dqi_worker_kit *kit, dqi_worker *out, dq_diag *diag) {
    const dqi_worker_message plan = {&kit->plan, sizeof kit->plan, kit->files,
                                     DQI_FILES + kit->plan.gpu.n_pieces};
    return dqi_worker_spawn(what, DQI_WORKER_NAME, &plan, out, diag);
}
