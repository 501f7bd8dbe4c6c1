// kernel_groups.h: multicast groups joined through the kernel on a Linux interface: the kernel sends the
// reports (IGMP, MLD), answers queries of routers and switches and sets the device's address filter.
#ifndef DQI_KERNEL_GROUPS_H
#define DQI_KERNEL_GROUPS_H

#include "core/counters.h"
#include "engine/ethernet/ethernet.h"
#include "pipeline/iface.h"

// dqi_port_driver.multicast of drivers whose interface address is the name of a Linux interface.
int dqi_kernel_multicast(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag);
// Leaves all groups.
void dqi_kernel_groups_free(dqi_port *p);

#endif
