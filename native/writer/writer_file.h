// writer_file.h: contiguous files of a dir: names, rotation, the writer's quota, and the list of files.
#ifndef DQI_WRITER_FILE_H
#define DQI_WRITER_FILE_H

#include "writer/format.h"

typedef struct dqi_writer dqi_writer;
typedef struct dqi_writer_dir dqi_writer_dir;
typedef struct dqi_entry dqi_entry;

// Entry of a file in the writer's list.
typedef struct dqi_file_note {
    uint64_t index, bytes, packets;
    int64_t first_ns, last_ns;
    uint64_t first_batch, last_batch;
    uint32_t crc32c;
    uint16_t dir;
    bool closed, deleted;
    uint64_t dev, ino; // identify the file
} dqi_file_note;

// List of a writer's files, in the order of creation. Under the writer's lock.
typedef struct dqi_file_list {
    dqi_file_note *notes;
    uint32_t n, room;
    uint32_t oldest; // all before are deleted
} dqi_file_list;

// File being written by a dir. Its thread only.
typedef struct dqi_dir_file {
    dqi_buffered_file *file; // the format's state; NULL: a file per packet or burst
    bool open;
    uint64_t index;     // in its name; after a failed open, the one tried
    uint32_t number;    // in the writer's list
    uint64_t packets;   // added to it
    uint64_t counted;   // bytes counted for the quota
    int64_t opened_ns;  // session time
    dqi_file_note note; // values so far
} dqi_dir_file;

// Whether contiguous files have an index in their names.
bool dqi_file_indexed(const dqi_writer *w);
// Whether a folder has a non-empty file with the name of a single file. Control thread.
bool dqi_file_taken(const dqi_writer *w);
// Finds the first index after the existing files in the folders. 0, or -errno.
int dqi_file_first_index(const dqi_writer *w, uint64_t *index);
// Writes the path of a file in the folder of this number. prefix: NULL, or replaces the writer's.
void dqi_writer_file_path(const dqi_writer *w, uint32_t dir, const char *prefix, uint64_t index, char *buf,
                          size_t len);
// Opens a file, for the burst of e if relevant (NULL: at the start). 0, -errno or a dqi_file_error. Dir's
// thread, as for the following functions; or the control thread if none runs.
int dqi_file_begin(dqi_writer_dir *l, const dqi_entry *e, dqi_file_tally *t);
// Adds packet i of e, to the next file if this one is full. Errors as above: it is then neither in a file nor
// in the tally.
int dqi_file_add(dqi_writer_dir *l, const dqi_entry *e, uint32_t i, dqi_file_tally *t);
// Whether the file has reached its maximum age.
bool dqi_file_is_due(const dqi_writer_dir *l);
// Writes all data and closes the file. 0, the first -errno, or a dqi_file_error: if the file was changed,
// removed or replaced, its packets count as lost. No effect if none is open.
int dqi_file_end(dqi_writer_dir *l, dqi_file_tally *t);

// Updates the quota to the file's size, of which `taken` bytes are already counted.
void dqi_file_count(dqi_writer_dir *l, uint64_t taken);
// Takes bytes from the writer's quota; false: exhausted, now and for all later calls. Any thread.
bool dqi_quota_take(dqi_writer_dir *l, uint64_t bytes, dqi_file_tally *t);
// Returns unused bytes to the quota, or takes additional ones (bytes < 0).
void dqi_quota_return(dqi_writer_dir *l, int64_t bytes);

#endif
