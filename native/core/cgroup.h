// cgroup.h: memory limits of the control groups of this process.
#ifndef DQI_CGROUP_H
#define DQI_CGROUP_H

#include "core/dq_core.h"

#include <stddef.h>
#include <stdint.h>

// Returns the lowest limit, in bytes, of the groups listed in the file `own` (/proc/self/cgroup) and of their
// parents, as found below `root` (/sys/fs/cgroup), version 1 or 2; UINT64_MAX: no limit. Writes the path of
// the limiting file to file (n bytes). Reads files; control thread.
uint64_t dqi_cgroup_limit(const char *own, const char *root, char *file, size_t n);
// Checks that the host has `all` bytes of memory and that the control groups allow `small` of them (those on
// small pages: huge pages are not charged to the group): otherwise the first access would kill the process.
// Returns DQ_OK, or DQ_ESYS - ENOMEM with a diag that names `what` and advises to `lower` it.
int dqi_memory_check(const char *what, uint64_t all, uint64_t small, const char *lower, dq_diag *diag);

#endif
