// pcap_tail.h: where the last whole record of a capture ends, for going on behind it.
#ifndef DQI_PCAP_TAIL_H
#define DQI_PCAP_TAIL_H

#include "writer/pcap_file.h"

typedef struct dqi_pcap_tail {
    uint64_t size, whole; // of the file, 0: it is empty; up to its last whole record
    uint32_t crc;         // CRC-32C up to there
} dqi_pcap_tail;

// Reads the whole file. It has to be a pcap that this configuration would have begun, or with ng a pcapng,
// whatever its sections are. 0, -errno or a dqi_file_error.
int dqi_pcap_find_tail(const char *path, const dqi_pcap_conf *conf, dqi_pcap_tail *out);

#endif
