// recording.h: what formats of recordings share.
#ifndef DQI_RECORDING_H
#define DQI_RECORDING_H

#include "writer/format.h"

#include <stdio.h>

// Checks that data converted by q's stage have the element type of the samples: DQ_OK, or INVALID_PARAMETER
// with both names in diag. Control thread.
int dqi_recording_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag);

// Writes a file by put(f, object) under another name, path.new, and renames it to path. 0, or -errno: an
// existing file is then unchanged. Blocks. Dir's thread.
int dqi_recording_replace(const char *path, void (*put)(FILE *f, const void *object), const void *object);
// Writes a time in ns since the epoch as text of RFC 3339, in UTC.
void dqi_recording_put_time(FILE *f, int64_t ns);

#endif
