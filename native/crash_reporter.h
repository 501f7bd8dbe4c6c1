// crash_reporter.h: the end of a process that can't end by itself.
#ifndef CRASH_REPORTER_H
#define CRASH_REPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DQ_EXIT_FATAL 70

// A witness is this program under this name, with a socket and two files with records. Of those the one with
// the higher number counts; 0: it is being written.
#define DQ_REPORTER_NAME    "daqiri-run: crash reporter"
#define DQ_REPORTER_SOCKET  3
#define DQ_REPORTER_RECORDS 4

// The parts of a record: what is shown, the path of a JSON file (with its 0) and what it is to hold after a
// fatal error and after SIGKILL, and the paths of files that were being written (each with its 0).
enum { DQ_LAST_TEXT, DQ_LAST_PATH, DQ_LAST_FATAL, DQ_LAST_KILLED, DQ_LAST_FILES, DQ_LAST_PARTS };

typedef struct dq_last_record {
    uint64_t number;
    int64_t mono_ns; // when it was made, on CLOCK_MONOTONIC
    uint64_t len[DQ_LAST_PARTS];
    // the parts follow
} dq_last_record;

// From the first call on SIGABRT ends the process with that code (faults in C do from the start on, and with
// GOTRACEBACK=crash neither does). fd: the socket whose other end a witness has, which hears of it; -1: there
// is none.
void dq_crash_reporter(int fd);

#endif
