// local_lines.c: what a kernel on a GPU keeps of its rings for itself lies in the GPU's memory, a line a
// ring.
#include "compute/compute.h"
#include "core/err.h"
#include "proxy/port.h"

#define LINE 128 // bytes of a line that a GPU has to itself

static cu_result fill(const dqi_gpu *g, cu_ptr to, const void *from, size_t bytes, cu_stream stream) {
    cu_result is = g->cu->copy_to_device(to, from, bytes, stream);
    return is == CU_SUCCESS ? g->cu->stream_synchronize(stream) : is;
}

int dqi_gn_local_lines(dqi_gpu *g, uint8_t *block, cu_ptr *out, const char *what, dq_diag *diag) {
    gn_port *p = (gn_port *)(void *)block;
    gn_tx_row *tx = gn_at(p, p->tx);
    gn_rx_row *rx = gn_at(p, p->rx);
    uint64_t lines[2 * DQ_GN_RINGS][LINE / 8] = {{0}};
    for (uint32_t k = 0; k < p->n_tx; k++)
        lines[k][0] = tx[k].first;
    for (uint32_t k = 0; k < p->n_rx; k++)
        lines[p->n_tx + k][0] = rx[k].first;
    dq_stream *s;
    int err = dq_stream_new(what, g->info.number, &s, diag);
    if (err != DQ_OK) return err;
    cu_result is = g->cu->mem_alloc(out, sizeof lines);
    if (is == CU_SUCCESS) is = fill(g, *out, lines, sizeof lines, s->stream);
    dq_stream_free(s);
    for (uint32_t k = 0; k < p->n_tx; k++)
        tx[k].local = (uint64_t)*out - (uintptr_t)p + LINE * k;
    for (uint32_t k = 0; k < p->n_rx; k++)
        rx[k].local = (uint64_t)*out - (uintptr_t)p + LINE * (p->n_tx + k);
    return dqi_cuda_check(is, what, "cuMemcpyHtoDAsync", diag);
}
