// pcap_file.h: pcap and pcapng capture files.
#ifndef DQI_PCAP_FILE_H
#define DQI_PCAP_FILE_H

#include "pipeline/session.h"
#include "writer/buffered_file.h"
#include "writer/pcapng.h"
#include "writer/pseudo_header.h"

typedef struct dqi_pcap_conf {
    bool ng;             // pcapng
    bool micro;          // timestamps in us instead of ns
    dqi_disk_mode mode;  // KEEP: append to the existing file
    uint32_t snaplen;    // maximum bytes per packet, 0: DQI_CAPTURE_MAX_FRAME
    const char *comment; // pcapng: section comment; NULL or empty: none
} dqi_pcap_conf;

#define DQI_PCAP_SEALS 1024
#define DQI_PCAP_LINKS 256 // maximum described interfaces of captures per file

// A frame whose checksums are computed once a GPU has copied its payload.
typedef struct dqi_pcap_seal {
    uint8_t *frame;
    uint32_t len;
} dqi_pcap_seal;

// An interface described in a pcapng file.
typedef struct dqi_pcap_iface {
    const dq_iface *iface;       // NULL: packets without a queue
    const dqi_origin_link *link; // of the replayed capture; NULL: none
    uint64_t end;                // end of its description in the file
} dqi_pcap_iface;

typedef struct dqi_pcap_file {
    dqi_buffered_file file;
    dqi_pcap_conf conf;
    dqi_talks *talks;  // allocated for the first payload
    uint64_t failures; // file.failures as of ifaces
    int64_t last_ns;   // time of the last record
    uint32_t n_ifaces, n_seals;
    // The last ones are for the interfaces themselves, if captures have more than DQI_PCAP_LINKS.
    dqi_pcap_iface ifaces[DQI_PCAP_LINKS + DQI_MAX_IFACES + DQI_MAX_STAGE_QUEUES + 1];
    dqi_pcap_seal seals[DQI_PCAP_SEALS]; // in the buffer being filled
} dqi_pcap_file;

// Opens the file (see dqi_buffered_file_open) and writes its header. 0, -errno or a dqi_file_error: nothing
// to close then. Blocks. One thread at a time, as for the following functions.
int dqi_pcap_open(dqi_pcap_file *p, const char *path, const dqi_pcap_conf *conf, bool overlap,
                  dqi_file_tally *tally);
// Adds packet i of b with the time ts (ns since the epoch): a frame unchanged, a payload with generated
// headers. DQ_NO_TIME: as a simple packet block if the format has these and the packet has no other metadata,
// otherwise with the time of the previous record, or 0. b is not needed afterwards. 0, or -errno of a flush:
// packet i is then neither in the file nor in the tally.
int dqi_pcap_add(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally);
// pcapng: adds the interface statistics at the time now (ns since the epoch), with a comment.
int dqi_pcap_end(dqi_pcap_file *p, int64_t now, const char *comment, dqi_file_tally *tally);
// Closes the file: unflushed data (dqi_buffered_file_flush) are discarded. See dqi_buffered_file_close.
int dqi_pcap_close(dqi_pcap_file *p);

#endif
