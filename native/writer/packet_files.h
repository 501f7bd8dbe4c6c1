// packet_files.h: a file per packet or burst: DIR/PREFIX_INDEX.
#ifndef DQI_PACKET_FILES_H
#define DQI_PACKET_FILES_H

#include "writer/buffered_file.h"
#include "writer/staged.h"

typedef struct dqi_packet_files {
    int dir; // descriptor of the folder; -1: closed
    const char *prefix;
    uint32_t skip;          // bytes skipped at the start of each packet
    bool overwrite;         // replace existing files
    _Atomic uint64_t *next; // index of the next file, over all folders
    dqi_staged *staged;     // walk over the burst, if the CPU can't read all of it
    bool refused;           // cuFile rejects files here
    char indirect[160];     // why the host copied data; empty: it did not, or had to
} dqi_packet_files;

// Opens the folder. conf (prefix, packet_data_offset, overwrite), next and staged must outlive r. 0, or
// -errno. Blocks. One thread at a time, as for the following functions.
int dqi_packet_files_open(dqi_packet_files *r, const char *dir, const dq_writer_conf *conf,
                          _Atomic uint64_t *next, dqi_staged *staged);
// Writes packets [first, first + n) of b to one file, with the next free index (overwrite: replacing an
// existing file); *index: its index. 0, or -errno: the file is then removed and the packets are not in the
// tally; its index is reused unless another folder has taken the next one. Blocks.
int dqi_packet_files_add(dqi_packet_files *r, const dq_burst *b, uint32_t first, uint32_t n, uint64_t *index,
                         dqi_file_tally *tally);
// Writes packet i of b to PREFIX_I of these names, like dqi_packet_files_add. 0, or -errno (-EEXIST: such a
// file exists and is kept). Blocks.
int dqi_packet_files_add_named(dqi_packet_files *r, const dq_write_names *names, const dq_burst *b,
                               uint32_t i, dqi_file_tally *tally);
void dqi_packet_files_close(dqi_packet_files *r);

#endif
