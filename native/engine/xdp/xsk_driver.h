// xsk_driver.h: AF_XDP as a driver of ethernet.h.
#ifndef DQI_XSK_DRIVER_H
#define DQI_XSK_DRIVER_H

#include "engine/ethernet/ethernet.h"

extern const dqi_port_driver dqi_driver_xsk;

// Asks for the buffers that AF_XDP needs beside the queues' own; before the arena is laid out
// (dqi_engine_ops.claim).
void dqi_xsk_claim(dq_iface *i);

#endif
