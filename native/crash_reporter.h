// crash_reporter.h: crash handling of the process, and its crash reporter.
#ifndef CRASH_REPORTER_H
#define CRASH_REPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DQ_EXIT_FATAL 70

// The crash reporter is this program under this name, with a socket and two record files. The record with the
// higher number is valid; 0: being written.
#define DQ_REPORTER_NAME    "daqiri-run: crash reporter"
#define DQ_REPORTER_SOCKET  3
#define DQ_REPORTER_RECORDS 4

// The parts of a record: the text to print, the path of a JSON file (with its 0) and its content after a
// fatal error and after SIGKILL, and the paths of files being written (each with its 0).
enum { DQ_LAST_TEXT, DQ_LAST_PATH, DQ_LAST_FATAL, DQ_LAST_KILLED, DQ_LAST_FILES, DQ_LAST_PARTS };

typedef struct dq_last_record {
    uint64_t number;
    int64_t mono_ns; // creation time on CLOCK_MONOTONIC
    uint64_t len[DQ_LAST_PARTS];
    // the parts follow
} dq_last_record;

// From the first call on SIGABRT ends the process with DQ_EXIT_FATAL (memory faults in C do so from the
// start; with GOTRACEBACK=crash neither does). fd: the socket to a crash reporter, which is notified; -1:
// none.
void dq_crash_reporter(int fd);

#endif
