// binding_test.c: regions in files and arrays: what fits, what is refused, and files that become shorter.
#include "bed.h"
#include "core/region.h"
#include "pipeline/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFS 64
#define SIZE 2000

static dq_session *new_session(void) {
    dq_session_conf c = {
        .virtual_clock = 1, .start_ns = BED_START_NS, .rx_meta_buffers = 4, .tx_meta_buffers = 4};
    dq_session *s;
    dq_diag d = {{0}};
    bed_must(dq_session_new(&c, &s, &d), &d, "session");
    return s;
}

// What a region of BUFS buffers needs, as dq_session_measure has it, in whole pages.
static uint64_t needed(void) {
    dq_session *s = new_session();
    dq_region *r = bed_region(s, "r", BUFS, SIZE);
    dq_diag d = {{0}};
    dq_region_info info;
    bed_must(dq_session_measure(s, &d), &d, "measure");
    dq_region_read(r, &info);
    DQ_EQ(info.bytes, (uint64_t)info.stride * BUFS);
    DQ_EQ(info.cpu, 1);
    dq_session_close(s);
    return dqi_round_up(info.bytes, dqi_page_size());
}

static int memfd(uint64_t bytes, unsigned flags) {
    int fd = memfd_create("test", MFD_CLOEXEC | flags);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) exit(1);
    return fd;
}

// A file of tmpfs, which can't be sealed.
static int unsealed(uint64_t bytes) {
    char path[] = "/dev/shm/daqiri-test-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) exit(1);
    unlink(path);
    return fd;
}

static dq_binding of_file(int fd) {
    return (dq_binding){.source = DQ_BINDING_FILE, .fd = fd, .bytes = DQ_BINDING_REST};
}

// What the buffers have is in the file, at its offset, and stays there.
static void file(void) {
    uint64_t page = dqi_page_size(), need = needed();
    int fd = memfd(need + 3 * page, 0);
    dq_session *s = new_session();
    dq_region *own = bed_region(s, "own", 4, 100), *r = bed_region(s, "r", BUFS, SIZE),
              *last = bed_region(s, "last", 4, 100);
    dq_binding b = of_file(fd);
    dq_diag d = {{0}};
    b.offset = 2 * page;
    b.bytes = need;
    bed_must(dq_region_bind(r, &b, &d), &d, "bind");
    bed_must(dq_session_open(s, &d), &d, "open");
    dq_region_info info;
    uint32_t ids[BUFS];
    dq_region_read(r, &info);
    DQ_EQ(dqi_bufs_alloc(r, ids, BUFS), BUFS);
    for (uint32_t k = 0; k < BUFS; k++)
        memset(info.base + dqi_buf_off(r, ids[k]), (int)(k + 1), SIZE);
    dq_region *const others[] = {own, last};
    for (uint32_t k = 0; k < 2; k++) { // they have memory of their own
        dq_region_info o;
        dq_region_read(others[k], &o);
        memset(o.base + o.offset, 0xff, 4 * o.stride);
    }
    for (uint32_t k = 0; k < BUFS; k++) {
        uint8_t got[SIZE];
        off_t at = (off_t)(2 * page + (ids[k] - r->first_id) * (uint64_t)info.stride);
        DQ_EQ(pread(fd, got, SIZE, at), SIZE);
        DQ_EQ(got[0], k + 1);
        DQ_EQ(got[SIZE - 1], k + 1);
    }
    uint64_t at = 0;
    struct stat a, f;
    DQ_EQ(fstat(dqi_region_file(r, &at), &a) | fstat(fd, &f), 0);
    DQ_CHECK(a.st_ino == f.st_ino && at == 2 * page);
    dqi_bufs_free(s, ids, BUFS);
    DQ_EQ(dq_session_close(s), 0);
    uint8_t got = 0;
    DQ_EQ(pread(fd, &got, 1, (off_t)(2 * page)), 1);
    DQ_CHECK(got != 0);
    close(fd);
}

// Opens a session with one bound region; returns the status.
static int attempt(dq_kind kind, const dq_binding *b, dq_diag *d) {
    dq_session *s = new_session();
    dq_region *r = bed_region_of(s, kind, "r", BUFS, SIZE);
    int err = dq_region_bind(r, b, d);
    if (err == DQ_OK) err = dq_session_open(s, d);
    dq_session_close(s);
    return err;
}

static void refused(void) {
    uint64_t page = dqi_page_size(), need = needed();
    int fd = memfd(need + page, MFD_ALLOW_SEALING), read_only = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        pipes[2];
    if (pipe(pipes) != 0) exit(1);
    int sealed = memfd(need, MFD_ALLOW_SEALING);
    if (fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE) != 0) exit(1);
    const struct {
        const char *name;
        dq_binding b;
        dq_kind kind;
        const char *words;
    } cases[] = {
        {"no bytes", {.fd = fd, .bytes = 0}, DQ_KIND_HOST, "has no bytes"},
        {"too small", {.fd = fd, .bytes = need - 1}, DQ_KIND_HOST, "64 buffers of 2048 bytes need"},
        {"misaligned",
         {.fd = fd, .offset = 64, .bytes = DQ_BINDING_REST},
         DQ_KIND_HOST,
         "is not a multiple of"},
        {"behind the end",
         {.fd = fd, .offset = 2 * page, .bytes = need},
         DQ_KIND_HOST,
         "the range ends behind"},
        {"offset behind the end",
         {.fd = fd, .offset = need + 2 * page, .bytes = 1},
         DQ_KIND_HOST,
         "ends behind"},
        {"overflow",
         {.fd = fd, .offset = page, .bytes = UINT64_MAX - 1},
         DQ_KIND_HOST,
         "the range ends behind"},
        {"closed", {.fd = 1 << 20, .bytes = need}, DQ_KIND_HOST, "descriptor 1048576: Bad file descriptor"},
        {"no file", {.fd = -1, .path = "/dev/shm/no/such", .bytes = need}, DQ_KIND_HOST, "No such file"},
        {"a pipe", {.fd = pipes[1], .bytes = need}, DQ_KIND_HOST, "is not a file with memory"},
        {"read only", {.fd = read_only, .bytes = need}, DQ_KIND_HOST, "permits no writing"},
        {"sealed", {.fd = sealed, .bytes = need}, DQ_KIND_HOST, "sealed against writing"},
        {"small pages", {.fd = fd, .bytes = need}, DQ_KIND_HUGE, "is not on huge pages"},
        {"emulated", {.fd = fd, .bytes = need}, DQ_KIND_DARK, "kind dark can't be bound"},
        {"a handle", {.source = DQ_BINDING_IPC, .fd = -1, .bytes = need}, DQ_KIND_HOST, "is GPU memory"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dq_diag d = {{0}};
        dq_case = cases[k].name;
        DQ_EQ(attempt(cases[k].kind, &cases[k].b, &d), DQ_INVALID_PARAMETER);
        DQ_CHECK(strstr(d.text, "cannot bind memory region r: ") == d.text);
        if (!strstr(d.text, cases[k].words)) dq_failed(__FILE__, __LINE__, d.text);
    }
    DQ_EQ(fcntl(fd, F_GET_SEALS), 0); // nothing that was refused has changed it
    close(fd), close(sealed), close(read_only), close(pipes[0]), close(pipes[1]);
}

static void overlapping(void) {
    uint64_t page = dqi_page_size(), need = needed();
    int fd = memfd(2 * need, 0), again = dup(fd);
    for (int apart = 0; apart < 2; apart++) {
        dq_session *s = new_session();
        dq_region *a = bed_region(s, "a", BUFS, SIZE), *b = bed_region(s, "b", BUFS, SIZE);
        dq_binding x = of_file(fd), y = of_file(again);
        dq_diag d = {{0}};
        y.offset = apart ? need : need - page;
        bed_must(dq_region_bind(a, &x, &d), &d, "bind");
        bed_must(dq_region_bind(b, &y, &d), &d, "bind");
        DQ_EQ(dq_region_bind(b, &y, &d), DQ_INVALID_PARAMETER); // twice
        DQ_EQ(dq_session_open(s, &d), apart ? DQ_OK : DQ_INVALID_PARAMETER);
        if (!apart) DQ_CHECK(strstr(d.text, "region b: its memory overlaps that of region a") != NULL);
        dq_session_close(s);
    }
    close(fd), close(again);
}

static dq_session *open_with(int fd, dq_region **r) {
    dq_session *s = new_session();
    dq_binding b = of_file(fd);
    dq_diag d = {{0}};
    *r = bed_region(s, "r", BUFS, SIZE);
    bed_must(dq_region_bind(*r, &b, &d), &d, "bind");
    bed_must(dq_session_open(s, &d), &d, "open");
    return s;
}

static void a_memfd_is_sealed(void) {
    uint64_t need = needed();
    char why[400] = "";
    for (int late = 0; late < 2; late++) {
        int fd = memfd(need, late ? MFD_ALLOW_SEALING : 0);
        dq_region *r;
        dq_session *s = open_with(fd, &r);
        DQ_EQ(ftruncate(fd, 0) == 0, !late);
        DQ_EQ(dq_region_lost(r, why, sizeof why), !late);
        dq_session_close(s);
        close(fd);
    }
}

// Threads of the session continue on private memory, and the control thread learns why.
static void a_shorter_file(void) {
    uint64_t need = needed(), page = dqi_page_size();
    int fd = unsealed(need);
    char why[400] = "";
    dq_region *r;
    dq_region_info info;
    dq_session *s = open_with(fd, &r);
    dq_region_read(r, &info);
    volatile uint8_t *p = info.base + info.offset;
    p[0] = 1;
    p[2 * page] = 2;
    DQ_CHECK(!dq_region_lost(r, why, sizeof why));
    DQ_EQ(ftruncate(fd, (off_t)page), 0);
    DQ_EQ(p[2 * page + 5], 0); // SIGBUS without the guard
    p[2 * page + 5] = 3;
    DQ_EQ(p[2 * page + 5], 3);
    DQ_EQ(p[need - 1], 0);
    DQ_EQ(p[0], 1);
    DQ_CHECK(dq_region_lost(r, why, sizeof why));
    DQ_CHECK(strstr(why, "made its file shorter: 4096 of ") || page != 4096);
    DQ_EQ(ftruncate(fd, (off_t)need), 0); // it does not come back
    DQ_CHECK(dq_region_lost(r, why, sizeof why));
    DQ_CHECK(strstr(why, "were not there when they were accessed") != NULL);
    dq_session_close(s);
    close(fd);
}

// The kernel's accesses fail with EFAULT until the loss is noticed.
static void system_calls(void) {
    uint64_t need = needed();
    int fd = unsealed(need), pipes[2];
    char why[400] = "";
    dq_region *r;
    dq_region_info info;
    dq_session *s = open_with(fd, &r);
    dq_region_read(r, &info);
    if (pipe(pipes) != 0 || write(pipes[1], "abcd", 4) != 4 || ftruncate(fd, 0) != 0) exit(1);
    DQ_CHECK(read(pipes[0], info.base + info.offset, 2) < 0 && errno == EFAULT);
    DQ_CHECK(dq_region_lost(r, why, sizeof why));
    DQ_EQ(read(pipes[0], info.base + info.offset, 2), 2);
    close(pipes[0]), close(pipes[1]), close(fd);
    dq_session_close(s);
}

// An array stays until its session is closed.
static void array(void) {
    uint64_t need = needed();
    dq_array *a;
    dq_diag d = {{0}};
    bed_must(dq_array_new("array", DQ_KIND_HOST, DQ_HOST_GPU, need, &a, &d), &d, "array");
    dq_session *s = new_session();
    dq_region *r = bed_region(s, "r", BUFS, SIZE);
    dq_binding b = {.source = DQ_BINDING_ARRAY, .fd = -1, .array = a, .bytes = DQ_BINDING_REST};
    bed_must(dq_region_bind(r, &b, &d), &d, "bind");
    bed_must(dq_session_open(s, &d), &d, "open");
    dq_region_info info;
    char got[6] = "";
    dq_region_read(r, &info);
    memcpy(info.base + info.offset + info.stride, "hello", 6);
    bed_must(dq_array_read(a, info.stride, got, sizeof got, &d), &d, "read");
    DQ_EQ_STR(got, "hello");
    dq_array_free(a); // the session has a reference
    memcpy(info.base + info.offset, "world", 6);
    DQ_EQ(memcmp(info.base + info.offset, "world", 6), 0);
    DQ_EQ(dq_session_close(s), 0);

    bed_must(dq_array_new("array", DQ_KIND_HOST, DQ_HOST_GPU, need - dqi_page_size(), &a, &d), &d, "array");
    b.array = a;
    DQ_EQ(attempt(DQ_KIND_HOST, &b, &d), DQ_INVALID_PARAMETER);
    dq_array_free(a);
}

// A shared region has a file of its own: others get it read-only, and its size can't change.
static void shared(void) {
    dq_session *s = new_session();
    dq_region *own = bed_region(s, "own", 4, 100), *r = bed_region(s, "r", BUFS, SIZE);
    dq_binding b = {.source = DQ_BINDING_OWN, .bytes = DQ_BINDING_REST};
    dq_diag d = {{0}};
    bed_must(dq_region_bind(r, &b, &d), &d, "bind");
    bed_must(dq_session_open(s, &d), &d, "open");
    DQ_EQ(dq_region_lend(own), DQ_NOT_SUPPORTED);
    int fd = dq_region_lend(r);
    DQ_EQ(fd >= 0, 1);
    struct stat st;
    DQ_EQ(fstat(fd, &st), 0);
    DQ_EQ(st.st_mode & 0777, 0400);
    DQ_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    DQ_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    DQ_EQ(mmap(NULL, dqi_page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED, 1);
    DQ_EQ(errno, EACCES);
    dq_region_info info;
    dq_region_read(r, &info);
    DQ_EQ((uint64_t)st.st_size, dqi_round_up(info.bytes, dqi_page_size()));
    uint32_t id;
    DQ_EQ(dqi_bufs_alloc(r, &id, 1), 1);
    memset(info.base + dqi_buf_off(r, id), 7, SIZE);
    uint8_t got[SIZE] = {0};
    DQ_EQ(pread(fd, got, SIZE, (off_t)(dqi_buf_off(r, id) - info.offset)), SIZE);
    DQ_EQ(got[0], 7);
    DQ_EQ(got[SIZE - 1], 7);
    dqi_bufs_free(s, &id, 1);
    dq_session_close(s);
    DQ_EQ(pread(fd, got, 1, 0), 1); // the file outlives the session
    close(fd);
}

static void a_shared_file(void) {
    int fd = dq_shared_file("headers", 5000);
    struct stat st;
    DQ_EQ(fstat(fd, &st), 0);
    DQ_EQ(st.st_size, 5000);
    DQ_EQ(ftruncate(fd, 100), -1);
    DQ_EQ(errno, EPERM);
    DQ_EQ(pwrite(fd, "x", 1, 4999), 1);
    close(fd);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(file);
    DQ_RUN(refused);
    DQ_RUN(overlapping);
    DQ_RUN(a_memfd_is_sealed);
    DQ_RUN(a_shorter_file);
    DQ_RUN(system_calls);
    DQ_RUN(array);
    DQ_RUN(shared);
    DQ_RUN(a_shared_file);
    return dq_done();
}
