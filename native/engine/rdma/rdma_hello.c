// rdma_hello.c: private data that two ends exchange when they connect: the script's bytes, followed by the
// mark of this engine and whether it accepts notes (rdma_lend.c).
//
// The connection manager pads private data with zeros and does not report its length. So a mark and the
// length are stored in the last 8 of the 56 bytes of a request; other applications find the script's bytes at
// the front, as they expect.
#include "engine/rdma/rdma_hello.h"
#include "core/err.h"

#include <string.h>

_Static_assert(sizeof(dqi_rdma_hello) == 56, "as much as a request has room for");

static const uint8_t mark[6] = {'d', 'a', 'q', 'i', 'r', 'i'};

static bool has_notes(const dqi_rconn *c) {
    const dq_queue *q = c->conn.rx;
    return dqi_rdma_transport(c->r) == DQ_TRANSPORT_RC && c->inline_bytes >= DQI_RDMA_NOTE_BYTES && q &&
           q->conf.n_regions > 0 && q->conf.regions[0]->conf.buf_size >= DQI_RDMA_NOTE_BYTES;
}

int dqi_rdma_check_private(const dqi_rdma *r, const dq_connect *to, dq_diag *diag) {
    if (to->private_bytes <= DQI_RDMA_PRIVATE) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "interface %s: cannot send %u bytes of private data: the limit is %d",
                    r->iface->conf.name, to->private_bytes, DQI_RDMA_PRIVATE);
}

void dqi_rdma_write_hello(const dqi_rconn *c, dqi_rdma_hello *out) {
    *out = (dqi_rdma_hello){.n = c->private_out_bytes, .notes = has_notes(c)};
    memcpy(out->bytes, c->private_out, c->private_out_bytes);
    memcpy(out->mark, mark, sizeof mark);
}

static bool is_empty(const uint8_t *data, uint32_t len) {
    uint32_t k = 0;
    while (k < len && data[k] == 0)
        k++;
    return k == len;
}

void dqi_rdma_read_hello(dqi_rconn *c, const void *data, uint8_t len) {
    const dqi_rdma_hello *h = data;
    c->ours = false;
    c->private_in_bytes = 0;
    if (!data) return;
    bool marked = len >= sizeof *h && memcmp(h->mark, mark, sizeof mark) == 0 && h->n <= DQI_RDMA_PRIVATE;
    c->ours = marked && h->notes && has_notes(c);
    uint32_t n = marked ? h->n : is_empty(data, len) ? 0 : len;
    c->private_in_bytes = n < sizeof c->private_in ? (uint8_t)n : sizeof c->private_in;
    memcpy(c->private_in, data, c->private_in_bytes);
}
