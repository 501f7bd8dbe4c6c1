// afpacket_port.h: driver for any Linux interface (ethernet.h), through AF_PACKET.
#ifndef DQI_AFPACKET_PORT_H
#define DQI_AFPACKET_PORT_H

#include "core/counters.h"
#include "engine/ethernet/ethernet.h"
#include "pipeline/iface.h"

extern const dqi_port_driver dqi_driver_packet;

#endif
