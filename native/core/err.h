// err.h: error reporting of calls.
#ifndef DQI_ERR_H
#define DQI_ERR_H

#include "core/dq_core.h"

// Formats the error message into diag (may be NULL) and returns err.
int dqi_fail(dq_diag *diag, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
