// capture_file.h: reads captures, pcap and pcapng, from bytes in memory. Nothing here touches a file.
//
// pcap: draft-ietf-opsawg-pcap, times in µs or ns. pcapng: draft-ietf-opsawg-pcapng, sections and interfaces
// of any number, times of any resolution, enhanced, simple and obsolete packet blocks. Either byte order.
#ifndef DQI_CAPTURE_FILE_H
#define DQI_CAPTURE_FILE_H

#include "core/dq_core.h"
#include "core/origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DQI_PCAP_MAGIC_US 0xa1b2c3d4u
#define DQI_PCAP_MAGIC_NS 0xa1b23c4du
#define DQI_PCAP_HEADER   24 // bytes of a pcap's header
#define DQI_PCAP_LINK     20 // of them, where the link type is
#define DQI_PCAP_RECORD   16 // bytes in front of a packet of a pcap
#define DQI_LINK_ETHERNET 1

enum { // blocks of a pcapng
    DQI_NG_INTERFACE = 1,
    DQI_NG_OBSOLETE_PACKET = 2,
    DQI_NG_SIMPLE_PACKET = 3,
    DQI_NG_STATISTICS = 5,
    DQI_NG_PACKET = 6,
    DQI_NG_SECTION = 0x0a0d0d0a,
};

// Bytes of a packet in a capture, as readers that use libpcap have it; more is a corrupted length.
#define DQI_CAPTURE_MAX_FRAME (256u << 10)
#define DQI_CAPTURE_MAX_BLOCK (320u << 10) // bytes of a record that has to be in memory as a whole

// What a capture says of the packets of one interface.
typedef struct dqi_capture_link {
    uint32_t type;     // link type
    uint32_t snaplen;  // 0: no limit
    uint64_t mul, div; // ns of a tick: mul / div; where div is 0, mul / 2^shift
    uint8_t shift;
    int64_t offset_ns; // of tick 0, since the epoch
    int32_t fcs;       // bytes of checksum at the end of each frame; -1: not said
    char name[DQI_ORIGIN_NAME], about[DQI_ORIGIN_NAME]; // what it is called; empty: not said
} dqi_capture_link;

// Where a reader is in a capture. Zeroed: at its start.
typedef struct dqi_capture {
    enum { DQI_CAPTURE_NEW, DQI_CAPTURE_PCAP, DQI_CAPTURE_PCAPNG } form;
    bool swapped;          // the file's byte order is not this host's
    uint32_t n_links, cap; // of the section
    dqi_capture_link *links;
    uint32_t section; // so many have begun
    uint64_t unread;  // blocks so far that say something and are not read: names, secrets, what is custom
    char why[160];    // after DQI_CAPTURE_BAD
} dqi_capture;

typedef struct dqi_capture_packet {
    uint8_t *data;
    uint32_t len;       // bytes that are there
    uint32_t orig;      // bytes that it had
    uint32_t link;      // link type
    uint32_t interface; // of the section
    uint32_t flags;     // epb_flags, where has_flags
    bool has_flags;
    uint64_t dropped; // packets lost between this one and the one before
    const uint8_t *comment;
    uint32_t comment_len; // 0: none
    int64_t ts;           // ns since the epoch; DQ_NO_TIME: a simple packet block has none
} dqi_capture_packet;

enum {
    DQI_CAPTURE_PACKET, // *used bytes were a packet
    DQI_CAPTURE_OTHER,  // *used bytes, maybe more than n, are something else
    DQI_CAPTURE_MORE,   // *used > n bytes are needed to go on: at the end of the file, it is cut off
    DQI_CAPTURE_BAD,    // c->why; there is no way to go on
};

// Looks at the n bytes at p, where a record begins.
int dqi_capture_next(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used);
// Back to the start; frees what it has.
void dqi_capture_reset(dqi_capture *c);

// Makes an Ethernet frame of the packet, in place: at least 16 bytes in front of it may be written. False:
// there is no way to do so; p is as it was.
bool dqi_capture_frame(dqi_capture_packet *p);
// Whether there is a way for some packets of this link type.
bool dqi_capture_link_known(uint32_t type);
// The name of a link type, "type" where it has none here.
const char *dqi_capture_link_name(uint32_t type);

// Four bytes at p in the file's order.
uint32_t dqi_capture_u32(const dqi_capture *c, const uint8_t *p);

// For capture_file.c and capture_ng.c.
uint16_t dqi_capture_u16(const dqi_capture *c, const uint8_t *p);
int dqi_capture_bad(dqi_capture *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool dqi_capture_add_link(dqi_capture *c, const dqi_capture_link *l);
int dqi_capture_more(size_t need, size_t *used);
int dqi_capture_next_block(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used);

#endif
