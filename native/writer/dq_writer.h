// dq_writer.h: writers: files, and writes done elsewhere.
#ifndef DQ_WRITER_H
#define DQ_WRITER_H

#include "core/dq_burst.h"

#define DQ_MAX_DIRS 16 // of one writer

// The formats of files (format.c).
typedef enum dq_writer_kind {
    DQ_WRITE_PCAP,
    DQ_WRITE_RAW_PACKETS, // the bytes of each packet
    DQ_WRITE_RAW_BURSTS,  // the same of each burst
    DQ_WRITE_RAW_FILE,    // the same of all packets, back to back
    DQ_WRITE_PCAPNG,
    DQ_WRITE_BLOCKS, // aggregates back to back
} dq_writer_kind;

enum dq_each { DQ_EACH_PACKET = 1, DQ_EACH_BURST };

// What is public of a format. Files are DIR/PREFIX and the suffix, or DIR/PREFIX_INDEX and the suffix.
typedef struct dq_format {
    const char *kind;    // of its writers: what s:write_KIND makes
    const char *choice;  // the word that chooses it among those of its kind; empty: there is but one
    const char *suffix;  // of the files' names
    const char *options; // that its writers have beside those of all writers, with spaces between
    int32_t each;        // dq_each: what has a file of its own; 0: files are one after the other
    bool aggregates;     // takes aggregates alone: another shape begins another file
} dq_format;
// The format of this kind; NULL: there is none, nor behind it. Any thread.
const dq_format *dq_format_of(int kind);

typedef struct dq_writer_conf {
    int32_t kind;    // dq_writer_kind
    uint32_t n_dirs; // bursts go to the folders in turn
    char dirs[DQ_MAX_DIRS][1024], prefix[256];
    uint32_t packet_data_offset; // raw: bytes left out at the front of each packet
    uint32_t snaplen;            // pcap: 0 = whole packets
    int32_t policy;              // dq_policy when the writer is behind
    bool micro;                  // pcap: times in µs, not ns
    bool append;                 // pcap: go on behind what the file has
    bool overwrite;  // files of this run's names are replaced; not those with an index that rotate
    bool by_slot;    // blocks: a bit of the bitmap for each slot, not for each packet
    char text[3072]; // pcapng: the section's comment; blocks: the user's text in each header
    // Files end before they are larger than this, or have more packets, or when they are older; 0: no limit.
    // With one of them, and of blocks, names are PREFIX_INDEX, over all folders, behind those that are
    // there. Not for a file per packet or burst.
    uint64_t rotate_bytes, rotate_packets;
    int64_t rotate_ns;
    uint64_t quota;     // bytes of all files of this run, 0: no limit; no packet is written from there on
    bool delete_oldest; // at the quota the oldest file goes instead
    bool enough;        // at the quota the writer has what it was to write: that is no error
} dq_writer_conf;

int dq_stage_writer(dq_session *s, const char *name, const dq_writer_conf *conf, dq_stage **out,
                    dq_diag *diag);

// The writer's first error in words, empty when there is none; and the path of the file that it writes or
// wrote last in a folder, empty when there is none: false when the writer has no such folder.
void dq_writer_error(dq_stage *writer, char *buf, size_t len);
bool dq_writer_path(dq_stage *writer, uint32_t dir, char *buf, size_t len);
// One of the files of a writer, but for those of a file per packet or burst.
typedef struct dq_writer_file {
    char path[1024 + 256 + 64];
    uint64_t bytes, packets;   // bytes at its end; packets (aggregates) that are in it
    int64_t first_ns, last_ns; // receive times of the first and the last packet that had one; DQ_NO_TIME:
                               // none had
    uint64_t first_batch, last_batch; // aggregates: their ids
    uint32_t crc32c;                  // of the file
    bool closed, deleted;             // until it is closed only the path is right; deleted: for the quota
} dq_writer_file;
// Reads the file of this number, from 0 on in the order in which they were begun; false: there are not so
// many. Any thread.
bool dq_writer_file_read(dq_stage *writer, uint32_t number, dq_writer_file *out);

// A writer whose work somebody else does: one consumer. At most depth bursts wait for it.
int dq_stage_external(dq_session *s, const char *name, uint32_t depth, int policy, dq_stage **out,
                      dq_diag *diag);
// Waits for the next burst: the consumer's reference. *tag: what it was given with, 0: it came through a
// pipe. NULL: the outlet has ended, and nothing is left. One thread at a time; blocks.
dq_burst *dq_external_take(dq_stage *outlet, dq_view *view, uint32_t *tag);
// Where the CPU finds *n bytes from `at` on of a segment that it can't read, of the burst that was taken
// last, or as many of them as were brought: *n. Good until the next call; packets, segments and bytes only go
// forward. NULL: their GPU is lost. The consumer; blocks.
const uint8_t *dq_external_bytes(dq_stage *outlet, uint32_t seg, uint32_t i, uint32_t at, uint32_t *n);
// Hands b over; the caller keeps its own reference, and the packets are read-only from now on. tag: above 0.
// DQ_OK, DQ_NO_SPACE_AVAILABLE (depth bursts wait), DQ_NOT_READY (it has ended), or
// why its GPU's memory is out of reach. Any thread; never blocks.
int dq_external_give(dq_stage *outlet, dq_burst *b, uint32_t tag);
// Nothing more comes: what is pushed from now on is dropped as stopped. Any thread.
void dq_external_end(dq_stage *outlet);
// What became of so many of the packets that were taken; every one is told of once. reason: dq_reason; extra:
// dq_extra. Any thread.
void dq_external_out(dq_stage *outlet, uint64_t packets, uint64_t bytes);
void dq_external_lost(dq_stage *outlet, int reason, uint64_t packets);
void dq_external_note(dq_stage *outlet, int extra, uint64_t n);
// So many more (fewer) things that the consumer began are not over: virtual time stands still meanwhile. Any
// thread.
void dq_external_busy(dq_stage *outlet, int n);

// What one burst has of its own. prefix: of a file per packet, PREFIX_I for its packet I, from 0, instead of
// the writer's own count; empty: none. comment: of its packets, in a pcapng; empty: none.
typedef struct dq_write_names {
    char prefix[208], comment[208]; // at most 200 bytes each
    uint32_t packet_data_offset;    // with a prefix: instead of the writer's
} dq_write_names;

// From now on the writer's threads have staging memory for what lies in these regions of a GPU. What is
// handed over makes them have it, too, and takes longer where it is the first. Control thread.
int dq_writer_reach(dq_stage *writer, dq_region *const *regions, uint32_t n, dq_diag *diag);

// Hands b to a writer by reference, in a pipe or not; the caller keeps its own, and the packets are read-only
// from now on. names: NULL, or what the burst has of its own; copied. *out: the operation, of as many parts
// as there are packets: completed, they are in a file, handed to the system; failed, they will not be. The
// caller's until dq_op_free. DQ_OK, DQ_NO_SPACE_AVAILABLE (the ring is full), DQ_NOT_READY (the writer has
// finished), DQ_INVALID_PARAMETER (another kind of writer takes these). Any thread; never blocks.
int dq_writer_write(dq_stage *writer, dq_burst *b, const dq_write_names *names, dq_op **out);

// A reordered burst as a block of a block file (BLOCKS.md), for who writes one: its bytes with header and
// padding, and those of the header; 0: it is not reordered. The other two are for reordered bursts. While a
// reference lasts, any thread.
uint64_t dq_block_bytes(const dq_burst *b, uint32_t *header_bytes);
// Writes the header of a file of such blocks, DQ_BLOCK_FILE_HEADER bytes; text: the user's; index: of the
// file.
#define DQ_BLOCK_FILE_HEADER 4096
void dq_block_file_header(const dq_burst *b, const char *writer, const char *text, uint64_t index,
                          uint8_t *dst);
// Writes the block's header, header_bytes.
void dq_block_header(const dq_burst *b, uint8_t *dst);

#endif
