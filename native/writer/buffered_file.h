// buffered_file.h: a file that grows by records, gathered in large buffers; one buffer is written while the
// next is filled.
#ifndef DQI_BUFFERED_FILE_H
#define DQI_BUFFERED_FILE_H

#include "writer/disk.h"
#include "writer/burst_op.h"
#include "writer/staging.h"

#define DQI_BUFFER_BYTES DQI_STAGING_BYTES

// One record of a buffer: where it ends, and what it holds of a packet.
typedef struct dqi_file_mark {
    uint64_t end : 24;
    uint64_t bytes : 38; // of the packet, without headers of the record
    uint64_t last : 1;   // the packet ends here
    uint64_t cut : 1;    // and was longer
    dq_op *op;           // who wants to know; NULL: nobody
} dqi_file_mark;

typedef struct dqi_file_buffer {
    uint8_t *buf;
    uint64_t base; // offset in the file of its first byte
    uint32_t used;
    uint32_t n_marks;
    dqi_file_mark *marks; // of the records that end in it and are not settled
} dqi_file_buffer;

typedef struct dqi_buffered_file dqi_buffered_file;
struct dqi_buffered_file {
    dqi_disk disk;
    dqi_file_buffer buffers[2];
    uint32_t at;             // the buffer being filled; the other one is written, or free
    uint32_t room;           // bytes of a buffer
    uint32_t clean;          // bytes at the front of the buffer being filled that are in the file already
    bool busy;               // the other buffer is under way
    uint64_t was, kept;      // resumed: bytes that were there, and those of them that stayed
    uint64_t whole;          // where the last packet ends that is whole in the file
    uint64_t packets;        // that were put into it and are there
    uint64_t packet_bytes;   // of them
    uint64_t bytes;          // with what is around them
    uint64_t turns;          // buffers handed to the disk
    uint64_t failures;       // writes that failed: what lay behind `whole` is gone
    uint64_t crc_at;         // bytes of the file that crc covers
    uint32_t crc, whole_crc; // CRC-32C up to there, and up to `whole`
    dq_op *op;               // of the records to come
    dqi_staging *staging;    // whose buffers the two are; NULL: they are the file's own
    bool landing;            // a GPU copies into the buffer being filled
    dqi_gpu_file gpu;        // the file, for what goes to it past the buffers
    dq_burst *straight;      // whose bytes are under way there; NULL: none
    bool refused;            // cuFile doesn't take the file
    char indirect[160];      // why something was copied by the host; empty: nothing that need not be
    // That is over; used: the bytes are there, and go to the disk next. NULL: nobody needs to know.
    void (*landed)(dqi_buffered_file *f, bool used);
};

// What became of the records handed in; each call adds to it, and dqi_buffered_file_disown takes away, modulo
// 2^64.
typedef struct dqi_file_tally {
    uint64_t packets, packet_bytes, cut; // that are in a file
    uint64_t lost;                       // packets that are not
    uint64_t device_lost;                // the same, as their GPU was lost
    uint64_t over_quota;                 // packets that would have gone beyond the quota
    uint64_t files, file_bytes;
    uint64_t deleted; // files
    int64_t stall_ns; // waited for the disk
} dqi_file_tally;

// Opens the file, see dqi_disk_open; overlap: writes run on a thread of their own. 0, or -errno. One thread
// at a time, as for all that follow.
int dqi_buffered_file_open(dqi_buffered_file *f, const char *path, bool overlap, dqi_disk_mode mode);
// Right after an open with DQI_DISK_KEEP: cuts the file at size, whose CRC-32C is crc, and goes on behind it.
// 0, or -errno.
int dqi_buffered_file_resume(dqi_buffered_file *f, const char *path, uint64_t size, uint32_t crc);
// From now on the file's buffers are those of s, into which a GPU can copy (dqi_buffered_file_copy). 0, or
// -errno of the write that it waited for.
int dqi_buffered_file_stage(dqi_buffered_file *f, dqi_staging *s, dqi_file_tally *tally);
// Has n bytes of segment seg of packet i of b, which lies in the GPU's memory, copied to `to`, which lies at
// dqi_buffered_file_room: they are there before the disk gets them. b is held as long.
void dqi_buffered_file_copy(dqi_buffered_file *f, dq_burst *b, uint32_t seg, uint32_t i, uint32_t from,
                            uint8_t *to, uint32_t n);
// Whether packets can go from the GPU's memory to the file past the buffers; else why is in f->indirect.
bool dqi_buffered_file_straight(dqi_buffered_file *f);
// Has n bytes at `from` in the GPU's memory written behind what was added, as a part of the record that the
// next commit ends. n, from and the file's length are multiples of DQI_GPU_PAGE, n at most DQI_SUMMED_BYTES.
// b is held until they are in the file. 0, or -errno as dqi_buffered_file_flush.
int dqi_buffered_file_put(dqi_buffered_file *f, dq_burst *b, uint64_t from, uint32_t n,
                          dqi_file_tally *tally);
// Waits for these copies. 0, or -DQI_EDEVICE: the GPU is lost, and with it all packets that are not in the
// file; nothing behind them is written.
int dqi_buffered_file_land(dqi_buffered_file *f, dqi_file_tally *tally);
// Room for n <= 512 KiB bytes; a full buffer is handed to the disk first, which waits for the one before.
// NULL with -errno in *err when that one failed: see dqi_buffered_file_flush.
uint8_t *dqi_buffered_file_room(dqi_buffered_file *f, uint32_t n, dqi_file_tally *tally, int *err);
// Takes the n bytes that now lie at dqi_buffered_file_room as the start of a record that the next commit
// ends.
void dqi_buffered_file_extend(dqi_buffered_file *f, uint32_t n);
// Adds the n bytes that now lie at dqi_buffered_file_room, or will (dqi_buffered_file_copy), as one record,
// or as its end.
void dqi_buffered_file_commit(dqi_buffered_file *f, uint32_t n, uint64_t packet_bytes, bool last, bool cut);
// Takes in what became of a buffer, if the disk is done with it; never waits. 0, or -errno as below.
int dqi_buffered_file_reap(dqi_buffered_file *f, dqi_file_tally *tally);
// Writes all that was committed. 0, or -errno: then the file ends with the last packet that fitted, all
// packets behind it are lost, and what comes next goes on from there. -ENOENT: the file was removed,
// -ETIMEDOUT: a pipe's reader stood still until after quit. Blocks.
int dqi_buffered_file_flush(dqi_buffered_file *f, dqi_file_tally *tally);
// Counts all packets of a flushed file as lost: it is no longer what was written.
void dqi_buffered_file_disown(dqi_buffered_file *f, dqi_file_tally *tally);
// Closes the file; what was not flushed is discarded. 0, or -errno as of dqi_disk_close. Fine on a closed
// file.
int dqi_buffered_file_close(dqi_buffered_file *f);
// Bytes of the file, with those that are not in it yet.
static inline uint64_t dqi_buffered_file_size(const dqi_buffered_file *f) {
    return f->buffers[f->at].base + f->buffers[f->at].used;
}
// Where packets count that err has cost.
static inline uint64_t *dqi_tally_of(dqi_file_tally *t, int err) {
    return err == -DQI_EQUOTA ? &t->over_quota : err == -DQI_EDEVICE ? &t->device_lost : &t->lost;
}
// True when something is not in the file yet.
static inline bool dqi_buffered_file_dirty(const dqi_buffered_file *f) {
    const dqi_file_buffer *b = &f->buffers[f->at];
    return f->busy || b->used > f->clean || b->n_marks > 0;
}

#endif
