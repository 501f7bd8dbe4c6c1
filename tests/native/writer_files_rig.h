// writer_files_rig.h: for tests of a writer's files one after the other: numbered packets and batches to
// write, and a check of the writer's list against the files.
#ifndef WRITER_FILES_RIG_H
#define WRITER_FILES_RIG_H

#include "writer_rig.h"

#include "writer/crc32c.h"

enum { LEN = 100, RECORD = 16 + LEN }; // a numbered packet, and what it is in a pcap

// The checksum of a whole file, and its length.
static inline uint32_t crc_of(const char *path, uint64_t *size) {
    size_t n = 0;
    uint8_t *p = slurp(path, &n);
    must(p != NULL, path);
    uint32_t crc = dqi_crc32c(0, p, n);
    free(p);
    *size = n;
    return crc;
}

// Every file of the list is as listed; their number.
static inline uint32_t check_list(dq_stage *st, uint64_t *packets) {
    dq_writer_file f;
    uint32_t n = 0;
    for (*packets = 0; dq_writer_file_read(st, n, &f); n++) {
        DQ_CHECK(f.closed);
        if (f.deleted) {
            DQ_CHECK(access(f.path, F_OK) != 0);
            continue;
        }
        uint64_t size = 0;
        DQ_EQ(f.crc32c, crc_of(f.path, &size));
        DQ_EQ(f.bytes, size);
        *packets += f.packets;
    }
    return n;
}

// Pushes packets first .. first + n - 1, each in a burst of its own.
static inline void push_numbered(rig *r, dq_stage *st, dqi_node *node, uint32_t first, uint32_t n) {
    for (uint32_t k = first; k < first + n; k++) {
        push(st, node, burst_of(r, 1, LEN, k));
        if (dqi_virtual(r->s)) dqi_stage_poll(st); // else it has a thread
    }
}

enum { SLOTS = 6, CELLS = 12, CELL = 500 }; // a batch

// Batch `id`, of which the cells in `there` came.
static inline dq_burst *batch_of(rig *r, uint32_t slots, uint64_t id, const uint64_t *there,
                                 dq_aggregate *a) {
    static const uint64_t extra[SLOTS] = {10, 11, 12, 13, 14, 15};
    *a = (dq_aggregate){.batch_id = id,
                        .ordinal = id + 256,
                        .slots = slots,
                        .slot_bytes = CELL * CELLS / SLOTS,
                        .cells = slots * (CELLS / SLOTS),
                        .cell_bytes = CELL,
                        .dtype = DQ_DTYPE_INT16,
                        .flags = DQ_AGGREGATE_TIMEOUT,
                        .fill = DQ_FILL_KEEP,
                        .first_ns = 5,
                        .last_ns = 9,
                        .present = there,
                        .extra = extra};
    dq_burst *b = rig_burst(r, 1);
    fill_seg(b, 0, 0, a->slots * a->slot_bytes, id);
    b->aggregate = a;
    return b;
}

static inline void put_batch(dq_stage *st, dqi_node *node, dq_burst *b) {
    push(st, node, b);
    dqi_stage_poll(st);
}

// Makes a file that no writer made.
static inline void put_file(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    must(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

#endif
