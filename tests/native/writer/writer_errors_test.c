// writer_errors_test.c: what happens when files cannot be written: it is refused, or counted and reported,
// and what is in a file is whole.
#include "writer_rig.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void refused_configurations(void) {
    static const struct {
        const char *name, *dir, *prefix;
        uint32_t snaplen;
        const char *want;
    } cases[] = {
        {"no folder", "", "t", 0, "writer disk: the folder's name is empty"},
        {"no prefix", "/", "", 0, "writer disk: prefix \"\": must be the start of a file's name"},
        {"folder in prefix", "/", "a/b", 0,
         "writer disk: prefix \"a/b\": must be the start of a file's name"},
        {"snaplen", "/", "t", 262145,
         "writer disk: snaplen 262145: readers of pcap files take at most 262144"},
    };
    rig r;
    rig_open(&r, true, 1, 4, 64);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dq_writer_conf c = {.n_dirs = 1, .snaplen = cases[k].snaplen};
        snprintf(c.dirs[0], sizeof c.dirs[0], "%s", cases[k].dir);
        snprintf(c.prefix, sizeof c.prefix, "%s", cases[k].prefix);
        dq_stage *st = NULL;
        dq_diag diag = {0};
        DQ_EQ(dq_stage_writer(r.s, "disk", &c, &st, &diag), DQ_INVALID_PARAMETER);
        CHECK_TEXT(diag.text, cases[k].want);
    }
    rig_close(&r);
}

static void refused_starts(void) {
    static const struct {
        const char *name, *dir, *want;
        int raw, err;
    } cases[] = {
        {"no such folder", "none", "none: there is none; hint: mkdir -p ", 0, ENOENT},
        {"no such folder, raw", "none", "none: there is none; hint: mkdir -p ", 1, ENOENT},
        {"a file", "file", "file: it is not a folder", 0, ENOTDIR},
        {"in use", "used", "used/t.pcap: another writer has this file open", 0, EWOULDBLOCK},
        {"full", "full", "full/t.pcap: no space left on device", 0, ENOSPC},
        {"a pipe", "pipe", "pipe/t.pcap: it is a pipe without a reader", 0, ENXIO},
    };
    rig r;
    rig_open(&r, false, 1, 4, 64);
    must(mkdir(rig_path(&r, "used"), 0755) == 0 && mkdir(rig_path(&r, "full"), 0755) == 0, "mkdir");
    must(symlink("/dev/full", rig_path(&r, "full/t.pcap")) == 0, "symlink");
    must(mkdir(rig_path(&r, "pipe"), 0755) == 0 && mkfifo(rig_path(&r, "pipe/t.pcap"), 0644) == 0, "mkfifo");
    must(close(open(rig_path(&r, "file"), O_CREAT | O_WRONLY, 0644)) == 0, "file");
    dq_writer_conf c = writer_conf(&r);
    snprintf(c.dirs[0], sizeof c.dirs[0], "%s", rig_path(&r, "used"));
    dq_stage *first = new_writer(&r, &c);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char name[16];
        snprintf(name, sizeof name, "w%zu", k);
        snprintf(c.dirs[0], sizeof c.dirs[0], "%s", rig_path(&r, cases[k].dir));
        c.kind = cases[k].raw ? DQ_WRITE_RAW_PACKETS : DQ_WRITE_PCAP;
        c.overwrite = cases[k].err == EWOULDBLOCK; // else its file would get a number
        dq_stage *st = NULL;
        dq_diag diag = {0};
        DQ_EQ(dq_stage_writer(r.s, name, &c, &st, &diag), DQ_OK);
        DQ_EQ(st->ops->start(st, &diag), DQ_ESYS - cases[k].err);
        CHECK_TEXT(diag.text, cases[k].want);
        dqi_node node = {.stage = st};
        push(st, &node, burst_of(&r, 1, 10, 0)); // a session that starts all the same loses nothing silently
        st->ops->finish(st);
        DQ_EQ(balanced(st, &node, 1).dropped[DQ_DROP_STOPPED], 1);
    }
    first->ops->finish(first);
    remove_folder(rig_path(&r, "used"));
    remove_folder(rig_path(&r, "full"));
    remove_folder(rig_path(&r, "pipe"));
    rig_close(&r);
}

// A pipe whose reader stands still, or goes: the end comes all the same, and what did not fit is counted.
static void pipe_reader_fails(void) {
    enum { BURSTS = 200, PACKETS = 16 };
    signal(SIGPIPE, SIG_IGN); // as the host does
    for (int goes = 0; goes < 2; goes++) {
        rig r;
        rig_open(&r, true, 1, 4096, 2000);
        dq_writer_conf c = writer_conf(&r);
        must(mkfifo(rig_path(&r, "t.pcap"), 0644) == 0, "mkfifo");
        int reader = open(rig_path(&r, "t.pcap"), O_RDONLY | O_NONBLOCK);
        dq_stage *st = new_writer(&r, &c);
        if (goes) close(reader);
        dqi_node node = {.stage = st};
        for (int k = 0; k < BURSTS; k++)
            push(st, &node, burst_of(&r, PACKETS, 1000, 0));
        st->ops->finish(st);
        DQ_CHECK(balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR] > 0);
        char text[512];
        dq_writer_error(st, text, sizeof text);
        CHECK_TEXT(text, goes ? "the pipe's reader has ended" : "the pipe's reader stands still");
        if (!goes) close(reader);
        rig_close(&r);
    }
}

// The file's end is whole and its packets are those that count as out, in whichever call the error shows.
static void file_too_large(void) {
    rig r;
    rig_open(&r, true, 1, 4096, 2000);
    dq_writer_conf c = writer_conf(&r);
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    limit = (struct rlimit){.rlim_cur = 3000000, .rlim_max = old.rlim_max};
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < 100; k++) {
        push(st, &node, burst_of(&r, 40, 1000, k * 40));
        dqi_stage_poll(st);
        balanced(st, &node, 1);
    }
    st->ops->finish(st);
    setrlimit(RLIMIT_FSIZE, &old);
    dq_line l = balanced(st, &node, 1);
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, (3000000 - 24) / 1016);
    DQ_EQ(l.out, cap.n);
    DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 4000 - cap.n);
    DQ_EQ(l.extra[DQ_EXTRA_FILE_BYTES], cap.size);
    check_error(st, "/t.pcap: the file is as large as the file system or ulimit -f allows");
    capture_free(&cap);
    rig_close(&r);
}

static void removed_while_writing(void) {
    static const struct {
        const char *name;
        int raw;
        uint64_t out; // a file that was finished before the removal was written
        const char *want;
    } cases[] = {
        {"file", 0, 0, "/t.pcap: the file was removed while writing"},
        {"folder", 1, 1, "/t_1: the folder was removed while writing"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, false, 1, 64, 64);
        dq_writer_conf c = writer_conf(&r);
        c.kind = cases[k].raw ? DQ_WRITE_RAW_PACKETS : DQ_WRITE_PCAP;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        push(st, &node, burst_of(&r, 1, 10, 0));
        while (account(st, &node, 1).held > 0)
            sched_yield();
        remove_folder(r.dir);
        push(st, &node, burst_of(&r, 2, 10, 1));
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, cases[k].out);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 3 - cases[k].out);
        check_error(st, cases[k].want);
        rig_close(&r);
    }
}

// Removed after the last packet: nothing is lost by count, and the user is notified all the same.
static void removed_before_the_end(void) {
    rig r;
    rig_open(&r, true, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    must(unlink(rig_path(&r, "t.pcap")) == 0, "unlink");
    st->ops->finish(st);
    check_error(st, "/t.pcap: the file was removed while writing");
    rig_close(&r);
}

// In a child with a file system of 256 KiB of its own: fills it, makes room, and continues. Ends with 0, 77
// or 1.
static int fill_a_disk(void) {
    rig r;
    rig_open(&r, true, 1, 4096, 2000);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", r.dir, "tmpfs", 0, "size=256k") != 0) {
        rig_close(&r);
        return 77;
    }
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    int ballast = open(rig_path(&r, "ballast"), O_CREAT | O_WRONLY, 0644);
    must(ballast >= 0 && fallocate(ballast, 0, 0, 100000) == 0, "ballast");
    uint32_t k = 0;
    for (; balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR] == 0 && k < 1000; k++) {
        push(st, &node, burst_of(&r, 40, 1000, k * 40));
        dqi_stage_poll(st);
    }
    dq_line full = balanced(st, &node, 1);
    check_error(st, "/t.pcap: no space left on device; hint: free some, then writing continues");
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, full.out);
    DQ_CHECK(cap.n > 0);
    capture_free(&cap);
    DQ_EQ(ftruncate(ballast, 0), 0);
    close(ballast);
    for (int tries = 0; tries < 3000 && account(st, &node, 1).out == full.out; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        dq_advance(r.s, dq_now(r.s) + DQI_WRITER_LAG_NS);
        push(st, &node, burst_of(&r, 1, 1000, 0));
        dqi_stage_poll(st);
    }
    st->ops->finish(st);
    dq_line l = balanced(st, &node, 1);
    DQ_CHECK(l.out > full.out);
    cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, l.out);
    capture_free(&cap);
    umount(r.dir);
    rig_close(&r);
    return dq_done();
}

static int child_status(int (*fn)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        atomic_store(&dq_failures, 0); // the parent's are its own
        _exit(fn());
    }
    int status = 0;
    must(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void full_disk_and_room_again(void) {
    int status = child_status(fill_a_disk);
    if (status == 77) {
        printf("skip full_disk_and_room_again: mounting a small file system needs root\n");
        DQ_CHECK(!dq_required("root"));
    } else {
        DQ_EQ(status, 0);
    }
}

static rig killed_rig;

static int die_while_writing(void) {
    dq_writer_conf c = writer_conf(&killed_rig);
    dq_stage *st = new_writer(&killed_rig, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < 100; k++) {
        push(st, &node, burst_of(&killed_rig, 40, 1000, k * 40));
        dqi_stage_poll(st);
    }
    raise(SIGKILL);
    return 0;
}

static void killed_process_leaves_a_whole_file(void) {
    rig_open(&killed_rig, true, 1, 4096, 2000);
    DQ_EQ(child_status(die_while_writing), 128 + SIGKILL);
    capture cap = capture_read(rig_path(&killed_rig, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_CHECK(cap.n > 3000 && cap.n < 4000);
    for (uint32_t i = 0; i < cap.n; i++)
        DQ_CHECK(is_fill(cap.records[i].data, 1000, i));
    capture_free(&cap);
    rig_close(&killed_rig);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(refused_configurations);
    DQ_RUN(refused_starts);
    DQ_RUN(pipe_reader_fails);
    DQ_RUN(file_too_large);
    DQ_RUN(removed_while_writing);
    DQ_RUN(removed_before_the_end);
    DQ_RUN(full_disk_and_room_again);
    DQ_RUN(killed_process_leaves_a_whole_file);
    return dq_done();
}
