// disk.h: an append-only file, one write at a time, on a thread or synchronously.
#ifndef DQI_DISK_H
#define DQI_DISK_H

#include "writer/gpu_file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct dqi_disk {
    int fd; // -1: closed
    // Writes with this alignment of length, offset and address bypass the page cache (O_DIRECT). 1: all
    // writes are buffered.
    uint32_t align;
    const char *buffered; // reason why align is 1; NULL: direct
    bool regular;         // can be truncated; not a pipe or a device
    bool direct;          // O_DIRECT is currently set
    // Not 0: the writer has to end and stops waiting for a pipe's reader. NULL: no limit.
    const _Atomic uint32_t *quit;
    // current or last write
    const uint8_t *buf;
    uint32_t n, done;
    uint64_t at;
    const dqi_gpu_file *gpu; // destination of a GPU write, from `from`; NULL: from buf
    uint64_t from;
    uint64_t size; // of the file as written here
    int err;
    bool refused; // the direct write was rejected
    // its thread, and their synchronization
    bool threaded, busy, ending;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
} dqi_disk;

// File errors beyond errno; used as negative values, like those.
enum dqi_file_error {
    DQI_EQUOTA = 0x10000, // the writer's quota is exhausted
    DQI_ENOBLOCK,         // a packet is not an aggregate
    DQI_ESAMPLES,         // a packet does not consist of whole samples
    DQI_ENOCAPTURE,       // the existing file is not a capture, or damaged before its end
    DQI_EORDER,           // it has another byte order
    DQI_ERESOLUTION,      // its timestamps have another resolution
    DQI_ESNAPLEN,         // it has another snaplen
    DQI_ELINK,            // it has another link type
    DQI_ECHANGED,         // its length has changed
    DQI_EREPLACED,        // its path refers to another file
    DQI_EDEVICE,          // the GPU with the packet is lost
};

// Handling of an existing regular file.
typedef enum dqi_disk_mode {
    DQI_DISK_FILL,    // an empty one is used; otherwise the open fails (-EEXIST)
    DQI_DISK_REPLACE, // truncated
    DQI_DISK_KEEP,    // kept
    DQI_DISK_NEW,     // the open fails (-EEXIST)
} dqi_disk_mode;

// Opens the file, locked against other writers (flock) while it is open. threaded: writes run on a thread,
// direct if the file system supports it; otherwise in dqi_disk_begin, buffered. 0, or -errno (-EWOULDBLOCK:
// another writer has it open, -ENXIO: a pipe without a reader); after an error there is nothing to close.
// Blocks. One thread at a time, as for the following functions.
int dqi_disk_open(dqi_disk *d, const char *path, bool threaded, dqi_disk_mode mode);
// Starts writing n bytes at offset `at` (a pipe: at its end). The disk owns buf until dqi_disk_end. No other
// write may be in progress. Blocks if not threaded.
void dqi_disk_begin(dqi_disk *d, const uint8_t *buf, uint32_t n, uint64_t at);
// The same for n bytes at this address in a GPU's memory, by cuFile.
void dqi_disk_begin_gpu(dqi_disk *d, const dqi_gpu_file *gpu, uint64_t from, uint32_t n, uint64_t at);
// Whether dqi_disk_end would return without waiting.
bool dqi_disk_ready(dqi_disk *d);
// Waits for the write. *done: bytes in the file. 0, or -errno of the error that stopped it (-ENOENT: the file
// was removed, -DQI_ECHANGED, -ETIMEDOUT: a pipe's reader was blocked until after quit).
int dqi_disk_end(dqi_disk *d, uint32_t *done);
// Checks that the file is unchanged and still has its path; no write may be in progress. 0, also if it is not
// a regular file; -ENOENT, -DQI_ECHANGED, -DQI_EREPLACED, or -errno of the check.
int dqi_disk_check(const dqi_disk *d, const char *path);
// Allocates disk space for size bytes without changing the file's length, if as much stays free for others.
// Best effort.
void dqi_disk_reserve(dqi_disk *d, uint64_t size);
// Truncates the file to this size and frees space after it; no write may be in progress. Best effort: callers
// report the error that led here.
void dqi_disk_cut(dqi_disk *d, uint64_t size);
// Closes the file. 0, or -errno: -ENOENT if it was removed, or an error the file system reports on close. A
// closed file is allowed.
int dqi_disk_close(dqi_disk *d);
// Returns the text of a -errno or dqi_file_error of a file, with a hint if the user can act.
const char *dqi_disk_words(int err);

#endif
