// pcapng.h: the blocks of a pcapng file (draft-ietf-opsawg-pcapng: version 1.0, little endian). Pure: each
// function writes one block to dst and returns its bytes.
#ifndef DQI_PCAPNG_H
#define DQI_PCAPNG_H

#include "core/origin.h"

#include <stdbool.h>
#include <stdint.h>

#define DQI_PCAPNG_TEXT 3072 // bytes of the longest comment that is kept
#define DQI_PCAPNG_ROOM 8192 // bytes of the longest block without a packet
#define DQI_PCAPNG_HEAD 28   // bytes before a packet in its block
#define DQI_PCAPNG_TAIL 568  // at most, behind it, with two comments of 208 bytes

// A section's start. comment: NULL or empty: none.
uint32_t dqi_pcapng_section(uint8_t *dst, const char *comment);
// The description of an Ethernet interface with times in ns, or in µs. fcs: bytes of checksum at the end of
// its frames; -1: not said.
uint32_t dqi_pcapng_interface(uint8_t *dst, const char *name, const char *about, int32_t fcs,
                              uint32_t snaplen, bool micro);

typedef struct dqi_pcapng_packet {
    uint32_t interface; // the number of its description in the section
    uint32_t queue, flow;
    uint64_t ts;              // in the interface's unit
    bool timed;               // false: ts is that of another packet
    uint32_t kept, len;       // bytes in the file, and of the packet
    const char *comment;      // NULL: none
    const dqi_remark *remark; // what its capture said of it; NULL: nothing
} dqi_pcapng_packet;
// Completes the block of a packet whose kept bytes lie at dst + HEAD: at most TAIL bytes behind them.
uint32_t dqi_pcapng_packet_around(uint8_t *dst, const dqi_pcapng_packet *p);
// Whether a simple packet block says all of it: it has no time, and belongs to interface 0, whose snaplen
// this is.
bool dqi_pcapng_is_simple(const dqi_pcapng_packet *p, uint32_t snaplen);
// As dqi_pcapng_packet_around, of such: the kept bytes are moved to where that block has them.
uint32_t dqi_pcapng_simple_around(uint8_t *dst, const dqi_pcapng_packet *p);

typedef struct dqi_pcapng_statistics {
    uint32_t interface;
    uint64_t start, end;                   // in the interface's unit
    uint64_t received, dropped, osdropped; // packets since the start
} dqi_pcapng_statistics;
uint32_t dqi_pcapng_statistics_of(uint8_t *dst, const dqi_pcapng_statistics *s, const char *comment);

#endif
