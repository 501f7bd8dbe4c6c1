// recording.h: what all formats of recordings check.
#ifndef DQI_RECORDING_H
#define DQI_RECORDING_H

#include "writer/format.h"

// Checks that data converted by q's stage have the element type of the samples: DQ_OK, or INVALID_PARAMETER
// with both names in diag. Control thread.
int dqi_recording_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag);

#endif
