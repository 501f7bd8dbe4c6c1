// block_file.c: block files: aggregates back to back, each after its header (BLOCKS.md). A block is one
// record of many pieces, so that a file ends with a complete one after any error.
#include "writer/block_file.h"
#include "core/burst.h"
#include "core/err.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "reorder/reorder.h"
#include "writer/gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef dqi_block_file block_file;

uint64_t dqi_block_file_header_bytes(const dq_writer_conf *c) {
    (void)c;
    return DQI_BLOCK_PAGE;
}

uint64_t dqi_block_file_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                                 uint32_t i) {
    (void)f, (void)i;
    return dqi_block_shape_of(b->aggregate, c->by_slot).block_bytes;
}

bool dqi_block_file_fits(const dqi_buffered_file *f, const dq_burst *b) {
    const dqi_block_shape *have = &((const block_file *)f)->shape;
    dqi_block_shape s = dqi_block_shape_of(b->aggregate, have->by_slot);
    return dqi_block_same_shape(&s, have);
}

int dqi_block_file_close(dqi_buffered_file *f) {
    free(((block_file *)f)->header);
    ((block_file *)f)->header = NULL;
    return dqi_buffered_file_close(f);
}

static int put_file_header(block_file *f, const dqi_new_file *n, dqi_file_tally *tally) {
    int err = 0;
    uint8_t *to = dqi_buffered_file_room(&f->file, DQI_BLOCK_PAGE, tally, &err);
    if (!to) return err;
    const dqi_block_file_header h = {.writer = n->writer,
                                     .text = n->conf->text,
                                     .index = n->index,
                                     .created_ns = n->now,
                                     .clock = n->first->clock};
    dqi_block_put_file_header(to, &f->shape, &h);
    dqi_buffered_file_commit(&f->file, DQI_BLOCK_PAGE, 0, false, false);
    return dqi_buffered_file_flush(&f->file, tally);
}

int dqi_block_file_open(dqi_buffered_file *file, const dqi_new_file *n, dqi_file_tally *tally) {
    block_file *f = (block_file *)file;
    *f = (block_file){.shape = dqi_block_shape_of(n->first->aggregate, n->conf->by_slot)};
    int err = dqi_buffered_file_open(&f->file, n->path, n->overlap, n->mode);
    if (err != 0) return err;
    f->header = malloc(f->shape.header_bytes);
    err = f->header ? put_file_header(f, n, tally) : -ENOMEM;
    if (err == 0)
        tally->files++;
    else
        dqi_block_file_close(file);
    return err;
}

static int put_header(block_file *f, const dq_aggregate *a, dqi_file_tally *tally) {
    int err = 0;
    dqi_block_put_header(f->header, &f->shape, a);
    for (uint32_t at = 0, n; at < f->shape.header_bytes; at += n) {
        n = f->shape.header_bytes - at < DQI_PIECE ? f->shape.header_bytes - at : DQI_PIECE;
        uint8_t *to = dqi_buffered_file_room(&f->file, n, tally, &err);
        if (!to) break;
        memcpy(to, f->header + at, n);
        dqi_buffered_file_extend(&f->file, n);
    }
    return err;
}

// Writes whole pages of the data directly from a GPU's memory, if the data are there and page-aligned. *put:
// bytes written.
static int put_pages(block_file *f, const dq_burst *b, uint32_t i, uint64_t *put, dqi_file_tally *tally) {
    uint64_t n = f->shape.data_bytes / DQI_BLOCK_PAGE * DQI_BLOCK_PAGE;
    int err = 0;
    if (!(b->device_only & 1) || b->nseg > 1 || n == 0 || !dqi_buffered_file_straight(&f->file)) return 0;
    uint64_t from = (uintptr_t)dqi_device_bytes(b, 0, i);
    if (from % DQI_GPU_PAGE != 0) {
        snprintf(f->file.indirect, sizeof f->file.indirect, "%s", DQI_GPU_NO_PAGE);
        return 0;
    }
    while (*put < n && err == 0) {
        uint32_t part = n - *put < DQI_SUMMED_BYTES ? (uint32_t)(n - *put) : DQI_SUMMED_BYTES;
        err = dqi_buffered_file_put(&f->file, (dq_burst *)(uintptr_t)b, from + *put, part, tally);
        *put += part;
    }
    return err;
}

int dqi_block_file_add(dqi_buffered_file *file, const dq_burst *b, uint32_t i, int64_t ts,
                       dqi_file_tally *tally) {
    (void)ts;
    block_file *f = (block_file *)file;
    const dqi_block_shape *s = &f->shape;
    uint64_t put = 0;
    int err = put_header(f, b->aggregate, tally);
    if (err == 0) err = put_pages(f, b, i, &put, tally);
    if (err != 0) return err;
    return dqi_gather_record(file, b, i, (uint32_t)put, s->data_bytes - put,
                             s->block_bytes - s->header_bytes - put, s->data_bytes, tally);
}

// Blocks of a known size must fit the quota, otherwise nothing could ever be written.
int dqi_block_file_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag) {
    const dqi_reorder *r = dqi_reorder_of(q);
    if (c->quota == 0 || !r) return DQ_OK;
    dq_aggregate a = {
        .slots = r->conf.slots, .slot_bytes = r->conf.slot_bytes, .cells = r->conf.slots * r->cells_each};
    uint64_t need = DQI_BLOCK_PAGE + dqi_block_shape_of(&a, c->by_slot).block_bytes;
    if (need <= c->quota) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "writer %s: its quota of %llu bytes has no room for one batch of reorder %s: a file with "
                    "one has %llu; hint: a larger quota",
                    writer, (unsigned long long)c->quota, q->conf.name, (unsigned long long)need);
}

const dqi_format dqi_format_blocks = {
    .about =
        {.kind = "blocks", .choice = "", .suffix = ".dqb", .options = "header present", .aggregates = true},
    .straight = true,
    .size = sizeof(block_file),
    .check = dqi_block_file_check,
    .header_bytes = dqi_block_file_header_bytes,
    .bytes_of = dqi_block_file_bytes_of,
    .open = dqi_block_file_open,
    .fits = dqi_block_file_fits,
    .add = dqi_block_file_add,
    .close = dqi_block_file_close,
};
