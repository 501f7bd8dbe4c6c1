// pcap_file.h: a capture in the pcap format with nanosecond times.
#ifndef DQI_PCAP_FILE_H
#define DQI_PCAP_FILE_H

#include "block_file.h"
#include "pseudo_header.h"

#define DQI_PCAP_MAX_SNAPLEN 262144 // the longest record that libpcap's readers take

typedef struct dqi_pcap_file {
    dqi_block_file file;
    uint32_t snaplen;
    dqi_talks *talks; // made for the first payload
} dqi_pcap_file;

// Creates or empties the file (see dqi_block_open) and writes its header. snaplen: bytes of each packet to
// keep, 0: MAX_SNAPLEN. 0, or -errno: then nothing is left to close. Blocks. One thread at a time, as for all
// that follow.
int dqi_pcap_open(dqi_pcap_file *p, const char *path, uint32_t snaplen, bool overlap, dqi_file_tally *tally);
// Adds packet i of b with the time ts (ns since the epoch): a frame as it is, a payload with made-up headers.
// b isn't needed afterwards. 0, or -errno of a flush that it took: then packet i itself is not in the file,
// nor in the tally.
int dqi_pcap_add(dqi_pcap_file *p, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *tally);
// Closes the file: what was not flushed (dqi_block_flush) is discarded. See dqi_block_close.
int dqi_pcap_close(dqi_pcap_file *p);

// Copies at most max bytes of packet i, from byte skip on, over all its segments, to dst; the number copied.
uint32_t dqi_gather(const dq_burst *b, uint32_t i, uint32_t skip, uint8_t *dst, uint32_t max);

#endif
