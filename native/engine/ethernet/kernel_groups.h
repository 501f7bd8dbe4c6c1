// kernel_groups.h: multicast groups that the kernel joins for us on a Linux interface: it sends the reports
// (IGMP, MLD), answers the queries of routers and switches, and has the device's filter let the groups in.
#ifndef DQI_KERNEL_GROUPS_H
#define DQI_KERNEL_GROUPS_H

#include "core/counters.h"
#include "pipeline/iface.h"
#include "engine/ethernet/ethernet.h"

// dqi_port_driver.multicast of a driver whose interface's address is the name of a Linux interface.
int dqi_kernel_multicast(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag);
// Leaves all.
void dqi_kernel_groups_free(dqi_port *p);

#endif
