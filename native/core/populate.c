#include "core/populate.h"
#include "core/dq_core.h"
#include "core/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define PIECE       (64u << 20) // bytes that a thread populates at a time
#define MAX_HELPERS 7

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 // Linux 5.14
#endif

typedef struct job {
    uint8_t *p;
    uint64_t bytes;
    _Atomic uint64_t next; // offset of the next piece to populate
    _Atomic int err;
} job;

// Populates one piece. A kernel without the advice leaves the page faults to the first use.
static int piece(uint8_t *p, uint64_t bytes) {
    while (madvise(p, bytes, MADV_POPULATE_WRITE) != 0)
        if (errno != EINTR && errno != EAGAIN) return errno == EINVAL ? 0 : -errno;
    return 0;
}

static void *work(void *arg) {
    job *j = arg;
    for (;;) {
        uint64_t at = atomic_fetch_add(&j->next, PIECE);
        if (at >= j->bytes || atomic_load(&j->err) != 0) return NULL;
        uint64_t left = j->bytes - at;
        int err = piece(j->p + at, left < PIECE ? left : PIECE);
        if (err != 0) atomic_store(&j->err, err);
    }
}

int dqi_populate(uint8_t *p, uint64_t bytes) {
    job j = {.p = p, .bytes = bytes};
    cpu_set_t cores;
    uint64_t most = sched_getaffinity(0, sizeof cores, &cores) == 0 ? (uint64_t)CPU_COUNT(&cores) - 1 : 0,
             wanted = bytes == 0 ? 0 : (bytes - 1) / PIECE;
    if (most > MAX_HELPERS) most = MAX_HELPERS;
    pthread_t helpers[MAX_HELPERS];
    uint32_t n = 0;
    while (n < most && n < wanted && dqi_thread_start(&helpers[n], NULL, work, &j) == DQ_OK)
        n++;
    work(&j);
    for (uint32_t k = 0; k < n; k++)
        pthread_join(helpers[k], NULL);
    return atomic_load(&j.err);
}
