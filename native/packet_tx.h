// packet_tx.h: sending frames through an AF_PACKET socket.
#ifndef DQI_PACKET_TX_H
#define DQI_PACKET_TX_H

#include "counters.h"
#include "iface.h"
#include "raw.h"

// Gives q a socket on the interface of this index. Errors are errno's.
int dqi_packet_tx_open(dq_queue *q, int index);
void dqi_packet_tx_close(dq_queue *q);
// dqi_port_driver.tx and arm_tx.
int dqi_packet_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
int dqi_packet_tx_arm(dq_queue *q, struct pollfd *fds, int max);

#endif
