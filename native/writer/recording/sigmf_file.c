// sigmf_file.c: SigMF recordings: samples back to back as in a flat file, and a metadata file beside it that
// lists where the stream continues after a jump (captures) and which samples are missing (annotations).
#include "core/burst.h"
#include "writer/format.h"
#include "writer/gather.h"
#include "writer/recording/recording.h"
#include "writer/recording/sigmf_meta.h"

#include <errno.h>
#include <sys/stat.h>

typedef struct sigmf_file {
    dqi_buffered_file file;
    dqi_sigmf_meta meta;
    uint32_t skip;           // bytes skipped at the start of each packet
    uint32_t sample_bytes;   // of one sample, complex ones with both parts
    uint64_t failures;       // of the file, at the last packet
    bool begun;              // the next packet continues the last capture, if it is the next of its stream
    uint64_t ordinal, count; // aggregates: the next one's number; samples of the last one
} sigmf_file;

// Returns the bytes of packet i that are samples.
static uint64_t data_of(const dq_burst *b, uint32_t i, uint32_t skip) {
    const dq_aggregate *a = b->aggregate;
    if (a && a->slots > 0) return (uint64_t)a->slots * a->slot_bytes;
    uint32_t len = dqi_packet_len(b, i);
    return len > skip ? len - skip : 0;
}

static uint64_t sigmf_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                               uint32_t i) {
    (void)f;
    return data_of(b, i, c->packet_data_offset);
}

static int sigmf_open(dqi_buffered_file *file, const dqi_new_file *n, dqi_file_tally *tally) {
    sigmf_file *f = (sigmf_file *)file;
    struct stat st;
    *f = (sigmf_file){
        .skip = n->conf->packet_data_offset,
        .sample_bytes = n->conf->sample_bytes,
        .meta = {.global = n->conf->text, .members = n->conf->capture, .offset = f->meta.offset}};
    dqi_sigmf_meta_path(n->path, f->meta.path, sizeof f->meta.path);
    if (n->mode != DQI_DISK_REPLACE && lstat(f->meta.path, &st) == 0) return -EEXIST;
    int err = dqi_buffered_file_open(file, n->path, n->overlap, n->mode);
    if (err != 0) return err;
    err = dqi_sigmf_meta_write(&f->meta);
    if (err == 0)
        tally->files++;
    else
        dqi_buffered_file_close(file);
    return err;
}

// Adds the missing cells of an aggregate whose data start at this sample. A sample of which a part is missing
// counts as missing.
static void note_gaps(sigmf_file *f, const dq_aggregate *a, uint64_t start) {
    uint32_t each = a->cells / a->slots;
    if (a->present_cells == a->cells) return;
    for (uint32_t c = 0; c < a->cells; c++) {
        if (a->present[c / 64] >> c % 64 & 1) continue;
        uint32_t slot = c / each, in = c % each;
        uint64_t from = (uint64_t)slot * a->slot_bytes + (uint64_t)in * a->cell_bytes;
        uint64_t to = in + 1 < each ? from + a->cell_bytes : (uint64_t)(slot + 1) * a->slot_bytes;
        dqi_sigmf_meta_gap(&f->meta, start + from / f->sample_bytes,
                           start + (to + f->sample_bytes - 1) / f->sample_bytes);
    }
}

// Updates the metadata for n bytes that were just added; a: NULL for a packet.
static void note(sigmf_file *f, const dq_aggregate *a, uint64_t n, int64_t ts) {
    uint64_t count = n / f->sample_bytes;
    uint64_t start = dqi_buffered_file_size(&f->file) / f->sample_bytes - count;
    if (f->file.failures != f->failures) { // the file was cut, and packets are missing
        f->failures = f->file.failures;
        dqi_sigmf_meta_cut(&f->meta, start);
        f->begun = false;
    }
    if (count == 0) return;
    if (!f->begun || (a && (a->ordinal != f->ordinal || count != f->count))) {
        dqi_sigmf_capture c = {.start = start, .time_ns = a ? a->first_ns : ts};
        c.indexed = a && a->ordinal <= (uint64_t)INT64_MAX / count;
        if (c.indexed) c.index = a->ordinal * count;
        dqi_sigmf_meta_capture(&f->meta, &c);
    }
    f->begun = true;
    if (a) {
        f->ordinal = a->ordinal + 1;
        f->count = count;
        note_gaps(f, a, start);
    }
    dqi_sigmf_meta_refresh(&f->meta);
}

static int sigmf_add(dqi_buffered_file *file, const dq_burst *b, uint32_t i, int64_t ts,
                     dqi_file_tally *tally) {
    sigmf_file *f = (sigmf_file *)file;
    const dq_aggregate *a = b->aggregate && b->aggregate->slots > 0 ? b->aggregate : NULL;
    uint64_t n = data_of(b, i, f->skip);
    if (n % f->sample_bytes != 0) return -DQI_ESAMPLES;
    int err = dqi_gather_record(file, b, i, a ? 0 : f->skip, n, n, n, tally);
    if (err == 0) note(f, a, n, ts);
    return err;
}

static int sigmf_close(dqi_buffered_file *file) {
    sigmf_file *f = (sigmf_file *)file;
    uint64_t n = file->whole / f->sample_bytes;
    dqi_sigmf_meta_cut(&f->meta, n);
    int err = f->meta.changed ? dqi_sigmf_meta_write(&f->meta) : 0;
    f->meta.offset += n;
    dqi_sigmf_meta_free(&f->meta);
    int closed = dqi_buffered_file_close(file);
    return closed != 0 ? closed : err;
}

const dqi_format dqi_format_sigmf = {
    .about = {.kind = "sigmf",
              .choice = "",
              .suffix = "." DQI_SIGMF_DATA,
              .beside = "." DQI_SIGMF_META,
              .options = "header overwrite packet_data_offset samples"},
    .size = sizeof(sigmf_file),
    .check = dqi_recording_check,
    .bytes_of = sigmf_bytes_of,
    .open = sigmf_open,
    .add = sigmf_add,
    .close = sigmf_close,
};
