// raw_file.h: packets as files, one each: DIR/PREFIX_INDEX.
#ifndef DQI_RAW_FILE_H
#define DQI_RAW_FILE_H

#include "block_file.h"
#include "dqi.h"

typedef struct dqi_raw_file {
    int dir; // descriptor of the folder; -1: closed
    const char *prefix;
    uint32_t skip; // bytes left out at the front of each packet
    uint64_t next; // index of the next file
} dqi_raw_file;

// Opens the folder. prefix must outlive r. 0, or -errno. Blocks. One thread at a time, as for all that
// follow.
int dqi_raw_open(dqi_raw_file *r, const char *dir, const char *prefix, uint32_t skip);
// Writes packet i of b into a file of its own, replacing one of that name. 0, or -errno: then the file is
// removed, its index stays free and the packet is not in the tally. Blocks.
int dqi_raw_add(dqi_raw_file *r, const dq_burst *b, uint32_t i, dqi_file_tally *tally);
void dqi_raw_close(dqi_raw_file *r);

#endif
