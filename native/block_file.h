// block_file.h: a file that grows by records, gathered in large blocks; one block is written while the next
// is filled.
#ifndef DQI_BLOCK_FILE_H
#define DQI_BLOCK_FILE_H

#include "disk.h"
#include "write_op.h"

#define DQI_BLOCK_BYTES (4u << 20)

// One record of a block: where it ends, and what it holds of a packet.
typedef struct dqi_block_mark {
    uint64_t end : 24;
    uint64_t bytes : 38; // of the packet, without headers of the record
    uint64_t last : 1;   // the packet ends here
    uint64_t cut : 1;    // and was longer
    dq_write *op;        // who wants to know; NULL: nobody
} dqi_block_mark;

typedef struct dqi_block {
    uint8_t *buf;
    uint64_t base; // offset in the file of its first byte
    uint32_t used;
    uint32_t n_marks, cap_marks;
    dqi_block_mark *marks; // of the records that end in it and are not settled
} dqi_block;

typedef struct dqi_block_file {
    dqi_disk disk;
    dqi_block blocks[2];
    uint32_t at;             // the block being filled; the other one is written, or free
    uint32_t room;           // bytes of a block
    uint32_t clean;          // bytes at the front of the block being filled that are in the file already
    bool busy;               // the other block is under way
    uint64_t whole;          // where the last packet ends that is whole in the file
    uint64_t packets;        // that were put into it and are there
    uint64_t packet_bytes;   // of them
    uint64_t bytes;          // with what is around them
    uint64_t turns;          // blocks handed to the disk
    uint64_t failures;       // writes that failed: what lay behind `whole` is gone
    uint64_t crc_at;         // bytes of the file that crc covers
    uint32_t crc, whole_crc; // CRC-32C up to there, and up to `whole`
    dq_write *op;            // of the records to come
} dqi_block_file;

// What became of the records handed in; each call adds to it, and dqi_block_disown takes away, modulo 2^64.
typedef struct dqi_file_tally {
    uint64_t packets, packet_bytes, cut; // that are in a file
    uint64_t lost;                       // packets that are not
    uint64_t over_quota;                 // packets that would have gone beyond the quota
    uint64_t files, file_bytes;
    uint64_t deleted; // files
    int64_t stall_ns; // waited for the disk
} dqi_file_tally;

// Opens the file, see dqi_disk_open; overlap: writes run on a thread of their own. 0, or -errno. One thread
// at a time, as for all that follow.
int dqi_block_open(dqi_block_file *f, const char *path, bool overlap, dqi_disk_mode mode);
// Right after an open with DQI_DISK_KEEP: cuts the file at size, whose CRC-32C is crc, and goes on behind it.
// 0, or -errno.
int dqi_block_resume(dqi_block_file *f, const char *path, uint64_t size, uint32_t crc);
// Room for n <= 512 KiB bytes; a full block is handed to the disk first, which waits for the one before. NULL
// with -errno in *err when that one failed: see dqi_block_flush.
uint8_t *dqi_block_room(dqi_block_file *f, uint32_t n, dqi_file_tally *tally, int *err);
// Takes the n bytes that now lie at dqi_block_room as the start of a record that the next commit ends.
void dqi_block_extend(dqi_block_file *f, uint32_t n);
// Adds the n bytes that now lie at dqi_block_room as one record, or as its end.
void dqi_block_commit(dqi_block_file *f, uint32_t n, uint64_t packet_bytes, bool last, bool cut);
// Takes in what became of a block, if the disk is done with it; never waits. 0, or -errno as below.
int dqi_block_reap(dqi_block_file *f, dqi_file_tally *tally);
// Writes all that was committed. 0, or -errno: then the file ends with the last packet that fitted, all
// packets behind it are lost, and what comes next goes on from there. -ENOENT: the file was removed,
// -ETIMEDOUT: a pipe's reader stood still until after quit. Blocks.
int dqi_block_flush(dqi_block_file *f, dqi_file_tally *tally);
// Counts all packets of a flushed file as lost: it is no longer what was written.
void dqi_block_disown(dqi_block_file *f, dqi_file_tally *tally);
// Closes the file; what was not flushed is discarded. 0, or -errno as of dqi_disk_close. Fine on a closed
// file.
int dqi_block_close(dqi_block_file *f);
// Bytes of the file, with those that are not in it yet.
static inline uint64_t dqi_block_size(const dqi_block_file *f) {
    return f->blocks[f->at].base + f->blocks[f->at].used;
}
// True when something is not in the file yet.
static inline bool dqi_block_dirty(const dqi_block_file *f) {
    const dqi_block *b = &f->blocks[f->at];
    return f->busy || b->used > f->clean || b->n_marks > 0;
}

#endif
