// origin.h: metadata of a captured packet besides its bytes and time, as in pcapng (draft-ietf-opsawg-pcapng:
// options of interface descriptions and enhanced packet blocks). It accompanies the packet through pipes into
// file formats that can store it.
#ifndef DQI_ORIGIN_H
#define DQI_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#define DQI_ORIGIN_NAME    64  // bytes of an interface's name and description, including the 0
#define DQI_ORIGIN_COMMENT 208 // bytes of a packet's comment, including the 0

typedef struct dqi_origin_link dqi_origin_link;

// Metadata of a packet; packets with equal metadata share it. Lives as long as its session.
typedef struct dqi_remark {
    const dqi_origin_link *link;
    uint64_t dropped; // packets lost between this one and its predecessor
    uint32_t flags;   // epb_flags, valid if has_flags
    bool has_flags;
    char comment[DQI_ORIGIN_COMMENT]; // empty: none
} dqi_remark;

// An interface of a capture.
struct dqi_origin_link {
    char name[DQI_ORIGIN_NAME], about[DQI_ORIGIN_NAME]; // empty: unknown
    int32_t fcs;      // bytes of frame check sequence at the end of each frame; -1: unknown
    dqi_remark plain; // shared by packets without further metadata
};

// One packet's entry in a burst's origin column.
typedef struct dqi_origin {
    const dqi_remark *remark; // NULL: no metadata
    uint32_t cut;             // bytes by which the capture truncated the packet
} dqi_origin;

#endif
