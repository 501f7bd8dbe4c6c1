// disk.h: a file that grows by blocks, one write at a time, on a thread of its own or at once.
#ifndef DQI_DISK_H
#define DQI_DISK_H

#include "writer/gpu_file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct dqi_disk {
    int fd; // -1: closed
    // Writes of whole multiples of it, at such offsets and from such addresses, go past the page cache
    // (O_DIRECT). 1: all writes are buffered.
    uint32_t align;
    const char *buffered; // why align is 1, in words; NULL: direct
    bool regular;         // can be cut back; not a pipe or a device
    bool direct;          // O_DIRECT is set now
    // Not 0: the writer is to end, and waits no longer for a pipe's reader. NULL: it waits for ever.
    const _Atomic uint32_t *quit;
    // the write under way, or the last one
    const uint8_t *buf;
    uint32_t n, done;
    uint64_t at;
    const dqi_gpu_file *gpu; // writes it, from there; NULL: it lies at buf
    uint64_t from;
    uint64_t size; // of the file, as it was made here
    int err;
    bool refused; // as a direct one
    // its thread, and whose turn it is
    bool threaded, busy, ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} dqi_disk;

// What is wrong with a file beyond an errno; used as those are, negative.
enum dqi_file_error {
    DQI_EQUOTA = 0x10000, // the writer's quota is used up
    DQI_ENOBLOCK,         // a packet that is no aggregate
    DQI_ENOCAPTURE,       // what is there is no capture, or damaged before its end
    DQI_EORDER,           // it has another order of bytes
    DQI_ERESOLUTION,      // its times have another resolution
    DQI_ESNAPLEN,         // another snaplen
    DQI_ELINK,            // another link type
    DQI_ECHANGED,         // it is not as long as it was made
    DQI_EREPLACED,        // its name leads to another file
    DQI_EDEVICE,          // the GPU that had the packet is lost
};

// What becomes of a regular file of that name that is there.
typedef enum dqi_disk_mode {
    DQI_DISK_FILL,    // an empty one is taken; where it has bytes, opening fails (-EEXIST)
    DQI_DISK_REPLACE, // it is emptied
    DQI_DISK_KEEP,    // it is kept
    DQI_DISK_NEW,     // opening fails (-EEXIST)
} dqi_disk_mode;

// Opens the file, which is locked against other writers (flock) as long as it is open. threaded: the writes
// run on a thread, direct where the file system can; else in dqi_disk_begin, buffered. 0, or -errno
// (-EWOULDBLOCK: somebody else writes it, -ENXIO: it is a pipe that nobody reads); after a failure nothing is
// left to close. Blocks. One thread at a time, as for all that follow.
int dqi_disk_open(dqi_disk *d, const char *path, bool threaded, dqi_disk_mode mode);
// Begins to write n bytes at the offset `at` (a pipe: behind what came before). buf is the disk's until
// dqi_disk_end. None may be under way. Where not threaded it blocks.
void dqi_disk_begin(dqi_disk *d, const uint8_t *buf, uint32_t n, uint64_t at);
// The same of n bytes at this place in a GPU's memory, by its file.
void dqi_disk_begin_gpu(dqi_disk *d, const dqi_gpu_file *gpu, uint64_t from, uint32_t n, uint64_t at);
// True when a write was begun and dqi_disk_end would not wait.
bool dqi_disk_ready(dqi_disk *d);
// Waits for the write that was begun. *done: bytes that are in the file. 0, or -errno of what stopped it
// (-ENOENT: the file was removed, -DQI_ECHANGED, -ETIMEDOUT: a pipe's reader stood still until after quit).
int dqi_disk_end(dqi_disk *d, uint32_t *done);
// Whether the file is as it was made, and still the one at path; no write may be under way. 0, also of what
// is no regular file; -ENOENT, -DQI_ECHANGED, -DQI_EREPLACED, or -errno of looking.
int dqi_disk_check(const dqi_disk *d, const char *path);
// Asks for room on the disk for so many bytes, without making the file longer, if that leaves
// as many to others. Best effort.
void dqi_disk_reserve(dqi_disk *d, uint64_t size);
// Ends the file at this size, and gives back room behind it; none may be under way. Best effort: the error
// that led here is what counts.
void dqi_disk_cut(dqi_disk *d, uint64_t size);
// Closes the file. 0, or -errno: -ENOENT when it was removed, or what the file system reports only now. Fine
// on a closed one.
int dqi_disk_close(dqi_disk *d);
// A -errno or dqi_file_error of a file in words, with a hint where the user can act.
const char *dqi_disk_words(int err);

#endif
