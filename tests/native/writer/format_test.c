// format_test.c: the list of formats, and what its rows promise of the files.
#include "writer_rig.h"

#include "writer/format.h"

static void every_row_says_what_its_files_are(void) {
    static const int kinds[] = {DQ_WRITE_PCAP,   DQ_WRITE_RAW_PACKETS, DQ_WRITE_RAW_BURSTS, DQ_WRITE_RAW_FILE,
                                DQ_WRITE_PCAPNG, DQ_WRITE_BLOCKS,      DQ_WRITE_SIGMF,      DQ_WRITE_DADA,
                                DQ_WRITE_GUPPI,  DQ_WRITE_ZARR};
    int n = 0;
    for (const dq_format *f; (f = dq_format_of(n)) != NULL; n++) {
        const dqi_format *inner = dqi_format_of(n);
        DQ_CHECK(&inner->about == f);
        DQ_CHECK(f->kind[0] && f->choice && f->suffix && f->options);
        // Either files one after the other, with all that this takes, or one for each packet or burst.
        bool after = inner->open && inner->add && inner->bytes_of && inner->close;
        DQ_CHECK(f->each ? !after && inner->size == 0 : after && inner->size >= sizeof(dqi_buffered_file));
        for (int k = 0; k < n; k++) // what a script selects chooses one of them
            DQ_CHECK(strcmp(f->kind, dq_format_of(k)->kind) || strcmp(f->choice, dq_format_of(k)->choice));
    }
    DQ_EQ(n, sizeof kinds / sizeof *kinds);
    DQ_CHECK(dq_format_of(-1) == NULL);
    rig r;
    rig_open(&r, true, 1, 8, 64);
    dq_writer_conf c = writer_conf(&r);
    c.kind = n;
    dq_stage *st;
    dq_diag d = {{0}};
    DQ_EQ(dq_stage_writer(r.s, "w", &c, &st, &d), DQ_INVALID_PARAMETER);
    CHECK_TEXT(d.text, "writer w: there is no format 10");
    rig_close(&r);
}

// What ends a file is on nothing's account: those of its packets may be gone by then.
static void accounts_go_before_the_file(void) {
    rig r;
    rig_open(&r, true, 1, 8, 200);
    dq_writer_conf c = writer_conf(&r);
    c.kind = DQ_WRITE_PCAPNG;
    dq_stage *st = new_writer(&r, &c);
    dq_burst *b = burst_of(&r, 3, 60, 0);
    r.iface.session = r.s; // its statistics end the file
    dq_op *op = NULL;
    DQ_EQ(dq_writer_write(st, b, NULL, &op), DQ_OK);
    dq_burst_unref(b);
    dqi_stage_poll(st);
    dq_op_state state;
    dq_op_read(op, &state);
    DQ_CHECK(state.done && state.completed == 3);
    dq_op_free(op);
    st->ops->finish(st); // the sanitizer sees a mark of a freed account
    check_error(st, "");
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(every_row_says_what_its_files_are);
    DQ_RUN(accounts_go_before_the_file);
    return dq_done();
}
