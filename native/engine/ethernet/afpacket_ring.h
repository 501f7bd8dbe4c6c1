// afpacket_ring.h: an AF_PACKET socket with a memory-mapped receive ring that the kernel fills (packet(7),
// TPACKET_V2).
#ifndef DQI_AFPACKET_RING_H
#define DQI_AFPACKET_RING_H

#include "core/clock.h"
#include "core/counters.h"
#include "engine/ethernet/ethernet.h"
#include "pipeline/iface.h"

#define DQI_JOINED_MAX       262144 // bytes: what readers of captures take
#define DQI_PACKET_ALONE     (-1)   // no fanout group
#define DQI_PACKET_NEW_GROUP (-2)   // a new group, numbered by the kernel from 0

typedef struct dqi_afpacket_ring {
    int fd;
    int index; // of the interface
    uint8_t *map;
    uint32_t frame_bytes, per_block, n_frames; // per_block: frames
    uint32_t head;                             // first frame not released to the kernel
    uint32_t taken;                            // frames from head on, read and not yet released
    uint8_t *copies;                           // room for frames longer than those of the ring, or NULL
    uint32_t n_copies;                         // of these, used by the last read
    bool over;                                 // all frames received before the stop were read
    dqi_stamps stamps;
} dqi_afpacket_ring;

// Opens a ring on the interface with this index for frames of at most `bytes` bytes. *group is the fanout
// group to join or one of the above; the number of a new group is stored there. outgoing: frames that this
// machine sends are received as well. joined: so are frames of up to DQI_JOINED_MAX bytes that the kernel
// joined. No frame is received before dqi_afpacket_ring_start. Returns 0 or an errno.
int dqi_afpacket_ring_open(dqi_afpacket_ring *r, int index, uint32_t bytes, int *group, bool outgoing,
                           bool joined);
void dqi_afpacket_ring_start(dqi_afpacket_ring *r);
void dqi_afpacket_ring_close(dqi_afpacket_ring *r);

// dqi_port_driver.read and release for a device queue whose state is a ring.
uint32_t dqi_afpacket_ring_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void dqi_afpacket_ring_release(dqi_port_queue *l);
// Returns and clears the pending error of the socket, an errno; 0: none.
int dqi_afpacket_ring_error(dqi_afpacket_ring *r);
// Returns the number of frames that the kernel dropped on a full ring since the last call.
uint32_t dqi_afpacket_ring_lost(dqi_afpacket_ring *r);
// Returns true if the interface was removed.
bool dqi_afpacket_ring_gone(const dqi_afpacket_ring *r);

#endif
