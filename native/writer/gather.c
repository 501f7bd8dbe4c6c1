// gather.c: reordered packets may be longer than a buffer of the file.
#include "writer/gather.h"
#include "core/burst.h"

#include <string.h>

uint32_t dqi_gather(dqi_buffered_file *f, const dq_burst *b, uint32_t i, uint32_t skip, uint8_t *dst,
                    uint32_t max) {
    uint32_t done = 0;
    for (uint32_t s = 0; s < b->nseg && done < max; s++) {
        uint32_t len = b->len[s][i];
        if (skip >= len) {
            skip -= len;
            continue;
        }
        uint32_t n = len - skip;
        if (n > max - done) n = max - done;
        if (b->device_only >> s & 1)
            dqi_buffered_file_copy(f, (dq_burst *)(uintptr_t)b, s, i, skip, dst + done, n);
        else
            memcpy(dst + done, dqi_bytes(b, s, i) + skip, n);
        done += n;
        skip = 0;
    }
    return done;
}

int dqi_gather_record(dqi_buffered_file *f, const dq_burst *b, uint32_t i, uint32_t skip, uint64_t n,
                      uint64_t total, uint64_t bytes, dqi_file_tally *tally) {
    for (uint64_t at = 0;;) {
        uint32_t piece = total - at < DQI_PIECE ? (uint32_t)(total - at) : DQI_PIECE;
        int err = 0;
        uint8_t *to = dqi_buffered_file_room(f, piece, tally, &err);
        if (!to) return err;
        uint32_t got = at < n ? dqi_gather(f, b, i, skip + (uint32_t)at, to, piece) : 0;
        if (got < piece) memset(to + got, 0, piece - got);
        at += piece;
        if (at == total) {
            dqi_buffered_file_commit(f, piece, bytes, true, false);
            return 0;
        }
        dqi_buffered_file_extend(f, piece);
    }
}
