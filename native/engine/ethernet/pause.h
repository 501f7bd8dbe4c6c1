// pause.h: 802.3x pause frames of a port's network device: their setting, and how many it received and sent.
#ifndef DQI_PAUSE_H
#define DQI_PAUSE_H

#include "engine/ethernet/ethernet.h"

#include <stddef.h>

// State of a network device's pause frames.
typedef struct dqi_pause_reading {
    bool obeys, asks;        // it stops sending when the peer asks; it asks the peer to stop
    bool counted;            // the driver counts them; otherwise the following are 0
    uint64_t received, sent; // frames since the driver was loaded
} dqi_pause_reading;

// Reads the state of the network device with that index; returns false if it is gone or has no pause frames.
// System calls; any thread. Tests replace it.
extern bool (*dqi_pause_read)(uint32_t netdev, dqi_pause_reading *out);

// Reads the kernel's answer of len bytes, a netlink message, to a request for a device's pause state; returns
// false if it is an error or truncated. Pure.
bool dqi_pause_parse(const void *message, size_t len, dqi_pause_reading *out);
// Returns the index of a counter among n names of ETH_GSTRING_LEN bytes each, or n. Pure.
uint32_t dqi_pause_find(const char *names, uint32_t n, const char *wanted);

// Records the counters of port->netdev as the start of the run, and adds a note to the session's report if
// pause is on. A port without a network device, or whose device has no pause frames, has no counters.
void dqi_pause_open(dqi_port *p);
// Writes the frames of the run so far into p->c.extra; reads the device at most every 100 ms unless now is
// set. Any thread, one at a time.
void dqi_pause_refresh(dqi_port *p, bool now);

#endif
