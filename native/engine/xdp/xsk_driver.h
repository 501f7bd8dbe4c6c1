// xsk_driver.h: AF_XDP driver of ethernet.h.
#ifndef DQI_XSK_DRIVER_H
#define DQI_XSK_DRIVER_H

#include "engine/ethernet/ethernet.h"

extern const dqi_port_driver dqi_driver_xsk;

// Adds the staging region that AF_XDP needs in addition to the queues' own; called before the arena is laid
// out (dqi_engine_ops.claim).
void dqi_xsk_claim(dq_iface *i);

#endif
