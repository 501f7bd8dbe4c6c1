// cgroup.h: how much memory the control groups of this process allow.
#ifndef DQI_CGROUP_H
#define DQI_CGROUP_H

#include "core/dq_core.h"

#include <stddef.h>
#include <stdint.h>

// The least limit, in bytes, of the groups that the file `own` (/proc/self/cgroup) names and of those above
// them, as found below `root` (/sys/fs/cgroup), version 1 or 2; UINT64_MAX: none. *file, of n bytes: where it
// stands. Reads files; control thread.
uint64_t dqi_cgroup_limit(const char *own, const char *root, char *file, size_t n);
// Refuses memory that the host has not got (`all` bytes), or that a control group does not allow (`small`,
// those on small pages: huge pages don't count for the group): else what touches it would end the process.
// DQ_OK, or DQ_ESYS - ENOMEM: diag names `what` and says what to do: to `lower` it.
int dqi_memory_check(const char *what, uint64_t all, uint64_t small, const char *lower, dq_diag *diag);

#endif
