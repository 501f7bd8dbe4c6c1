// dq_writer.h: writer stages: files, and external consumers.
#ifndef DQ_WRITER_H
#define DQ_WRITER_H

#include "core/dq_burst.h"

#define DQ_MAX_DIRS 16 // per writer

// File formats (format.c).
typedef enum dq_writer_kind {
    DQ_WRITE_PCAP,
    DQ_WRITE_RAW_FILE,    // one file of all packets, back to back
    DQ_WRITE_RAW_PACKETS, // a file per packet
    DQ_WRITE_RAW_BURSTS,  // a file per burst
    DQ_WRITE_PCAPNG,
    DQ_WRITE_BLOCKS, // aggregates back to back
    DQ_WRITE_SIGMF,  // samples back to back, with a metadata file beside them
    DQ_WRITE_DADA,   // aggregates back to back behind a text header (PSRDADA)
    DQ_WRITE_GUPPI,  // aggregates back to back, each behind a text header (GUPPI RAW)
    DQ_WRITE_ZARR,   // block files that are the shards of a Zarr array beside them
} dq_writer_kind;

enum dq_each { DQ_EACH_PACKET = 1, DQ_EACH_BURST };

// Public properties of a format. Files are DIR/PREFIX and the suffix, or DIR/PREFIX_INDEX and the suffix.
typedef struct dq_format {
    const char *kind;    // writer method in scripts: s:write_KIND
    const char *choice;  // keyword that selects it within its kind; empty: the only one
    const char *suffix;  // of file names
    const char *beside;  // suffix of a second file that belongs to each file; NULL: none
    const char *options; // additional options of its writers, separated by spaces
    int32_t each;        // dq_each: unit with a file of its own; 0: contiguous files
    bool aggregates;     // accepts only aggregates: another shape starts another file
} dq_format;
// Returns the format of this kind; NULL: past the last. Any thread.
const dq_format *dq_format_of(int kind);

typedef struct dq_writer_conf {
    int32_t kind;    // dq_writer_kind
    uint32_t n_dirs; // bursts are distributed over the folders
    char dirs[DQ_MAX_DIRS][1024], prefix[256];
    uint32_t packet_data_offset; // raw: bytes skipped at the start of each packet
    uint32_t snaplen;            // pcap: 0 = whole packets
    int32_t policy;              // dq_policy when the writer is behind
    bool micro;                  // pcap: timestamps in us instead of ns
    bool append;                 // pcap: append to an existing file
    bool overwrite;              // replace existing files; not rotated files with an index
    bool by_slot;                // blocks: one bit of the bitmap per slot, not per packet
    char text[3072];       // pcapng: section comment; blocks, zarr: user text in each header; sigmf: JSON
                           // members of the global object; dada, guppi: lines or cards
    char capture[64];      // sigmf: JSON members of each capture
    uint32_t sample_bytes; // sigmf, zarr: of one sample; zarr: 0: unknown
    char element[16];      // zarr: data type of the samples' parts; empty: follows from the data
    bool two_parts, big_endian; // zarr: samples are complex; byte order of the parts
    char attributes[4096];      // zarr: JSON members of the array's attributes; may be empty
    int32_t sample_dtype; // recordings: dq_dtype of its parts; DQ_DTYPE_BYTES: a type that no stage makes
    // Limits at which a file ends: bytes, packets, age; 0: no limit. With any of them, and for blocks, names
    // are PREFIX_INDEX, counted over all folders after existing files. Not for a file per packet or burst.
    uint64_t rotate_bytes, rotate_packets;
    int64_t rotate_ns;
    uint64_t quota;     // bytes of all files of this run, 0: no limit; packets beyond it are not written
    bool delete_oldest; // delete the oldest file at the quota instead
    bool enough;        // reaching the quota is the intended end, not an error
} dq_writer_conf;

int dq_stage_writer(dq_session *s, const char *name, const dq_writer_conf *conf, dq_stage **out,
                    dq_diag *diag);

// Writes the text of the writer's first error, empty if none; the path of the current or last file of a
// folder, empty if none. dq_writer_path returns false if the writer has no such folder.
void dq_writer_error(dq_stage *writer, char *buf, size_t len);
bool dq_writer_path(dq_stage *writer, uint32_t dir, char *buf, size_t len);
// A file of a writer, except those per packet or burst.
typedef struct dq_writer_file {
    char path[1024 + 256 + 64];
    uint64_t bytes, packets;          // final size; packets (aggregates) in it
    int64_t first_ns, last_ns;        // first and last receive times; DQ_NO_TIME: none
    uint64_t first_batch, last_batch; // aggregates: first and last id
    uint32_t crc32c;                  // of the file
    bool closed, deleted;             // until it is closed only path is valid; deleted: for the quota
} dq_writer_file;
// Reads the file with this number, from 0 in the order of creation; false: past the last. Any thread.
bool dq_writer_file_read(dq_stage *writer, uint32_t number, dq_writer_file *out);

// Creates a stage with one external consumer, whose line in the ledger has this kind (dq_line_kind). At most
// depth bursts are queued.
int dq_stage_external(dq_session *s, const char *name, int line_kind, uint32_t depth, int policy,
                      dq_stage **out, dq_diag *diag);
// Waits for the next burst, whose reference the consumer gets. *tag: that of dq_external_put, 0: from a
// pipe. NULL: the outlet has ended and is empty. One thread at a time; blocks.
dq_burst *dq_external_take(dq_stage *outlet, dq_view *view, uint32_t *tag);
// Returns the address of bytes of a segment in device-only memory of the burst taken last, from `at` on;
// reduces *n to the bytes available there. Valid until the next call; packets, segments and offsets only
// increase. NULL: the GPU is lost. Consumer's thread; blocks.
const uint8_t *dq_external_bytes(dq_stage *outlet, uint32_t seg, uint32_t i, uint32_t at, uint32_t *n);
// Queues b for the consumer; the caller keeps its reference, and the packets become read-only. tag: above 0.
// DQ_OK, DQ_NO_SPACE_AVAILABLE (depth bursts are queued), DQ_NOT_READY (it has ended), or the error of
// reaching its GPU's memory. Any thread; never blocks.
int dq_external_put(dq_stage *outlet, dq_burst *b, uint32_t tag);
// Ends the outlet: later bursts are dropped as stopped. Any thread.
void dq_external_end(dq_stage *outlet);
// Report the outcome of taken packets, exactly once for each. reason: dq_reason; extra: dq_extra. Any thread.
void dq_external_out(dq_stage *outlet, uint64_t packets, uint64_t bytes);
void dq_external_lost(dq_stage *outlet, int reason, uint64_t packets);
void dq_external_note(dq_stage *outlet, int extra, uint64_t n);
// Adds n (may be negative) to the consumer's pending operations: virtual time does not advance meanwhile. Any
// thread.
void dq_external_busy(dq_stage *outlet, int n);

// Names and comment of one burst. prefix: for a file per packet, PREFIX_I for its packet I, from 0, instead
// of the writer's index; empty: none. comment: of its packets, in a pcapng; empty: none.
typedef struct dq_write_names {
    char prefix[208], comment[208]; // at most 200 bytes each
    uint32_t packet_data_offset;    // with a prefix: replaces the writer's
} dq_write_names;

// Allocates the staging memory of the writer's threads for these regions of a GPU. Without it, the first
// burst from them allocates it and takes longer. Control thread.
int dq_writer_reach(dq_stage *writer, dq_region *const *regions, uint32_t n, dq_diag *diag);

// Passes b to a writer by reference, in a pipe or not; the caller keeps its own, and the packets become
// read-only. names: NULL, or the burst's own; copied. *out: an operation with one part per packet: completed
// once written to a file (system call), or failed. The caller frees it with dq_op_free. DQ_OK,
// DQ_NO_SPACE_AVAILABLE (the ring is full), DQ_NOT_READY (the writer has finished), DQ_INVALID_PARAMETER (the
// writer's kind does not support these names). Any thread; never blocks.
int dq_writer_write(dq_stage *writer, dq_burst *b, const dq_write_names *names, dq_op **out);

// Returns the bytes of a reordered burst as a block of a block file (BLOCKS.md), with header and padding, and
// those of the header; 0: not reordered. The other two require reordered bursts. Any thread that holds a
// reference.
uint64_t dq_block_bytes(const dq_burst *b, uint32_t *header_bytes);
// Writes the header of a file of such blocks, DQ_BLOCK_FILE_HEADER bytes; text: user text; index: of the
// file.
#define DQ_BLOCK_FILE_HEADER 4096
void dq_block_file_header(const dq_burst *b, const char *writer, const char *text, uint64_t index,
                          uint8_t *dst);
// Writes the block header, header_bytes long.
void dq_block_header(const dq_burst *b, uint8_t *dst);

#endif
