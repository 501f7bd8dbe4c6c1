// afpacket_ring.h: an AF_PACKET socket whose frames the kernel copies into a ring of ours (packet(7),
// TPACKET_V2).
#ifndef DQI_AFPACKET_RING_H
#define DQI_AFPACKET_RING_H

#include "core/clock.h"
#include "core/counters.h"
#include "pipeline/iface.h"
#include "engine/ethernet/ethernet.h"

#define DQI_PACKET_ALONE     (-1) // no fanout group
#define DQI_PACKET_NEW_GROUP (-2) // one that the kernel numbers, from 0 on

typedef struct dqi_afpacket_ring {
    int fd;
    int index; // of the interface
    uint8_t *map;
    uint32_t frame_bytes, per_block, n_frames; // per_block: frames
    uint32_t head;                             // the next frame that the kernel hands over
    uint32_t taken;                            // frames from head on that were read and not released
    bool over;                                 // what had come by the stop was read
    dqi_stamps stamps;
} dqi_afpacket_ring;

// Opens a ring for frames of at most so many bytes of interface index. *group: the fanout group that it
// shares them with, or one of the above; of a new group the number comes back. Nothing comes before the
// start. Errors are errno's.
int dqi_afpacket_ring_open(dqi_afpacket_ring *r, int index, uint32_t bytes, int *group);
void dqi_afpacket_ring_start(dqi_afpacket_ring *r);
void dqi_afpacket_ring_close(dqi_afpacket_ring *r);

// dqi_port_driver.read and release, of a device queue whose state is a ring.
uint32_t dqi_afpacket_ring_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void dqi_afpacket_ring_release(dqi_port_queue *l);
// The error that waits on the socket, an errno, taken off it; 0: none.
int dqi_afpacket_ring_error(dqi_afpacket_ring *r);
// Frames that the kernel dropped as the ring was full, since the last call.
uint32_t dqi_afpacket_ring_lost(dqi_afpacket_ring *r);
// Whether the interface has gone for good.
bool dqi_afpacket_ring_gone(const dqi_afpacket_ring *r);

#endif
