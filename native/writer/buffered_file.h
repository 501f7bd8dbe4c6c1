// buffered_file.h: an append-only file of records, collected in two large buffers: one is written while the
// other is filled.
#ifndef DQI_BUFFERED_FILE_H
#define DQI_BUFFERED_FILE_H

#include "writer/burst_op.h"
#include "writer/disk.h"
#include "writer/staging.h"

#define DQI_BUFFER_BYTES DQI_STAGING_BYTES

// A record in a buffer: its end, and its share of a packet.
typedef struct dqi_file_mark {
    uint64_t end : 24;
    uint64_t bytes : 38; // of the packet, without record headers
    uint64_t last : 1;   // last record of the packet
    uint64_t cut : 1;    // the packet was truncated
    dq_op *op;           // operation to settle; NULL: none
} dqi_file_mark;

typedef struct dqi_file_buffer {
    uint8_t *buf;
    uint64_t base; // file offset of its first byte
    uint32_t used;
    uint32_t n_marks;
    dqi_file_mark *marks; // of unsettled records that end in it
} dqi_file_buffer;

typedef struct dqi_buffered_file dqi_buffered_file;
struct dqi_buffered_file {
    dqi_disk disk;
    dqi_file_buffer buffers[2];
    uint32_t at;             // the buffer being filled; the other is being written or free
    uint32_t room;           // bytes per buffer
    uint32_t clean;          // bytes at the front of the buffer being filled that are already in the file
    bool busy;               // the other buffer is being written
    uint64_t was, kept;      // resumed: previous size, and bytes of it kept
    uint64_t whole;          // end of the last complete packet in the file
    uint64_t packets;        // written by this run
    uint64_t packet_bytes;   // their bytes
    uint64_t bytes;          // with record headers
    uint64_t turns;          // buffers submitted to the disk
    uint64_t failures;       // failed writes: data after `whole` were lost
    uint64_t crc_at;         // file bytes covered by crc
    uint32_t crc, whole_crc; // CRC-32C up to crc_at, and up to `whole`
    dq_op *op;               // operation of the following records
    dqi_staging *staging;    // owner of the two buffers; NULL: owned by the file
    bool landing;            // a GPU is copying into the buffer being filled
    dqi_gpu_file gpu;        // handle for direct writes from a GPU
    dq_burst *straight;      // source of the direct write in progress; NULL: none
    bool refused;            // cuFile rejects the file
    char indirect[160];      // why the host copied data; empty: it did not, or had to
    // Called when the copies end; used: the data are complete and will be written. NULL: none.
    void (*landed)(dqi_buffered_file *f, bool used);
};

// Outcome of submitted records; calls add to it, dqi_buffered_file_disown subtracts, modulo 2^64.
typedef struct dqi_file_tally {
    uint64_t packets, packet_bytes, cut; // in a file
    uint64_t lost;                       // not in a file
    uint64_t device_lost;                // lost with their GPU
    uint64_t over_quota;                 // rejected by the quota
    uint64_t files, file_bytes;
    uint64_t deleted; // files
    int64_t stall_ns; // waited for the disk
} dqi_file_tally;

// Opens the file as dqi_disk_open; overlap: writes run on a separate thread. 0, or -errno. One thread at a
// time, as for the following functions.
int dqi_buffered_file_open(dqi_buffered_file *f, const char *path, bool overlap, dqi_disk_mode mode);
// After an open with DQI_DISK_KEEP: cuts the file to size, whose CRC-32C is crc, and appends from there. 0,
// or -errno.
int dqi_buffered_file_resume(dqi_buffered_file *f, const char *path, uint64_t size, uint32_t crc);
// Replaces the file's buffers by those of s, into which a GPU can copy (dqi_buffered_file_copy). 0, or -errno
// of the write it waited for.
int dqi_buffered_file_stage(dqi_buffered_file *f, dqi_staging *s, dqi_file_tally *tally);
// Copies n bytes of segment seg of packet i of b from the GPU's memory to `to`, in dqi_buffered_file_room;
// complete before the buffer is written. b is referenced until then.
void dqi_buffered_file_copy(dqi_buffered_file *f, dq_burst *b, uint32_t seg, uint32_t i, uint32_t from,
                            uint8_t *to, uint32_t n);
// Whether packets can be written directly from the GPU's memory; if not, f->indirect has the reason.
bool dqi_buffered_file_straight(dqi_buffered_file *f);
// Writes n bytes at `from` in the GPU's memory after the added data, as part of the record ended by the next
// commit. n, from and the file's length are multiples of DQI_GPU_PAGE, n at most DQI_SUMMED_BYTES. b is
// referenced until the bytes are in the file. 0, or -errno as dqi_buffered_file_flush.
int dqi_buffered_file_put(dqi_buffered_file *f, dq_burst *b, uint64_t from, uint32_t n,
                          dqi_file_tally *tally);
// Waits for these copies. 0, or -DQI_EDEVICE: the GPU is lost, and with it all packets not in the file.
int dqi_buffered_file_land(dqi_buffered_file *f, dqi_file_tally *tally);
// Returns space for n <= 512 KiB bytes; a full buffer is first submitted to the disk, after the previous one.
// NULL with -errno in *err if that write failed: see dqi_buffered_file_flush.
uint8_t *dqi_buffered_file_room(dqi_buffered_file *f, uint32_t n, dqi_file_tally *tally, int *err);
// Adds the n bytes written to dqi_buffered_file_room as the start of a record that the next commit ends.
void dqi_buffered_file_extend(dqi_buffered_file *f, uint32_t n);
// Adds n bytes at dqi_buffered_file_room, present or being copied (dqi_buffered_file_copy), as a record, or
// as its end.
void dqi_buffered_file_commit(dqi_buffered_file *f, uint32_t n, uint64_t packet_bytes, bool last, bool cut);
// Settles a buffer if its write has completed; never waits. 0, or -errno as below.
int dqi_buffered_file_reap(dqi_buffered_file *f, dqi_file_tally *tally);
// Writes all committed records. 0, or -errno: the file then ends with the last packet that fitted, all later
// packets are lost, and following ones are appended there. -ENOENT: the file was removed, -ETIMEDOUT: the
// reader of a pipe was blocked until after quit. Blocks.
int dqi_buffered_file_flush(dqi_buffered_file *f, dqi_file_tally *tally);
// Counts all packets of a flushed file as lost, because the file was modified.
void dqi_buffered_file_disown(dqi_buffered_file *f, dqi_file_tally *tally);
// Closes the file; unflushed data are discarded. 0, or -errno of dqi_disk_close. A closed file is allowed.
int dqi_buffered_file_close(dqi_buffered_file *f);
// Returns the bytes of the file, including unwritten ones.
static inline uint64_t dqi_buffered_file_size(const dqi_buffered_file *f) {
    return f->buffers[f->at].base + f->buffers[f->at].used;
}
// Returns the counter for packets lost because of err.
static inline uint64_t *dqi_tally_of(dqi_file_tally *t, int err) {
    return err == -DQI_EQUOTA ? &t->over_quota : err == -DQI_EDEVICE ? &t->device_lost : &t->lost;
}
// Whether data are not in the file yet.
static inline bool dqi_buffered_file_dirty(const dqi_buffered_file *f) {
    const dqi_file_buffer *b = &f->buffers[f->at];
    return f->busy || b->used > f->clean || b->n_marks > 0;
}

#endif
