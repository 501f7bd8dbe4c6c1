// writer_touched_test.c: what another process does to a file that is being written is noticed.
#include "writer_files_rig.h"

enum touch { NOTHING, CUT, EMPTIED, LONGER, RENAMED, REPLACED, UNLINKED };

static void touch_file(const rig *r, enum touch how) {
    char path[300], other[300];
    snprintf(path, sizeof path, "%s", rig_path(r, "t.pcap"));
    snprintf(other, sizeof other, "%s", rig_path(r, "other"));
    switch (how) {
    case NOTHING:
        return;
    case CUT:
        must(truncate(path, 24 + RECORD + 1) == 0, "truncate");
        return;
    case EMPTIED:
        must(truncate(path, 0) == 0, "truncate");
        return;
    case LONGER:
        must(truncate(path, 1 << 20) == 0, "truncate");
        return;
    case RENAMED:
        must(rename(path, other) == 0, "rename");
        return;
    case REPLACED:
        put_file(other, "another's");
        must(rename(other, path) == 0, "rename");
        return;
    case UNLINKED:
        must(unlink(path) == 0, "unlink");
        return;
    }
}

// What is done to a file before its end is noticed, whether more is written to it afterwards or not, on the
// writer's thread or not, and none of its packets count as written.
static void touched_files_are_noticed(void) {
    static const struct {
        enum touch how;
        const char *want;
    } cases[] = {
        {NOTHING, ""},
        {CUT, "/t.pcap: something else changed its length"},
        {EMPTIED, "/t.pcap: something else changed its length"},
        {LONGER, "/t.pcap: something else changed its length"},
        {RENAMED, "/t.pcap: the file was removed while writing"},
        {REPLACED, "/t.pcap: the file was removed while writing"},
        {UNLINKED, "/t.pcap: the file was removed while writing"},
    };
    for (size_t k = 0; k < 4 * sizeof cases / sizeof *cases; k++) {
        const size_t i = k / 4, more = k % 2;
        rig r;
        rig_open(&r, k & 2, 1, 64, 256);
        dq_writer_conf c = writer_conf(&r);
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        push_numbered(&r, st, &node, 0, 5);
        while (account(st, &node, 1).held > 0) {
            dq_advance(r.s, dq_now(r.s) + DQI_WRITER_LAG_NS);
            k & 2 ? (void)dqi_stage_poll(st) : (void)sched_yield();
        }
        touch_file(&r, cases[i].how);
        if (more) push_numbered(&r, st, &node, 5, 2);
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        uint64_t n = 5 + 2 * more;
        DQ_EQ(l.out, cases[i].how == NOTHING ? n : 0);
        DQ_EQ(l.out_bytes, l.out * LEN);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], n - l.out);
        check_error(st, cases[i].want);
        dq_writer_file f;
        DQ_CHECK(dq_writer_file_read(st, 0, &f) && f.closed && f.packets == l.out);
        DQ_EQ(l.extra[DQ_EXTRA_FILE_BYTES], f.bytes);
        if (cases[i].how == CUT || cases[i].how == EMPTIED) { // no zeros were put in
            capture cap = capture_read(rig_path(&r, "t.pcap"));
            DQ_EQ(cap.n, cases[i].how == CUT);
            capture_free(&cap);
        }
        rig_close(&r);
    }
}

// A file of that name that isn't the writer's any more: one that took its place while it has another link.
static void replaced_files_with_another_link_are_noticed(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push_numbered(&r, st, &node, 0, 5);
    touch_file(&r, RENAMED);
    put_file(rig_path(&r, "t.pcap"), "another's");
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR], 5);
    check_error(st, "/t.pcap: another file took its name");
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(touched_files_are_noticed);
    DQ_RUN(replaced_files_with_another_link_are_noticed);
    return dq_done();
}
