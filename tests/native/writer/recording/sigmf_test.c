// sigmf_test.c: SigMF recordings: what the metadata file lists of jumps, gaps and times, also after a full
// disk and a rotation, and that an earlier recording stays.
#include "writer_files_rig.h"

#include "writer/recording/sigmf_meta.h"

#include <sys/mount.h>
#include <sys/stat.h>

static dq_writer_conf sigmf_conf(const rig *r) {
    dq_writer_conf c = writer_conf(r);
    c.kind = DQ_WRITE_SIGMF;
    c.sample_bytes = 4;
    snprintf(c.text, sizeof c.text, "\"core:datatype\":\"ci16_le\"");
    return c;
}

// The text of a file, which the next call overwrites.
static const char *text_of(const rig *r, const char *name) {
    static char text[64 << 10];
    size_t n = 0;
    uint8_t *p = slurp(rig_path(r, name), &n);
    must(p && n < sizeof text, name);
    memcpy(text, p, n);
    text[n] = 0;
    free(p);
    return text;
}

static bool is_there(const rig *r, const char *name) { return access(rig_path(r, name), F_OK) == 0; }

// Blocks 256, 257 and 259 of 6000 bytes, which are 1500 samples; cells of 500 bytes are 125 samples.
static void jumps_and_gaps(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    dq_writer_conf c = sigmf_conf(&r);
    snprintf(c.capture, sizeof c.capture, "\"core:frequency\":7");
    dq_stage *st = new_writer(&r, &c);
    DQ_EQ_STR(text_of(&r, "t.sigmf-meta"),
              "{\"global\":{\"core:datatype\":\"ci16_le\",\"core:offset\":0},\n"
              "\"captures\":[{\"core:sample_start\":0,\"core:frequency\":7}],\n\"annotations\":[]}\n");
    dqi_node node = {.stage = st};
    const uint64_t whole = 0xfff, holes = 0x7ff & ~UINT64_C(0x180), front = 0xffe;
    dq_aggregate a[3];
    put_batch(st, &node, batch_of(&r, SLOTS, 0, &holes, &a[0])); // cells 7, 8 and 11 are missing
    put_batch(st, &node, batch_of(&r, SLOTS, 1, &front, &a[1])); // cell 0 continues the gap
    dq_burst *b = batch_of(&r, SLOTS, 3, &whole, &a[2]);
    a[2].present_cells = CELLS;
    a[2].first_ns = INT64_C(1700000000123456789);
    put_batch(st, &node, b);
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 3);
    uint64_t packets;
    DQ_EQ(check_list(st, &packets), 1);
    DQ_EQ_STR(text_of(&r, "t.sigmf-meta"),
              "{\"global\":{\"core:datatype\":\"ci16_le\",\"core:offset\":0},\n"
              "\"captures\":[{\"core:sample_start\":0,\"core:global_index\":384000,\"core:datetime\":"
              "\"1970-01-01T00:00:00.000000005Z\",\"core:frequency\":7},\n"
              "{\"core:sample_start\":3000,\"core:global_index\":388500,\"core:datetime\":"
              "\"2023-11-14T22:13:20.123456789Z\",\"core:frequency\":7}],\n"
              "\"annotations\":[{\"core:sample_start\":875,\"core:sample_count\":250,\"core:label\":\"gap\","
              "\"core:comment\":\"missing packets\"},\n"
              "{\"core:sample_start\":1375,\"core:sample_count\":250,\"core:label\":\"gap\","
              "\"core:comment\":\"missing packets\"}]}\n");
    DQ_CHECK(!is_there(&r, "t.sigmf-meta.new"));
    rig_close(&r);
}

// Cells of 500 bytes begin and end within samples of 8 bytes, which are missing if a part of them is.
static void parts_of_samples_are_missing(void) {
    rig r;
    rig_open(&r, true, 1, 64, 8192);
    dq_writer_conf c = sigmf_conf(&r);
    c.sample_bytes = 8;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    const uint64_t holes = 0xfff & ~UINT64_C(0x9);
    dq_aggregate a;
    put_batch(st, &node, batch_of(&r, SLOTS, 0, &holes, &a)); // cells 0 and 3: bytes 0 to 499, 1500 to 1999
    st->ops->finish(st);
    const char *text = text_of(&r, "t.sigmf-meta");
    CHECK_TEXT(text, "[{\"core:sample_start\":0,\"core:sample_count\":63,");
    CHECK_TEXT(text, "{\"core:sample_start\":187,\"core:sample_count\":63,");
    rig_close(&r);
}

// Packets of 100 bytes without the first 20 are 20 samples; others must be whole samples, too.
static void packets_are_whole_samples(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = sigmf_conf(&r);
    c.packet_data_offset = 20;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push_numbered(&r, st, &node, 0, 2);
    push(st, &node, burst_of(&r, 1, 98, 2));
    dqi_stage_poll(st);
    push_numbered(&r, st, &node, 3, 1);
    st->ops->finish(st);
    dq_line l = balanced(st, &node, 1);
    DQ_EQ(l.out, 3);
    DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 1);
    check_error(st, "do not consist of whole samples; hint: set packet_data_offset");
    size_t n = 0;
    free(slurp(rig_path(&r, "t.sigmf-data"), &n));
    DQ_EQ(n, 3 * 80);
    CHECK_TEXT(
        text_of(&r, "t.sigmf-meta"),
        "\"captures\":[{\"core:sample_start\":0,\"core:datetime\":\"1970-01-01T00:00:00.000000001Z\"}]");
    rig_close(&r);
}

// Each file's samples continue those of the one before; the oldest goes with its metadata.
static void rotation(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    put_file(rig_path(&r, "t_000004.sigmf-meta"), "of another recording");
    dq_writer_conf c = sigmf_conf(&r);
    c.rotate_bytes = 200;
    c.quota = 600;
    c.delete_oldest = true;
    dq_stage *st = new_writer(&r, &c);
    put_file(rig_path(&r, "t_000006.sigmf-meta"), "of a later one"); // its name is passed over
    dqi_node node = {.stage = st};
    push_numbered(&r, st, &node, 0, 10);
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 10);
    DQ_CHECK(!is_there(&r, "t_000005.sigmf-data") && !is_there(&r, "t_000005.sigmf-meta"));
    CHECK_TEXT(text_of(&r, "t_000010.sigmf-meta"),
               "\"core:offset\":200},\n\"captures\":[{\"core:sample_start\":200,");
    DQ_EQ_STR(text_of(&r, "t_000004.sigmf-meta"), "of another recording");
    DQ_EQ_STR(text_of(&r, "t_000006.sigmf-meta"), "of a later one");
    DQ_CHECK(!is_there(&r, "t_000006.sigmf-data"));
    rig_close(&r);
}

static void earlier_recordings_stay(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    put_file(rig_path(&r, "t.sigmf-meta"), "its data were moved");
    dq_writer_conf c = sigmf_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    st->ops->finish(st);
    DQ_EQ_STR(text_of(&r, "t.sigmf-meta"), "its data were moved");
    DQ_CHECK(is_there(&r, "t_000000.sigmf-data") && is_there(&r, "t_000000.sigmf-meta"));
    c.overwrite = true;
    dq_diag diag;
    must(dq_stage_writer(r.s, "again", &c, &st, &diag) == DQ_OK && st->ops->start(st, &diag) == DQ_OK,
         "again");
    st->ops->finish(st);
    CHECK_TEXT(text_of(&r, "t.sigmf-meta"), "ci16_le");
    rig_close(&r);
}

// What a failed write removed from the data is not listed, and what follows is a capture of its own.
static void cut_lists(void) {
    dqi_sigmf_meta m = {.global = "\"a:b\":1", .members = ""};
    for (uint64_t k = 0; k < 40; k++) {
        dqi_sigmf_meta_capture(&m, &(dqi_sigmf_capture){.start = 100 * k, .time_ns = DQ_NO_TIME});
        dqi_sigmf_meta_gap(&m, 100 * k + 50, 100 * k + 60);
    }
    dqi_sigmf_meta_cut(&m, 1155);
    DQ_EQ(m.n_captures, 12);
    DQ_EQ(m.n_gaps, 12);
    DQ_EQ(m.gaps[11].end, 1155);
    dqi_sigmf_meta_cut(&m, 0);
    DQ_CHECK(m.n_captures == 0 && m.n_gaps == 0);
    dqi_sigmf_meta_free(&m);
}

// A list that is full: the last annotation covers what it does not list, and counts it.
static void full_lists(void) {
    rig r;
    rig_open(&r, true, 1, 8, 64);
    dqi_sigmf_meta m = {.global = "\"a:b\":1", .members = ""};
    snprintf(m.path, sizeof m.path, "%s", rig_path(&r, "x.sigmf-meta"));
    for (uint64_t k = 0; k < DQI_SIGMF_LISTED + 5; k++)
        dqi_sigmf_meta_gap(&m, 10 * k, 10 * k + 3);
    DQ_EQ(dqi_sigmf_meta_write(&m), 0);
    size_t n = 0;
    uint8_t *p = slurp(m.path, &n);
    must(p && n > 300, "meta");
    char tail[300];
    snprintf(tail, sizeof tail, "%.*s", 299, (const char *)p + n - 299);
    CHECK_TEXT(
        tail,
        "{\"core:sample_start\":1000000,\"core:sample_count\":43,\"core:label\":\"gap\",\"core:comment\":"
        "\"5 gaps and jumps in these samples are not listed\"}]}\n");
    free(p);
    dqi_sigmf_meta_free(&m);
    snprintf(m.path, sizeof m.path, "%s/none/x", r.dir);
    m.global = m.members = "";
    DQ_EQ(dqi_sigmf_meta_write(&m), -ENOENT);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(jumps_and_gaps);
    DQ_RUN(parts_of_samples_are_missing);
    DQ_RUN(packets_are_whole_samples);
    DQ_RUN(rotation);
    DQ_RUN(earlier_recordings_stay);
    DQ_RUN(cut_lists);
    DQ_RUN(full_lists);
    return dq_done();
}
