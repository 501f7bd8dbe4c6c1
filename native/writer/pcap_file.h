// pcap_file.h: a capture, as pcap or pcapng.
#ifndef DQI_PCAP_FILE_H
#define DQI_PCAP_FILE_H

#include "writer/buffered_file.h"
#include "writer/pcapng.h"
#include "writer/pseudo_header.h"
#include "core/session.h"

typedef struct dqi_pcap_conf {
    bool ng;             // pcapng
    bool micro;          // times in µs, not ns
    dqi_disk_mode mode;  // KEEP: goes on behind what is in the file
    uint32_t snaplen;    // bytes of each packet to keep, 0: DQI_CAPTURE_MAX_FRAME
    const char *comment; // pcapng: of the section; NULL or empty: none
} dqi_pcap_conf;

#define DQI_PCAP_SEALS 1024
#define DQI_PCAP_LINKS 256 // interfaces of captures that a file describes

// A frame whose checksums are computed once a GPU has brought its payload.
typedef struct dqi_pcap_seal {
    uint8_t *frame;
    uint32_t len;
} dqi_pcap_seal;

// An interface that a pcapng file has described.
typedef struct dqi_pcap_iface {
    const dq_iface *iface;       // NULL: packets of no queue
    const dqi_origin_link *link; // of the capture that it replays; NULL: nothing is said of it
    uint64_t end;                // of its description in the file
} dqi_pcap_iface;

typedef struct dqi_pcap_file {
    dqi_buffered_file file;
    dqi_pcap_conf conf;
    dqi_talks *talks;  // made for the first payload
    uint64_t failures; // of file, that ifaces knows of
    int64_t last_ns;   // time of the last record
    uint32_t n_ifaces, n_seals;
    // The last ones are for interfaces themselves, where captures have more than DQI_PCAP_LINKS.
    dqi_pcap_iface ifaces[DQI_PCAP_LINKS + DQI_MAX_IFACES + DQI_MAX_STAGE_QUEUES + 1];
    dqi_pcap_seal seals[DQI_PCAP_SEALS]; // of the buffer being filled
} dqi_pcap_file;

// Opens the file (see dqi_buffered_file_open) and writes its header. 0, -errno or a dqi_file_error: then
// nothing is left to close. Blocks. One thread at a time, as for all that follow.
int dqi_pcap_open(dqi_pcap_file *p, const char *path, const dqi_pcap_conf *conf, bool overlap,
                  dqi_file_tally *tally);
// Adds packet i of b with the time ts (ns since the epoch): a frame as it is, a payload with made-up headers.
// DQ_NO_TIME: as a simple packet block where the format has these and nothing else is said of the packet,
// else with the time of the record before it, or 0. b isn't needed afterwards. 0, or -errno of a flush that
// it took: then packet i itself is not in the file, nor in the tally.
int dqi_pcap_add(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally);
// pcapng: adds the statistics of the interfaces at the time now (ns since the epoch), with a comment.
int dqi_pcap_end(dqi_pcap_file *p, int64_t now, const char *comment, dqi_file_tally *tally);
// Closes the file: what was not flushed (dqi_buffered_file_flush) is discarded. See dqi_buffered_file_close.
int dqi_pcap_close(dqi_pcap_file *p);

#endif
