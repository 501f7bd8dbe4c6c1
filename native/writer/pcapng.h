// pcapng.h: blocks of a pcapng file (draft-ietf-opsawg-pcapng: version 1.0, little endian). Without side
// effects: each function writes one block to dst and returns its bytes.
#ifndef DQI_PCAPNG_H
#define DQI_PCAPNG_H

#include "core/origin.h"

#include <stdbool.h>
#include <stdint.h>

#define DQI_PCAPNG_TEXT 3072 // maximum bytes of a comment
#define DQI_PCAPNG_ROOM 8192 // maximum bytes of a block without a packet
#define DQI_PCAPNG_HEAD 28   // bytes before a packet in its block
#define DQI_PCAPNG_TAIL 568  // maximum bytes after it, with two comments of 208 bytes

// Writes a section header. comment: NULL or empty: none.
uint32_t dqi_pcapng_section(uint8_t *dst, const char *comment);
// Writes the description of an Ethernet interface with timestamps in ns or us. fcs: bytes of the frame check
// sequence; -1: unspecified.
uint32_t dqi_pcapng_interface(uint8_t *dst, const char *name, const char *about, int32_t fcs,
                              uint32_t snaplen, bool micro);

typedef struct dqi_pcapng_packet {
    uint32_t interface; // number of its description in the section
    uint32_t queue, flow;
    uint64_t ts;              // in the interface's unit
    bool timed;               // false: ts is that of another packet
    uint32_t kept, len;       // bytes in the file, and of the packet
    const char *comment;      // NULL: none
    const dqi_remark *remark; // metadata from its capture; NULL: none
} dqi_pcapng_packet;
// Completes the block of a packet whose kept bytes lie at dst + HEAD, with at most TAIL bytes after them.
uint32_t dqi_pcapng_packet_around(uint8_t *dst, const dqi_pcapng_packet *p);
// Whether a simple packet block can represent the packet: no time or metadata, interface 0, whose snaplen is
// given.
bool dqi_pcapng_is_simple(const dqi_pcapng_packet *p, uint32_t snaplen);
// Like dqi_pcapng_packet_around for such packets: moves the kept bytes to their position in that block.
uint32_t dqi_pcapng_simple_around(uint8_t *dst, const dqi_pcapng_packet *p);

typedef struct dqi_pcapng_statistics {
    uint32_t interface;
    uint64_t start, end;                   // in the interface's unit
    uint64_t received, dropped, osdropped; // packets since `start`
} dqi_pcapng_statistics;
uint32_t dqi_pcapng_statistics_of(uint8_t *dst, const dqi_pcapng_statistics *s, const char *comment);

#endif
