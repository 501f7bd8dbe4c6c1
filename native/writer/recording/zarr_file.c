// zarr_file.c: block files that are the shards of a Zarr array: blocks lie in the array by their ordinals,
// and a file has those of one shard. A file gets its index when it ends, and its link only then: without an
// index readers would take other bytes for the data, while they read a shard that is not there as missing
// blocks.
#include "core/burst.h"
#include "core/byteorder.h"
#include "writer/block_file.h"
#include "writer/crc32c.h"
#include "writer/gather.h"
#include "writer/recording/recording.h"
#include "writer/recording/zarr_array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct zarr_file {
    dqi_block_file blocks;
    char path[sizeof((dq_writer_file *)0)->path];
    uint64_t shard;        // of the file
    uint64_t failures;     // of the file, at the last block
    uint64_t indexed;      // size of the file with its index; 0: it has none
    dqi_zarr_block *entry; // of each block of the shard; NULL: there is no file
    // of all files of the array
    bool begun;
    uint64_t next; // least ordinal of the next block
    dqi_zarr_array array;
} zarr_file;

static uint64_t shard_of(const zarr_file *f, const dq_aggregate *a) {
    return (a->ordinal - f->array.origin) / f->array.each;
}

static bool zarr_fits(const dqi_buffered_file *file, const dq_burst *b) {
    const zarr_file *f = (const zarr_file *)file;
    const dq_aggregate *a = b->aggregate;
    return dqi_block_file_fits(file, b) && a->ordinal >= f->next && shard_of(f, a) == f->shard;
}

static uint64_t zarr_bytes_of(const dqi_buffered_file *file, const dq_writer_conf *c, const dq_burst *b,
                              uint32_t i) {
    const zarr_file *f = (const zarr_file *)file;
    uint64_t bytes = dqi_block_file_bytes_of(file, c, b, i);
    if (f->entry && zarr_fits(file, b)) return bytes;
    const dqi_block_shape s = dqi_block_shape_of(b->aggregate, c->by_slot);
    return bytes + dqi_zarr_index_bytes(dqi_zarr_each(c, &s));
}

// Whether the first block of a file continues the array, in a later shard than its last file.
static bool continues(const zarr_file *f, const dqi_new_file *n) {
    const dq_aggregate *a = n->first->aggregate;
    const dqi_block_shape s = dqi_block_shape_of(a, n->conf->by_slot);
    return f->begun && dqi_block_same_shape(&s, &f->array.shape) && a->ordinal >= f->next &&
           a->ordinal - f->next <= DQI_ZARR_JUMP && shard_of(f, a) > f->shard;
}

static void begin_array(zarr_file *f, const dqi_new_file *n) {
    const dq_aggregate *a = n->first->aggregate;
    dqi_zarr_array *z = &f->array;
    *z = (dqi_zarr_array){.conf = n->conf,
                          .shape = dqi_block_shape_of(a, n->conf->by_slot),
                          .fill = a->fill,
                          .start_ns = a->first_ns,
                          .origin = a->ordinal};
    z->each = dqi_zarr_each(n->conf, &z->shape);
    dqi_zarr_path(n->path, z->path, sizeof z->path);
}

static int zarr_open(dqi_buffered_file *file, const dqi_new_file *n, dqi_file_tally *tally) {
    zarr_file *f = (zarr_file *)file;
    const dq_aggregate *a = n->first->aggregate;
    bool joined = continues(f, n);
    struct stat st;
    if (n->conf->sample_bytes && a->slot_bytes % n->conf->sample_bytes != 0) return -DQI_ESAMPLES;
    f->begun = joined;
    if (!joined) begin_array(f, n);
    if (!joined && lstat(f->array.path, &st) == 0) return -EEXIST;
    dqi_zarr_block *entry = malloc(f->array.each * sizeof *entry);
    int err = entry ? dqi_block_file_open(file, n, tally) : -ENOMEM;
    if (err == 0 && !joined && (err = dqi_zarr_create(&f->array)) != 0) {
        dqi_block_file_close(file);
        tally->files--;
    }
    if (err != 0) {
        free(entry);
        return err;
    }
    f->begun = true;
    for (uint32_t i = 0; i < f->array.each; i++)
        entry[i].at = DQI_ZARR_NONE;
    snprintf(f->path, sizeof f->path, "%s", n->path);
    f->entry = entry;
    f->shard = shard_of(f, a);
    f->failures = f->indexed = 0;
    f->next = a->ordinal;
    return 0;
}

// Removes blocks from this offset of the file on, which a failed write has lost.
static void forget(zarr_file *f, uint64_t from) {
    for (uint32_t i = 0; i < f->array.each; i++)
        if (f->entry[i].at != DQI_ZARR_NONE && f->entry[i].at >= from) f->entry[i].at = DQI_ZARR_NONE;
}

static int zarr_add(dqi_buffered_file *file, const dq_burst *b, uint32_t i, int64_t ts,
                    dqi_file_tally *tally) {
    zarr_file *f = (zarr_file *)file;
    const dq_aggregate *a = b->aggregate;
    int err = dqi_block_file_add(file, b, i, ts, tally);
    if (err != 0) return err;
    uint64_t at = dqi_buffered_file_size(file) - f->blocks.shape.block_bytes;
    if (file->failures != f->failures) forget(f, at);
    f->failures = file->failures;
    f->next = a->ordinal + 1;
    f->entry[a->ordinal - f->array.origin - f->shard * f->array.each] =
        (dqi_zarr_block){at, a->cells - a->present_cells};
    return 0;
}

static uint64_t zarr_end_bytes(const dqi_buffered_file *file) {
    return dqi_zarr_index_bytes(((const zarr_file *)file)->array.each);
}

// Adds the index of the shard, of which all blocks are in the file.
static int zarr_end(dqi_buffered_file *file, const char *writer, int64_t now, dqi_file_tally *tally) {
    (void)writer, (void)now;
    zarr_file *f = (zarr_file *)file;
    const uint32_t each = f->array.each, most = DQI_PIECE / 16;
    uint32_t crc = 0;
    int err = 0;
    if (file->failures != f->failures) forget(f, file->whole);
    for (uint32_t i = 0, n; i < each; i += n) {
        n = each - i < most ? each - i : most;
        uint8_t *to = dqi_buffered_file_room(file, 16 * n, tally, &err);
        if (!to) return err;
        dqi_zarr_put_index(to, &f->array, f->entry + i, n);
        crc = dqi_crc32c(crc, to, 16 * (size_t)n);
        dqi_buffered_file_extend(file, 16 * n);
    }
    uint8_t *to = dqi_buffered_file_room(file, 4, tally, &err);
    if (!to) return err;
    dqi_put_le32(to, crc);
    dqi_buffered_file_commit(file, 4, 0, false, false);
    f->indexed = dqi_buffered_file_size(file);
    return 0;
}

// A file that lacks its index, or that another program has changed, is not part of the array.
static int zarr_close(dqi_buffered_file *file) {
    zarr_file *f = (zarr_file *)file;
    bool complete = f->indexed != 0 && file->whole == f->indexed && file->packets > 0;
    int err = complete ? dqi_zarr_add_shard(&f->array, f->shard, f->path, f->entry) : 0;
    free(f->entry);
    f->entry = NULL;
    int closed = dqi_block_file_close(file);
    return closed != 0 ? closed : err;
}

static int zarr_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag) {
    if (c->element[0]) {
        int err = dqi_recording_check(writer, c, q, diag);
        if (err != DQ_OK) return err;
    }
    return dqi_block_file_check(writer, c, q, diag);
}

const dqi_format dqi_format_zarr = {
    .about = {.kind = "zarr",
              .choice = "",
              .suffix = ".dqb",
              .options = "header present samples",
              .aggregates = true},
    .straight = true,
    .size = sizeof(zarr_file),
    .check = zarr_check,
    .header_bytes = dqi_block_file_header_bytes,
    .bytes_of = zarr_bytes_of,
    .open = zarr_open,
    .fits = zarr_fits,
    .add = zarr_add,
    .end_bytes = zarr_end_bytes,
    .end = zarr_end,
    .close = zarr_close,
};
