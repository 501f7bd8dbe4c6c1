// write_op.c: accounts of bursts that scripts hand to writers.
//
// The writer's thread adds, the script's looks; whoever lets go last frees.
#include "write_op.h"
#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dq_write {
    _Atomic uint32_t refs;
    _Atomic uint32_t left; // packets that are still open
    _Atomic uint32_t completed, failed;
    _Atomic uint64_t bytes;
    _Atomic int err; // of the first failure, -errno
    bool named;
    dq_write_names names;
};

dq_write *dqi_write_new(uint32_t n, const dq_write_names *names) {
    dq_write *op = malloc(sizeof *op);
    if (!op) return NULL;
    op->named = names != NULL;
    if (names) op->names = *names;
    atomic_init(&op->refs, n > 0 ? 2 : 1);
    atomic_init(&op->left, n);
    atomic_init(&op->completed, 0);
    atomic_init(&op->failed, 0);
    atomic_init(&op->bytes, 0);
    atomic_init(&op->err, 0);
    return op;
}

const dq_write_names *dqi_write_names(const dq_write *op) {
    return op && op->named && op->names.prefix[0] ? &op->names : NULL;
}

const char *dqi_write_comment(const dq_write *op) {
    return op && op->named && op->names.comment[0] ? op->names.comment : NULL;
}

static void unref(dq_write *op) {
    if (atomic_fetch_sub(&op->refs, 1) == 1) free(op);
}

// The writer's own reference goes with its last packet.
static void settle(dq_write *op, uint32_t n) {
    if (n > 0 && atomic_fetch_sub(&op->left, n) == n) unref(op);
}

void dqi_write_ok(dq_write *op, uint32_t n, uint64_t bytes) {
    if (!op) return;
    atomic_fetch_add(&op->bytes, bytes);
    atomic_fetch_add(&op->completed, n);
    settle(op, n);
}

void dqi_write_lost(dq_write *op, uint32_t n, int err) {
    if (!op || n == 0) return;
    int none = 0;
    atomic_compare_exchange_strong(&op->err, &none, err);
    atomic_fetch_add(&op->failed, n);
    settle(op, n);
}

void dq_write_read(const dq_write *op, dq_write_state *out) {
    out->done = atomic_load(&op->left) == 0; // first: then the others are final
    out->failed = atomic_load(&op->failed);
    out->completed = atomic_load(&op->completed);
    out->bytes = atomic_load(&op->bytes);
}

void dq_write_error(const dq_write *op, char *buf, size_t len) {
    int err = atomic_load(&op->err);
    snprintf(buf, len, "%s", err != 0 ? dqi_disk_words(err) : "");
}

void dq_write_free(dq_write *op) {
    if (op) unref(op);
}
