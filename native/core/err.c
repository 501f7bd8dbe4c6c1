// err.c: names of statuses and of timestamp sources.
#include "core/err.h"
#include "core/dq_burst.h"
#include "core/dq_core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const err_names[] = {
    "SUCCESS",         "NULL_PTR",          "NO_FREE_BURST_BUFFERS", "NO_FREE_PACKET_BUFFERS",
    "NOT_READY",       "INVALID_PARAMETER", "NO_SPACE_AVAILABLE",    "NOT_SUPPORTED",
    "GENERIC_FAILURE", "CONNECT_FAILURE",   "INTERNAL_ERROR",        "RESOURCE_IN_USE",
    "ALREADY_EXISTS",
};

const char *dq_err_name(int err) {
    if (err >= DQ_OK) return err_names[0];
    if (-err < (int)(sizeof err_names / sizeof *err_names)) return err_names[-err];
    return err < DQ_ESYS ? strerror(DQ_ESYS - err) : "UNKNOWN";
}

int dqi_fail(dq_diag *diag, int err, const char *fmt, ...) {
    if (diag) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(diag->text, sizeof diag->text, fmt, ap);
        va_end(ap);
    }
    return err;
}

const char *dq_stamps_name(int stamps) {
    static const char *const names[DQ_STAMPS] = {[DQ_STAMPS_SOFTWARE] = "software",
                                                 [DQ_STAMPS_KERNEL] = "kernel",
                                                 [DQ_STAMPS_HARDWARE] = "hardware",
                                                 [DQ_STAMPS_VIRTUAL] = "virtual",
                                                 [DQ_STAMPS_FILE] = "file"};
    return stamps >= 0 && stamps < DQ_STAMPS ? names[stamps] : NULL;
}

const char *dq_ordinal(uint32_t k) {
    static const char *const words[] = {"first", "second", "third", "fourth"};
    return words[k < DQ_MAX_SEGS ? k : DQ_MAX_SEGS - 1];
}
