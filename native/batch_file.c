// batch_file.c: a batch is one record of many pieces, so that a file ends with a whole one whatever happens.
#include "batch_file.h"
#include "burst.h"
#include "pcap_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE (256u << 10) // bytes: a block always has room for one

int dqi_batch_open(dqi_batch_file *f, const char *path, const dqi_batch_shape *shape,
                   const dqi_batch_file_header *header, bool overlap, dqi_file_tally *tally) {
    *f = (dqi_batch_file){.shape = *shape};
    int err = dqi_block_open(&f->file, path, overlap, DQI_DISK_NEW);
    if (err != 0) return err;
    f->header = malloc(shape->header_bytes);
    if (!f->header) err = -ENOMEM;
    uint8_t *h = err == 0 ? dqi_block_room(&f->file, DQI_BATCH_PAGE, tally, &err) : NULL;
    if (h) {
        dqi_batch_put_file_header(h, shape, header);
        dqi_block_commit(&f->file, DQI_BATCH_PAGE, 0, false, false);
        err = dqi_block_flush(&f->file, tally);
    }
    if (err == 0)
        tally->files++;
    else
        dqi_batch_close(f);
    return err;
}

static int put_header(dqi_batch_file *f, const dq_aggregate *a, dqi_file_tally *tally) {
    int err = 0;
    dqi_batch_put_header(f->header, &f->shape, a);
    for (uint32_t at = 0, n; at < f->shape.header_bytes; at += n) {
        n = f->shape.header_bytes - at < PIECE ? f->shape.header_bytes - at : PIECE;
        uint8_t *to = dqi_block_room(&f->file, n, tally, &err);
        if (!to) break;
        memcpy(to, f->header + at, n);
        dqi_block_extend(&f->file, n);
    }
    return err;
}

int dqi_batch_add(dqi_batch_file *f, const dq_burst *b, dqi_file_tally *tally) {
    const dqi_batch_shape *s = &f->shape;
    int err = put_header(f, b->aggregate, tally);
    uint64_t total = s->batch_bytes - s->header_bytes;
    for (uint64_t at = 0; err == 0;) {
        uint32_t n = total - at < PIECE ? (uint32_t)(total - at) : PIECE;
        uint8_t *to = dqi_block_room(&f->file, n, tally, &err);
        if (!to) break;
        uint32_t got = at < s->data_bytes ? dqi_gather(b, 0, (uint32_t)at, to, n) : 0;
        if (got < n) memset(to + got, 0, n - got); // up to the next page
        at += n;
        if (at == total) {
            dqi_block_commit(&f->file, n, s->data_bytes, true, false);
            return 0;
        }
        dqi_block_extend(&f->file, n);
    }
    return err;
}

int dqi_batch_close(dqi_batch_file *f) {
    free(f->header);
    f->header = NULL;
    return dqi_block_close(&f->file);
}
