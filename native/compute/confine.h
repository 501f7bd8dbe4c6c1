// confine.h: what a process that works on a user's source, or runs it, may no longer ask Linux for.
#ifndef DQI_COMPUTE_CONFINE_H
#define DQI_COMPUTE_CONFINE_H

#include <stdbool.h>

// Gives up all capabilities, and the way to get any back (no_new_privs). Of the calling thread and of those
// that it starts later. False, with errno: Linux refused.
bool dqi_confine_rights(void);

// What the threads of a worker still ask Linux for.
typedef enum dqi_calls {
    DQI_CALLS_GPU,      // whatever CUDA's driver needs
    DQI_CALLS_BLOCKS,   // memory, time, waiting and output
    DQI_CALLS_LAUNCHES, // and messages with descriptors of memory
} dqi_calls;

// Of all threads of the process: calls that start programs or processes, reach the network or another process
// end the process by SIGSYS; but for DQI_CALLS_GPU those that open files do so, too, others that are not
// named above fail with EPERM, and no memory becomes executable. Needs no_new_privs. False, with errno.
bool dqi_confine_calls(dqi_calls may);

// Of the calling thread and its children: files beneath `dir` may be read and written, those beneath the
// folders of `roots` (':' between two; those that are missing count for nothing) may be read and run, and no
// others opened; no TCP. False, with errno: Linux can't (no landlock, before 5.13), or refused.
bool dqi_confine_files(const char *dir, const char *roots);

#endif
