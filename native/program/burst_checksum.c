// burst_checksum.c: computes the checksums of a burst's packets after their headers were written.
#include "core/burst.h"
#include "packet/packet.h"

int dq_burst_checksums(dq_burst *b, int64_t i) {
    if (!dqi_burst_writable(b) || i >= (int64_t)b->n) return DQ_INVALID_PARAMETER;
    if (b->payload) return DQ_NOT_SUPPORTED;
    dqi_burst_columns(b);
    uint32_t from = i < 0 ? 0 : (uint32_t)i, to = i < 0 ? b->n : from + 1;
    for (uint32_t k = from; k < to; k++) {
        dqi_pkt pkt;
        uint8_t *p = dqi_bytes(b, 0, k);
        dqi_parse(p, b->len[0][k], &pkt);
        dqi_csum_fill(p, &pkt);
    }
    return DQ_OK;
}
