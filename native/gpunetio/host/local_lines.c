// local_lines.c: private ring state of a kernel on a GPU, one line per ring in the GPU's memory. At the
// kernel's end its progress is written back to the block's own lines.
#include "compute/compute.h"
#include "core/err.h"
#include "gpunetio/host/context.h"

#include <string.h>

#define LINE 128 // bytes of a line, as accessed by a GPU

typedef uint64_t line_words[LINE / 8];

static int copy(dqi_gpu *g, const dqi_gn_lines *l, line_words *host, bool back, const char *what,
                dq_diag *diag) {
    size_t bytes = (l->n_tx + l->n_rx) * sizeof *host;
    dq_stream *s;
    int err = dq_stream_new(what, g->info.number, &s, diag);
    if (err != DQ_OK) return err;
    cu_result is = back ? g->cu->copy_to_host(host, l->at, bytes, s->stream)
                        : g->cu->copy_to_device(l->at, host, bytes, s->stream);
    if (is == CU_SUCCESS) is = g->cu->stream_synchronize(s->stream);
    dq_stream_free(s);
    return dqi_cuda_check(is, what, back ? "cuMemcpyDtoHAsync" : "cuMemcpyHtoDAsync", diag);
}

int dqi_gn_local_lines(dqi_gpu *g, uint8_t *block, dqi_gn_lines *l, const char *what, dq_diag *diag) {
    gn_context *p = (gn_context *)(void *)block;
    gn_tx_row *tx = gn_at(p, p->tx);
    gn_rx_row *rx = gn_at(p, p->rx);
    line_words lines[2 * DQ_GN_RINGS] = {{0}};
    *l = (dqi_gn_lines){.n_tx = p->n_tx, .n_rx = p->n_rx};
    for (uint32_t k = 0; k < l->n_tx; k++)
        lines[k][0] = tx[k].first;
    for (uint32_t k = 0; k < l->n_rx; k++)
        lines[l->n_tx + k][0] = rx[k].first;
    int err = dqi_cuda_check(g->cu->mem_alloc(&l->at, sizeof lines), what, "cuMemAlloc", diag);
    if (err == DQ_OK) err = copy(g, l, lines, false, what, diag);
    if (err != DQ_OK) return err;
    for (uint32_t k = 0; k < l->n_tx; k++)
        tx[k].local = l->at - (uintptr_t)p + LINE * k;
    for (uint32_t k = 0; k < l->n_rx; k++) {
        l->home[k] = gn_at(p, rx[k].local);
        rx[k].local = l->at - (uintptr_t)p + LINE * (l->n_tx + k);
    }
    return DQ_OK;
}

int dqi_gn_lines_home(dqi_gpu *g, const dqi_gn_lines *l, const char *what, dq_diag *diag) {
    line_words lines[2 * DQ_GN_RINGS];
    int err = l->n_rx == 0 ? DQ_OK : copy(g, l, lines, true, what, diag);
    for (uint32_t k = 0; k < l->n_rx && err == DQ_OK; k++)
        gn_store(&l->home[k]->taken, lines[l->n_tx + k][0]);
    return err;
}
