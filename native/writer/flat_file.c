// flat_file.c: packets back to back in one file without separators, readable as an array.
#include "core/burst.h"
#include "writer/format.h"
#include "writer/gather.h"

typedef struct flat_file {
    dqi_buffered_file file;
    uint32_t skip; // bytes skipped at the start of each packet
} flat_file;

static uint32_t left(const dq_burst *b, uint32_t i, uint32_t skip) {
    uint32_t len = dqi_packet_len(b, i);
    return len > skip ? len - skip : 0;
}

static uint64_t flat_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                              uint32_t i) {
    (void)f;
    return left(b, i, c->packet_data_offset);
}

static int flat_open(dqi_buffered_file *f, const dqi_new_file *n, dqi_file_tally *tally) {
    ((flat_file *)f)->skip = n->conf->packet_data_offset;
    int err = dqi_buffered_file_open(f, n->path, n->overlap, n->mode);
    tally->files += err == 0;
    return err;
}

static int flat_add(dqi_buffered_file *f, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally) {
    (void)ts;
    uint32_t skip = ((flat_file *)f)->skip, n = left(b, i, skip);
    return dqi_gather_record(f, b, i, skip, n, n, n, tally);
}

const dqi_format dqi_format_flat = {
    .about = {.kind = "raw",
              .choice = "file",
              .suffix = ".raw",
              .options = "overwrite packet_data_offset per"},
    .size = sizeof(flat_file),
    .bytes_of = flat_bytes_of,
    .open = flat_open,
    .add = flat_add,
    .close = dqi_buffered_file_close,
};
