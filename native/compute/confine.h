// confine.h: restricts the system calls and files of processes that compile or run a user's source.
#ifndef DQI_COMPUTE_CONFINE_H
#define DQI_COMPUTE_CONFINE_H

#include <stdbool.h>

// Drops all capabilities and sets no_new_privs, for the calling thread and threads started later. Returns
// false with errno on failure.
bool dqi_confine_rights(void);

// System calls allowed for a worker's threads.
typedef enum dqi_calls {
    DQI_CALLS_GPU,      // as required by CUDA's driver
    DQI_CALLS_BLOCKS,   // memory, time, waiting and output
    DQI_CALLS_LAUNCHES, // and messages with memory descriptors
} dqi_calls;

// Restricts all threads of the process: calls that start programs or processes, or access the network or
// another process, kill the process with SIGSYS. Except for DQI_CALLS_GPU, this includes calls that open
// files, other calls not listed above fail with EPERM, and memory can't become executable. Requires
// no_new_privs. Returns false with errno on failure.
bool dqi_confine_calls(dqi_calls may);

// Restricts the calling thread and its children: files below `dir` may be read and written, those below the
// folders of `roots` (separated by ':'; missing ones are ignored) read and executed, all others are
// inaccessible; no TCP. Returns false with errno: no landlock (before Linux 5.13), or an error.
bool dqi_confine_files(const char *dir, const char *roots);

#endif
