// text_file.c: recordings with text headers: PSRDADA, a header per file, and GUPPI RAW, one per block. The
// data of reordered bursts are back to back behind it. No bytes are left out: missing packets have the fill
// value, and a missing block starts another file (DADA), or is seen from PKTIDX (GUPPI).
#include "core/burst.h"
#include "core/err.h"
#include "pipeline/queue.h"
#include "reorder/reorder.h"
#include "writer/format.h"
#include "writer/gather.h"
#include "writer/recording/recording.h"
#include "writer/recording/text_header.h"

#include <string.h>

typedef struct text_file {
    dqi_buffered_file file;
    const char *text;
    uint64_t bytes; // of a block
    uint64_t next;  // ordinal of the next block
    // of all files of the recording
    bool begun;
    uint64_t origin, number; // ordinal of the first block; number of the file
    int64_t start_ns;        // receive time of the first block
} text_file;

static uint64_t data_of(const dq_aggregate *a) { return (uint64_t)a->slots * a->slot_bytes; }

static uint64_t text_header_bytes(const dq_writer_conf *c) {
    (void)c;
    return DQI_TEXT_HEADER;
}

static uint64_t dada_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                              uint32_t i) {
    (void)f, (void)c, (void)i;
    return data_of(b->aggregate);
}

static uint64_t guppi_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                               uint32_t i) {
    return DQI_TEXT_HEADER + dada_bytes_of(f, c, b, i);
}

static dqi_text_facts facts_of(const text_file *f, const dq_aggregate *a) {
    return (dqi_text_facts){.start_ns = f->start_ns,
                            .blocks = a->ordinal - f->origin,
                            .bytes = f->bytes,
                            .slots = a->slots,
                            .missing = a->cells - a->present_cells,
                            .cells = a->cells,
                            .number = f->number};
}

// Adds a header as the start of a record that the data end.
static int put_header(text_file *f, const dq_aggregate *a,
                      void (*write)(char *, const char *, const dqi_text_facts *), dqi_file_tally *tally) {
    int err = 0;
    const dqi_text_facts facts = facts_of(f, a);
    uint8_t *to = dqi_buffered_file_room(&f->file, DQI_TEXT_HEADER, tally, &err);
    if (!to) return err;
    write((char *)to, f->text, &facts);
    return 0;
}

// Opens the file. A block before the first one, as after a restart of the sender, begins another recording.
static int text_open(dqi_buffered_file *file, const dqi_new_file *n, dqi_file_tally *tally) {
    text_file *f = (text_file *)file;
    const dq_aggregate *a = n->first->aggregate;
    bool joined = f->begun && a->ordinal >= f->origin && data_of(a) == f->bytes;
    *f = (text_file){.text = n->conf->text,
                     .bytes = data_of(a),
                     .next = a->ordinal,
                     .begun = f->begun,
                     .origin = joined ? f->origin : a->ordinal,
                     .number = joined ? f->number : 0,
                     .start_ns = joined ? f->start_ns : a->first_ns};
    int err = dqi_buffered_file_open(file, n->path, n->overlap, n->mode);
    if (err == 0) tally->files++;
    return err;
}

static int dada_open(dqi_buffered_file *file, const dqi_new_file *n, dqi_file_tally *tally) {
    text_file *f = (text_file *)file;
    int err = text_open(file, n, tally);
    if (err != 0) return err;
    err = put_header(f, n->first->aggregate, dqi_dada_header, tally);
    if (err == 0) {
        dqi_buffered_file_commit(file, DQI_TEXT_HEADER, 0, false, false);
        err = dqi_buffered_file_flush(file, tally);
    }
    if (err == 0) return 0;
    tally->files--;
    dqi_buffered_file_close(file);
    return err;
}

static bool guppi_fits(const dqi_buffered_file *file, const dq_burst *b) {
    const text_file *f = (const text_file *)file;
    return data_of(b->aggregate) == f->bytes && b->aggregate->ordinal >= f->next;
}

// After a failed write, too, the data no longer follow those in the file.
static bool dada_fits(const dqi_buffered_file *file, const dq_burst *b) {
    const text_file *f = (const text_file *)file;
    return guppi_fits(file, b) && b->aggregate->ordinal == f->next && file->failures == 0;
}

static int put_data(text_file *f, const dq_burst *b, uint32_t i, dqi_file_tally *tally) {
    int err = dqi_gather_record(&f->file, b, i, 0, f->bytes, f->bytes, f->bytes, tally);
    if (err != 0) return err;
    f->begun = true;
    f->next = b->aggregate->ordinal + 1;
    return 0;
}

static int dada_add(dqi_buffered_file *file, const dq_burst *b, uint32_t i, int64_t ts,
                    dqi_file_tally *tally) {
    (void)ts;
    return put_data((text_file *)file, b, i, tally);
}

static int guppi_add(dqi_buffered_file *file, const dq_burst *b, uint32_t i, int64_t ts,
                     dqi_file_tally *tally) {
    (void)ts;
    text_file *f = (text_file *)file;
    int err = put_header(f, b->aggregate, dqi_guppi_header, tally);
    if (err != 0) return err;
    dqi_buffered_file_extend(file, DQI_TEXT_HEADER);
    return put_data(f, b, i, tally);
}

static int text_close(dqi_buffered_file *file) {
    ((text_file *)file)->number++;
    return dqi_buffered_file_close(file);
}

// Readers take missing data for samples, so that these need a value; and converted data the declared type.
static int text_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag) {
    const dqi_reorder *r = dqi_reorder_of(q);
    if (r && r->conf.fill == DQ_FILL_KEEP && !r->conf.drop_incomplete)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "writer %s: missing packets of reorder %s keep earlier data, which readers of the file "
            "can't tell from samples; hint: fill = \"zero\"",
            writer, q->conf.name);
    return dqi_recording_check(writer, c, q, diag);
}

const dqi_format dqi_format_dada = {
    .about =
        {.kind = "dada", .choice = "", .suffix = ".dada", .options = "header samples", .aggregates = true},
    .size = sizeof(text_file),
    .check = text_check,
    .header_bytes = text_header_bytes,
    .bytes_of = dada_bytes_of,
    .open = dada_open,
    .fits = dada_fits,
    .add = dada_add,
    .close = text_close,
};

const dqi_format dqi_format_guppi = {
    .about =
        {.kind = "guppi", .choice = "", .suffix = ".raw", .options = "header samples", .aggregates = true},
    .size = sizeof(text_file),
    .check = text_check,
    .bytes_of = guppi_bytes_of,
    .open = text_open,
    .fits = guppi_fits,
    .add = guppi_add,
    .close = text_close,
};
