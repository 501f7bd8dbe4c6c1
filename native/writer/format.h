// format.h: what a format of files is. Each has its functions in a file of its own and a row in format.c;
// what others need to know of it stands here, and nobody else asks which one it is.
#ifndef DQI_FORMAT_H
#define DQI_FORMAT_H

#include "writer/buffered_file.h"
#include "writer/dq_writer.h"

// A file that is to be opened.
typedef struct dqi_new_file {
    const char *path;
    uint64_t index; // in its name
    dqi_disk_mode mode;
    bool overlap; // see dqi_buffered_file_open
    const dq_writer_conf *conf;
    const char *writer;    // its name
    int64_t now;           // session time
    const dq_burst *first; // what comes first; NULL: not known yet, never with about.aggregates
} dqi_new_file;

// A format. From open on, functions are for one file after the other, whose state is f; with about.each, or
// where a function says so, they are NULL. Dir's thread.
typedef struct dqi_format {
    dq_format about;
    bool straight; // data can go from a GPU to the file past the host (gpu_file.h)
    bool capture;  // interfaces are told that one is made (engine.h, captured)
    bool comments; // a burst's packets may have one of their own
    bool names;    // and their files names
    size_t size;   // bytes of the state, zero before the first file; it begins with the dqi_buffered_file
    // Refuses a queue whose packets can never be written; NULL: takes all. Control thread.
    int (*check)(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag);
    // Bytes of a file's header, at most; NULL: none.
    uint64_t (*header_bytes)(const dq_writer_conf *c);
    // Bytes that packet i takes at most. No file need be open.
    uint64_t (*bytes_of)(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b, uint32_t i);
    // Opens a file, writes its header and counts it. 0, -errno or a dqi_file_error: then nothing is left to
    // close.
    int (*open)(dqi_buffered_file *f, const dqi_new_file *n, dqi_file_tally *t);
    // False: b belongs into another file; NULL: never.
    bool (*fits)(const dqi_buffered_file *f, const dq_burst *b);
    // Adds packet i of b, received at ts, which isn't needed afterwards. 0, or -errno of a write that it
    // waited for: then the packet is not in the file, nor in the tally.
    int (*add)(dqi_buffered_file *f, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *t);
    // Bytes of what end adds, at most; NULL: none.
    uint64_t (*end_bytes)(const dqi_buffered_file *f);
    // Adds what a file ends with; NULL: nothing. 0, or -errno, which the flush that follows tells as well.
    int (*end)(dqi_buffered_file *f, const char *writer, int64_t now, dqi_file_tally *t);
    int (*close)(dqi_buffered_file *f); // see dqi_buffered_file_close
} dqi_format;

// The format of this kind, or NULL.
const dqi_format *dqi_format_of(int kind);

#endif
