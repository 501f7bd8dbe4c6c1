// dq_dpdk.h: the library of the engine dpdk.
#ifndef DQ_DPDK_H
#define DQ_DPDK_H

#include "core/dq_core.h"

// Whether the library that engine dpdk is in is there, for the interface of that name: DQ_NOT_SUPPORTED
// otherwise, and diag says which.
int dq_dpdk_there(const char *iface, dq_diag *diag);

#endif
