// block_file.h: a file that grows by whole records, written in large blocks.
#ifndef DQI_BLOCK_FILE_H
#define DQI_BLOCK_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DQI_BLOCK_BYTES (1u << 20)

// One record of the block: where it ends, and what it holds of a packet.
typedef struct dqi_block_mark {
    uint32_t end;
    uint32_t bytes; // of the packet, without headers of the record
    bool last;      // the packet ends here
    bool cut;       // and was longer
} dqi_block_mark;

typedef struct dqi_block_file {
    int fd;       // -1: closed
    bool regular; // can be cut back; not a pipe or a device
    // Not 0: the writer is to end, and waits no longer for a pipe's reader. NULL: it waits for ever.
    const _Atomic uint32_t *quit;
    uint32_t used, n_marks, cap_marks;
    uint64_t size; // bytes of whole records in the file
    uint8_t *buf;
    dqi_block_mark *marks;
} dqi_block_file;

// What became of the records handed in; each call adds to it.
typedef struct dqi_file_tally {
    uint64_t packets, packet_bytes, cut; // that are in a file
    uint64_t lost;                       // packets that are not
    uint64_t files, file_bytes;
    int64_t write_ns; // spent in the system's calls
} dqi_file_tally;

// Opens and empties the file; it is locked against other writers (flock) as long as it is open. 0, or -errno
// (-EWOULDBLOCK: somebody else writes it, -ENXIO: it is a pipe that nobody reads); after a failure nothing is
// left to close. Blocks. Writer's thread or, before that exists, the control thread; so are all others.
int dqi_block_open(dqi_block_file *f, const char *path);
// Room for n <= DQI_BLOCK_BYTES bytes behind what the block holds, or NULL: flush first.
uint8_t *dqi_block_room(dqi_block_file *f, uint32_t n);
// Adds the n bytes that now lie at dqi_block_room to the block as one record.
void dqi_block_commit(dqi_block_file *f, uint32_t n, uint32_t packet_bytes, bool last, bool cut);
// Writes the block. 0, or -errno: then the file ends with the last record that fitted, and the block's others
// are lost; the block is empty either way. -ENOENT: the file was removed, -ETIMEDOUT: a pipe's
// reader stood still until after quit. Blocks.
int dqi_block_flush(dqi_block_file *f, dqi_file_tally *tally);
// Closes the file; what the block still holds is discarded. 0, or -errno as of dqi_block_flush. Fine on a
// closed file.
int dqi_block_close(dqi_block_file *f);

#endif
