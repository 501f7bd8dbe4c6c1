// pcap_tail.h: finds the end of the last complete record of a capture, for appending.
#ifndef DQI_PCAP_TAIL_H
#define DQI_PCAP_TAIL_H

#include "writer/pcap_file.h"

typedef struct dqi_pcap_tail {
    uint64_t size, whole; // of the file, 0: empty; end of the last complete record
    uint32_t crc;         // CRC-32C up to `whole`
} dqi_pcap_tail;

// Reads the whole file. It must be a pcap with this configuration, or with ng a pcapng with any sections. 0,
// -errno or a dqi_file_error.
int dqi_pcap_find_tail(const char *path, const dqi_pcap_conf *conf, dqi_pcap_tail *out);

#endif
