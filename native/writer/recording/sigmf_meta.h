// sigmf_meta.h: the metadata file of a SigMF recording (SigMF 1.2), which is kept in memory and written as a
// whole under another name, then renamed.
#ifndef DQI_SIGMF_META_H
#define DQI_SIGMF_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DQI_SIGMF_DATA "sigmf-data"
#define DQI_SIGMF_META "sigmf-meta"
// Maximum captures, and gaps, that a file lists one by one. The last annotation covers all others.
#define DQI_SIGMF_LISTED 100000

// A run of samples of the stream, from `start` in the data file on.
typedef struct dqi_sigmf_capture {
    uint64_t start, index; // index: of its first sample in the stream
    int64_t time_ns;       // receive time of its first packet; DQ_NO_TIME: none
    bool indexed;          // index is known
} dqi_sigmf_capture;

// Samples start .. end - 1 of the data file, which were not received.
typedef struct dqi_sigmf_gap {
    uint64_t start, end;
} dqi_sigmf_gap;

typedef struct dqi_sigmf_meta {
    char path[1024 + 256 + 64];
    const char *global, *members; // JSON members of the global object, and of each capture; may be empty
    uint64_t offset;              // samples of the recording in earlier files
    dqi_sigmf_capture *captures;
    dqi_sigmf_gap *gaps;
    uint32_t n_captures, n_gaps, room_captures, room_gaps;
    uint64_t unlisted; // captures and gaps that are not listed; rest: the samples with them
    dqi_sigmf_gap rest;
    bool changed;    // since it was written
    int64_t next_ns; // monotonic time from which a change is written
} dqi_sigmf_meta;

// Writes the path of the metadata file that belongs to a data file.
void dqi_sigmf_meta_path(const char *data, char *buf, size_t len);
// Adds a capture that follows the last one. Dir's thread, as for the following functions.
void dqi_sigmf_meta_capture(dqi_sigmf_meta *m, const dqi_sigmf_capture *c);
// Adds a gap; one that continues the last gap extends it.
void dqi_sigmf_meta_gap(dqi_sigmf_meta *m, uint64_t start, uint64_t end);
// Removes everything from sample n on, after the data file was cut there.
void dqi_sigmf_meta_cut(dqi_sigmf_meta *m, uint64_t n);
// Writes the file. 0, or -errno: an existing file is then unchanged. Blocks.
int dqi_sigmf_meta_write(dqi_sigmf_meta *m);
// Writes the file if it changed and the last write is long enough ago. An error leaves it for later.
void dqi_sigmf_meta_refresh(dqi_sigmf_meta *m);
// Frees the lists; a closed one is allowed.
void dqi_sigmf_meta_free(dqi_sigmf_meta *m);

#endif
