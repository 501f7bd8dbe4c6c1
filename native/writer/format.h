// format.h: interface of a file format, implemented in a file of its own and registered in format.c. Other
// code depends only on these properties, not on which format it is.
#ifndef DQI_FORMAT_H
#define DQI_FORMAT_H

#include "writer/buffered_file.h"
#include "writer/dq_writer.h"

// Parameters of a file to open.
typedef struct dqi_new_file {
    const char *path;
    uint64_t index; // in its name
    dqi_disk_mode mode;
    bool overlap; // see dqi_buffered_file_open
    const dq_writer_conf *conf;
    const char *writer;    // its name
    int64_t now;           // session time
    const dq_burst *first; // first burst; NULL: unknown, never with about.aggregates
} dqi_new_file;

// A format. Functions operate on one file at a time, whose state is f; with about.each, or if noted, they are
// NULL. Dir's thread.
typedef struct dqi_format {
    dq_format about;
    bool straight; // data can be written from a GPU without the host (gpu_file.h)
    bool capture;  // a capture: interfaces are notified (engine.h, captured)
    bool comments; // a burst's packets may have a comment
    bool names;    // and file names
    size_t size;   // of the state, zeroed before the first file; starts with dqi_buffered_file
    // Rejects a queue with packets that can never be written; NULL: accepts all. Control thread.
    int (*check)(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag);
    // Returns the maximum bytes of a file header; NULL: none.
    uint64_t (*header_bytes)(const dq_writer_conf *c);
    // Returns the maximum bytes of packet i. The file may be closed.
    uint64_t (*bytes_of)(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b, uint32_t i);
    // Opens a file, writes its header and counts it. 0, -errno or a dqi_file_error: nothing to close then.
    int (*open)(dqi_buffered_file *f, const dqi_new_file *n, dqi_file_tally *t);
    // Returns false if b requires another file; NULL: never.
    bool (*fits)(const dqi_buffered_file *f, const dq_burst *b);
    // Adds packet i of b, received at ts; b is not needed afterwards. 0, or -errno of a write it waited for:
    // the packet is then neither in the file nor in the tally.
    int (*add)(dqi_buffered_file *f, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *t);
    // Returns the maximum bytes added by end; NULL: none.
    uint64_t (*end_bytes)(const dqi_buffered_file *f);
    // Adds trailing data of a file; NULL: none. 0, or -errno, which the following flush also returns.
    int (*end)(dqi_buffered_file *f, const char *writer, int64_t now, dqi_file_tally *t);
    int (*close)(dqi_buffered_file *f); // see dqi_buffered_file_close
} dqi_format;

// Returns the format of this kind, or NULL.
const dqi_format *dqi_format_of(int kind);

#endif
