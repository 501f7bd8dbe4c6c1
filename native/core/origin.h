// origin.h: what a capture says of a packet beside its bytes and its time, as pcapng has it
// (draft-ietf-opsawg-pcapng: the options of interface descriptions and of enhanced packets). It goes with the
// packet through pipes, into files that have a place for it.
#ifndef DQI_ORIGIN_H
#define DQI_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#define DQI_ORIGIN_NAME    64  // bytes of an interface's name and description, with the 0 behind them
#define DQI_ORIGIN_COMMENT 208 // of a packet's comment, likewise

typedef struct dqi_origin_link dqi_origin_link;

// What is said of packets; alike ones share it. Lives as long as its session.
typedef struct dqi_remark {
    const dqi_origin_link *link;
    uint64_t dropped; // packets that were lost between this one and the one before
    uint32_t flags;   // epb_flags, where has_flags
    bool has_flags;
    char comment[DQI_ORIGIN_COMMENT]; // empty: none
} dqi_remark;

// An interface of a capture.
struct dqi_origin_link {
    char name[DQI_ORIGIN_NAME], about[DQI_ORIGIN_NAME]; // empty: not said
    int32_t fcs;      // bytes of checksum at the end of each frame; -1: not said
    dqi_remark plain; // of packets of which nothing else is said
};

// A place in the column of a burst.
typedef struct dqi_origin {
    const dqi_remark *remark; // NULL: nothing is said
    uint32_t cut;             // how many bytes more the packet had when it was captured
} dqi_origin;

#endif
