// dq_dpdk.h: availability of the dpdk engine's library.
#ifndef DQ_DPDK_H
#define DQ_DPDK_H

#include "core/dq_core.h"

// Returns DQ_OK if the library of the dpdk engine is installed, else DQ_NOT_SUPPORTED with the missing path
// in diag. iface names the interface in the message.
int dq_dpdk_there(const char *iface, dq_diag *diag);

#endif
