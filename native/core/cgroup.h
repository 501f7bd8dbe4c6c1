// cgroup.h: how much memory the control groups of this process allow.
#ifndef DQI_CGROUP_H
#define DQI_CGROUP_H

#include <stddef.h>
#include <stdint.h>

// The least limit, in bytes, of the groups that the file `own` (/proc/self/cgroup) names and of those above
// them, as found below `root` (/sys/fs/cgroup), version 1 or 2; UINT64_MAX: none. *file, of n bytes: where it
// stands. Reads files; control thread.
uint64_t dqi_cgroup_limit(const char *own, const char *root, char *file, size_t n);

#endif
