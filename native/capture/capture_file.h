// capture_file.h: parses captures, pcap and pcapng, from bytes in memory. It performs no file I/O.
//
// pcap: draft-ietf-opsawg-pcap, times in us or ns. pcapng: draft-ietf-opsawg-pcapng, any number of sections
// and interfaces, times of any resolution, enhanced, simple and obsolete packet blocks. Either byte order.
#ifndef DQI_CAPTURE_FILE_H
#define DQI_CAPTURE_FILE_H

#include "core/dq_core.h"
#include "core/origin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DQI_PCAP_MAGIC_US 0xa1b2c3d4u
#define DQI_PCAP_MAGIC_NS 0xa1b23c4du
#define DQI_PCAP_HEADER   24 // bytes of a pcap file header
#define DQI_PCAP_LINK     20 // offset of the link type in it
#define DQI_PCAP_RECORD   16 // bytes of a pcap record header
#define DQI_LINK_ETHERNET 1

enum { // pcapng block types
    DQI_NG_INTERFACE = 1,
    DQI_NG_OBSOLETE_PACKET = 2,
    DQI_NG_SIMPLE_PACKET = 3,
    DQI_NG_STATISTICS = 5,
    DQI_NG_PACKET = 6,
    DQI_NG_SECTION = 0x0a0d0d0a,
};

// Maximum packet length in a capture, the limit of libpcap; a larger one is a corrupted length.
#define DQI_CAPTURE_MAX_FRAME (256u << 10)
#define DQI_CAPTURE_MAX_BLOCK (320u << 10) // maximum bytes of a record, which must be contiguous in memory

// Properties of one interface of a capture.
typedef struct dqi_capture_link {
    uint32_t type;     // link type
    uint32_t snaplen;  // 0: no limit
    uint64_t mul, div; // ns per tick: mul / div; if div is 0, mul / 2^shift
    uint8_t shift;
    int64_t offset_ns; // ns since the epoch of tick 0
    int32_t fcs;       // bytes of frame check sequence at the end of each frame; -1: unknown
    char name[DQI_ORIGIN_NAME], about[DQI_ORIGIN_NAME]; // empty: unknown
} dqi_capture_link;

// Parser state. Zeroed: at the start of a capture.
typedef struct dqi_capture {
    enum { DQI_CAPTURE_NEW, DQI_CAPTURE_PCAP, DQI_CAPTURE_PCAPNG } form;
    bool swapped;          // the file's byte order differs from the host's
    uint32_t n_links, cap; // of the current section
    dqi_capture_link *links;
    uint32_t section; // number of sections started
    uint64_t unread;  // count of skipped blocks with content: names, secrets, custom blocks
    char why[160];    // set by DQI_CAPTURE_BAD
} dqi_capture;

typedef struct dqi_capture_packet {
    uint8_t *data;
    uint32_t len;       // captured bytes
    uint32_t orig;      // original length
    uint32_t link;      // link type
    uint32_t interface; // index in the section
    uint32_t flags;     // epb_flags, valid if has_flags
    bool has_flags;
    uint64_t dropped; // packets lost between this one and its predecessor
    const uint8_t *comment;
    uint32_t comment_len; // 0: none
    int64_t ts;           // ns since the epoch; DQ_NO_TIME: simple packet block
} dqi_capture_packet;

enum {
    DQI_CAPTURE_PACKET, // the first *used bytes were a packet
    DQI_CAPTURE_OTHER,  // *used bytes, possibly more than n, are another record
    DQI_CAPTURE_MORE,   // *used > n bytes are needed to continue; at the end of the file: truncated
    DQI_CAPTURE_BAD,    // error in c->why; parsing cannot continue
};

// Parses the record at the start of the n bytes at p.
int dqi_capture_next(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used);
// Returns to the start state; frees all memory.
void dqi_capture_reset(dqi_capture *c);

// Converts the packet to an Ethernet frame in place: at least 16 bytes before it must be writable. False: not
// possible; p is unchanged.
bool dqi_capture_frame(dqi_capture_packet *p);
// Reports whether some packets of this link type can be converted.
bool dqi_capture_link_known(uint32_t type);
// Returns the name of a link type, "link type" if it is unknown.
const char *dqi_capture_link_name(uint32_t type);

// Returns the four bytes at p, in the file's byte order.
uint32_t dqi_capture_u32(const dqi_capture *c, const uint8_t *p);

// Shared by capture_file.c and capture_ng.c.
uint16_t dqi_capture_u16(const dqi_capture *c, const uint8_t *p);
int dqi_capture_bad(dqi_capture *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool dqi_capture_add_link(dqi_capture *c, const dqi_capture_link *l);
int dqi_capture_more(size_t need, size_t *used);
int dqi_capture_next_block(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used);

#endif
