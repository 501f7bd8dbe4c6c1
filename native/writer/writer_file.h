// writer_file.h: the contiguous files of a dir, one after the other: their names, their rotation, the
// writer's quota, and the list of them.
#ifndef DQI_WRITER_FILE_H
#define DQI_WRITER_FILE_H

#include "writer/format.h"

typedef struct dqi_writer dqi_writer;
typedef struct dqi_writer_dir dqi_writer_dir;
typedef struct dqi_entry dqi_entry;

// What the writer's list has of a file.
typedef struct dqi_file_note {
    uint64_t index, bytes, packets;
    int64_t first_ns, last_ns;
    uint64_t first_batch, last_batch;
    uint32_t crc32c;
    uint16_t dir;
    bool closed, deleted;
    uint64_t dev, ino; // which file of that name it is
} dqi_file_note;

// The list of a writer's files, in the order in which they were begun. Under the writer's lock.
typedef struct dqi_file_list {
    dqi_file_note *notes;
    uint32_t n, room;
    uint32_t oldest; // those before are deleted
} dqi_file_list;

// The file that a dir writes. Its thread's own.
typedef struct dqi_dir_file {
    dqi_buffered_file *file; // the format's state; NULL: there is a file for each packet or burst
    bool open;
    uint64_t index;     // of its name; where it could not be opened, of the one that was tried
    uint32_t number;    // in the writer's list
    uint64_t packets;   // handed to it
    uint64_t counted;   // bytes of it that count for the quota
    int64_t opened_ns;  // session time
    dqi_file_note note; // what is known so far
} dqi_dir_file;

// True when files one after the other have an index in their names.
bool dqi_file_indexed(const dqi_writer *w);
// True when a folder has a file with bytes of the name that a single file gets. Control thread.
bool dqi_file_taken(const dqi_writer *w);
// The first index behind the files that are in the folders. 0, or -errno.
int dqi_file_first_index(const dqi_writer *w, uint64_t *index);
// The path of a file in the folder of this number. prefix: NULL, or instead of the writer's.
void dqi_writer_file_path(const dqi_writer *w, uint32_t dir, const char *prefix, uint64_t index, char *buf,
                          size_t len);
// Begins a file, for the burst of e where that matters (NULL: at the start). 0, -errno or a dqi_file_error.
// Dir's thread, as for all that follow; or the control thread where none runs.
int dqi_file_begin(dqi_writer_dir *l, const dqi_entry *e, dqi_file_tally *t);
// Adds packet i of e, to the next file where this one is full. Errors as above: then it is in none, nor in
// the tally.
int dqi_file_add(dqi_writer_dir *l, const dqi_entry *e, uint32_t i, dqi_file_tally *t);
// True when the file has been open for as long as it may.
bool dqi_file_is_due(const dqi_writer_dir *l);
// Writes all, and closes the file. 0, the first -errno, or a dqi_file_error: where somebody else has changed,
// removed or replaced the file its packets count as lost. Fine when none is open.
int dqi_file_end(dqi_writer_dir *l, dqi_file_tally *t);

// Counts for the quota what the file has become; so many bytes of that are taken already.
void dqi_file_count(dqi_writer_dir *l, uint64_t taken);
// Takes so many bytes from the writer's quota; false: they are not there, and none will be from now on. Any
// thread.
bool dqi_quota_take(dqi_writer_dir *l, uint64_t bytes, dqi_file_tally *t);
// Gives back what was not used, or takes what was used beyond (bytes < 0).
void dqi_quota_return(dqi_writer_dir *l, int64_t bytes);

#endif
