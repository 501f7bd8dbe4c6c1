// afpacket_tx.h: transmits frames through an AF_PACKET socket.
#ifndef DQI_AFPACKET_TX_H
#define DQI_AFPACKET_TX_H

#include "core/counters.h"
#include "engine/ethernet/ethernet.h"
#include "pipeline/iface.h"

// Opens a socket for q on the interface with this index. Returns 0 or an errno.
int dqi_afpacket_tx_open(dq_queue *q, int index);
void dqi_afpacket_tx_close(dq_queue *q);
// dqi_port_driver.tx and arm_tx.
int dqi_afpacket_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
int dqi_afpacket_tx_arm(dq_queue *q, struct pollfd *fds, int max);

#endif
