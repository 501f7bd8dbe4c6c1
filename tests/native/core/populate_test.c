// populate_test.c: which memory is there before its first use, by the kernel's own account (mincore).
#include "bed.h"
#include "core/populate.h"
#include "pipeline/session.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uint64_t)4096)

// How many of the pages are there.
static uint64_t resident(void *p, uint64_t bytes) {
    uint64_t n = bytes / PAGE, found = 0;
    unsigned char *in = malloc(n);
    DQ_CHECK(in != NULL && mincore(p, bytes, in) == 0);
    for (uint64_t k = 0; in && k < n; k++)
        found += in[k] & 1;
    free(in);
    return found;
}

// More than one thread's share, and an odd rest.
static void memory(void) {
    const uint64_t bytes = (130u << 20) + 3 * PAGE;
    int fd = memfd_create("test", MFD_CLOEXEC);
    DQ_CHECK(fd >= 0 && ftruncate(fd, (off_t)(bytes + PAGE)) == 0);
    uint8_t *p = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DQ_CHECK(p != MAP_FAILED);
    DQ_EQ(resident(p, bytes + PAGE), 0);
    DQ_EQ(dqi_populate(p, bytes), 0);
    DQ_EQ(resident(p, bytes), bytes / PAGE);
    DQ_EQ(resident(p + bytes, PAGE), 0); // and no more than was asked for
    DQ_EQ(dqi_populate(p, 0), 0);
    DQ_EQ(munmap(p, bytes + PAGE), 0);
    close(fd);
}

// Pages that are not to be had are reported, where a packet would end the process by SIGBUS.
static void none(void) {
    int fd = memfd_create("test", MFD_CLOEXEC);
    DQ_CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
    uint8_t *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    DQ_CHECK(p != MAP_FAILED);
    DQ_EQ(dqi_populate(p, 4 * PAGE), -EFAULT);
    DQ_EQ(munmap(p, 4 * PAGE), 0);
    close(fd);
}

// The share of an open session's memory that is there, in percent.
static uint64_t there(const char *engine, int proto) {
    dq_session_conf c = {.rx_meta_buffers = 4, .tx_meta_buffers = 4};
    dq_session *s;
    dq_diag d = {{0}};
    bed_must(dq_session_new(&c, &s, &d), &d, "session");
    dq_region *r = bed_region(s, "r", 4096, 2000);
    dq_iface_conf ic = {.name = "port", .socket = {.proto = proto, .server = 1}};
    snprintf(ic.engine, sizeof ic.engine, "%s", engine);
    snprintf(ic.socket.local_host, sizeof ic.socket.local_host, "127.0.0.1");
    dq_iface *i;
    bed_must(dq_iface_add(s, &ic, &i, &d), &d, "interface");
    dq_queue_conf qc = {
        .name = "q", .dir = DQ_RX, .batch_size = 32, .core = -1, .n_regions = 1, .regions = {r}};
    dq_queue *q;
    bed_must(dq_queue_add(i, &qc, &q, &d), &d, "queue");
    bed_must(dq_session_open(s, &d), &d, "open");
    uint64_t share = 100 * resident(s->core.base, s->core.small_end) / (s->core.small_end / PAGE);
    dq_session_close(s);
    return share;
}

// What comes from outside and does not wait finds its memory; what waits makes no session slow to open.
static void sessions(void) {
    DQ_EQ(there("socket", DQ_PROTO_UDP), 100);
    DQ_CHECK(there("socket", DQ_PROTO_TCP) < 10);
    DQ_CHECK(there("loop", DQ_PROTO_NONE) < 10);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (dqi_populate(page, PAGE) != 0 || resident(page, PAGE) != 1)
        DQ_SKIP("the kernel has no MADV_POPULATE_WRITE");
    DQ_RUN(memory);
    DQ_RUN(none);
    DQ_RUN(sessions);
    return dq_done();
}
