// packet_port.h: the driver for any Linux interface (raw.h), through AF_PACKET.
#ifndef DQI_PACKET_PORT_H
#define DQI_PACKET_PORT_H

#include "counters.h"
#include "iface.h"
#include "raw.h"

extern const dqi_port_driver dqi_driver_packet;

#endif
