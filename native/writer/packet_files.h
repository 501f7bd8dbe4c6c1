// packet_files.h: packets as files: DIR/PREFIX_INDEX.
#ifndef DQI_PACKET_FILES_H
#define DQI_PACKET_FILES_H

#include "writer/buffered_file.h"
#include "writer/staged.h"

typedef struct dqi_packet_files {
    int dir; // descriptor of the folder; -1: closed
    const char *prefix;
    uint32_t skip;          // bytes left out at the front of each packet
    bool overwrite;         // a file of that name is replaced
    _Atomic uint64_t *next; // index of the next file, of all folders
    dqi_staged *staged;     // begun with the burst, where the CPU can't read all of it
    bool refused;           // cuFile doesn't take files here
    char indirect[160];     // why something was copied by the host; empty: nothing that need not be
} dqi_packet_files;

// Opens the folder. conf (prefix, packet_data_offset, overwrite), next and staged must outlive r. 0, or
// -errno. Blocks. One thread at a time, as for all that follow.
int dqi_packet_files_open(dqi_packet_files *r, const char *dir, const dq_writer_conf *conf,
                          _Atomic uint64_t *next, dqi_staged *staged);
// Writes packets [first, first + n) of b into one file, with the next index whose name is free (overwrite:
// replacing one of that name); *index: its index. 0, or -errno: then the file is removed and the packets are
// not in the tally; its index stays free unless another folder has taken the one behind it. Blocks.
int dqi_packet_files_add(dqi_packet_files *r, const dq_burst *b, uint32_t first, uint32_t n, uint64_t *index,
                         dqi_file_tally *tally);
// Writes packet i of b into PREFIX_I of these names, as dqi_packet_files_add. 0, or -errno (-EEXIST: a file
// of that name is there, and stays). Blocks.
int dqi_packet_files_add_named(dqi_packet_files *r, const dq_write_names *names, const dq_burst *b,
                               uint32_t i, dqi_file_tally *tally);
void dqi_packet_files_close(dqi_packet_files *r);

#endif
