// dq_reorder.h: packets into aggregates, and conversions of their elements.
#ifndef DQ_REORDER_H
#define DQ_REORDER_H

#include "core/dq_core.h"
#include "program/dq_program.h"

// Types of the elements of an aggregate's data.
typedef enum dq_dtype {
    DQ_DTYPE_BYTES, // as it came
    DQ_DTYPE_INT4,  // two a byte, the high half first
    DQ_DTYPE_INT8,
    DQ_DTYPE_INT16,
    DQ_DTYPE_INT32,
    DQ_DTYPE_FP16,
    DQ_DTYPE_BF16,
    DQ_DTYPE_FP32,
    DQ_DTYPE_FP64,
    DQ_DTYPES
} dq_dtype;

// What the elements of payloads are, and what they become (dq_dtype): int4 to int32 become fp16, bf16, fp32,
// fp64, int32 or int8. Both BYTES: they stay as they are. k_convert.h has the rounding.
typedef struct dq_data_types {
    int32_t input, output;
    int32_t network; // 1: input has its highest byte first; 0: the host's order
} dq_data_types;

// As scripts write it: "int16"; NULL: there is no such type.
const char *dq_dtype_name(int dtype);

#define DQ_FILL_KEEP     (-1) // gaps keep what the stage's buffer had
#define DQ_MAX_WINDOW    64
#define DQ_LEAST_BATCHES 4  // that numbers have to tell apart
#define DQ_REORDER_LEN   52 // longest name of a reorder stage

// Where packets belong. Either seq: a number of seq_bits bits counts the packets, `slots` to a batch, on and
// on; or batch and slot.
typedef struct dq_reorder_conf {
    dq_region *region; // an aggregate fills one buffer
    dq_number seq;
    uint32_t seq_bits;
    dq_number batch, slot;
    uint64_t wrap;         // batch is less than this, at least DQ_LEAST_BATCHES, and goes on at 0; 0: 2^64
    dq_number offset;      // bytes in the slot, a multiple of packet_bytes
    dq_number extra;       // kept for each slot
    dq_number source;      // what came and is missing is counted by it,
    int32_t source_peer;   // or, 1, by the packet's peer; n 0 and 0: not by source
    uint32_t slots;        // of a batch
    uint32_t slot_bytes;   // 0: the longest payload so far, with buf_size / slots as its limit
    uint32_t packet_bytes; // with offset: payload of a packet, the last of a slot may be shorter; else 0
    uint32_t segment, payload_offset; // where the payload begins: bytes from the segment's start,
    int32_t at_payload;               // 1: from the innermost payload's (segment 0)
    dq_number header;                 // further bytes in front of it, of packets that say so themselves
    dq_number length;                 // its bytes, where packets say so; those that lack some are bad_place
    dq_data_types types;              // of payloads; slot_bytes, packet_bytes and offset are bytes of input
    uint32_t window;                  // batches open at a time; 0: up to 4, by the region's buffers
    int64_t timeout_ns;               // of a batch, from its first packet; 0: none
    int32_t fill;                     // of gaps: a byte, or DQ_FILL_KEEP
    int32_t drop_incomplete;          // 1: only complete batches are handed over
    int32_t wait;   // 1: a queue that is ahead of others waits for them, at most until timeout_ns
    int32_t policy; // dq_policy when no buffer is free
    int32_t
        by_gpu; // 1: a GPU moves payloads, into a region of any kind; those of a GPU's memory it always does
    const uint32_t *flow_ids; // only packets of these flows, others pass; n_flow_ids 0: all
    uint32_t n_flow_ids;
} dq_reorder_conf;

// A stage that puts packets together to aggregates (dq_aggregate), from the open on. These come in order, one
// a burst, from *aggregates, a receive queue of the stage's own: it is served by whoever serves the stage's
// first source, and feeds pipes like any other. Packets that the stage doesn't take go on in its pipe.
// INVALID_PARAMETER names what can't be.
int dq_stage_reorder(dq_session *s, const char *name, const dq_reorder_conf *conf, dq_stage **out,
                     dq_queue **aggregates, dq_diag *diag);

#define DQ_HEAP_ITEMS     64 // that are kept of a heap
#define DQ_HEAP_SKIP_KEYS 8

// Pieces of unequal length, each at its byte offset in a heap of the size that packets say.
typedef struct dq_heaps_conf {
    dq_region *region; // a heap fills a buffer, or part of it
    dq_number id;      // of the heap: any number, in any order
    dq_number size;    // of the heap, bytes; n 0: heap_bytes. Packets without one are of a heap that is open
    uint32_t heap_bytes;
    dq_number offset;                 // of the piece in the heap, bytes
    uint32_t segment, payload_offset; // as in dq_reorder_conf
    int32_t at_payload;
    dq_number header, length;
    dq_number items_at, items; // where a list of items begins, bytes into the innermost payload, and how many
                               // there are; n 0: there is none
    uint32_t item_bytes, value_bits;  // of an item; bits behind its key
    uint64_t skip[DQ_HEAP_SKIP_KEYS]; // keys of items that are not kept
    uint32_t n_skip;
    uint32_t window;         // heaps open at a time; 0: up to 4, by the region's buffers
    int64_t timeout_ns;      // of a heap, from its first packet; 0: none
    int32_t fill;            // of gaps: a byte, or DQ_FILL_KEEP
    int32_t drop_incomplete; // 1: only complete heaps are handed over
    int32_t policy;          // dq_policy when no buffer is free
} dq_heaps_conf;

// A stage that puts packets together to heaps, which come from *heaps as a reorder stage's aggregates do: one
// slot of the heap's size, whose cells are bytes. Names are at most DQ_REORDER_LEN long. INVALID_PARAMETER
// names what can't be.
int dq_stage_heaps(dq_session *s, const char *name, const dq_heaps_conf *conf, dq_stage **out,
                   dq_queue **heaps, dq_diag *diag);

// What a convert stage makes of a payload, in buffers of its own.
typedef struct dq_convert_conf {
    dq_region *region;        // a packet fills one buffer
    dq_data_types types;      // of payloads
    uint32_t payload_offset;  // where the payload begins: bytes from the packet's start,
    int32_t at_payload;       // or as in dq_reorder_conf,
    dq_number header, length; // as these
    int32_t policy;           // dq_policy when no buffer is free; one that waits has the region for itself
} dq_convert_conf;

// Makes packets whose payloads are of another type, in a session that is open. What is in front of the
// payload stays; of frames the lengths and checksums of IP and UDP follow, and what is behind the payload
// goes. INVALID_PARAMETER names what can't be.
int dq_stage_convert(dq_session *s, const char *name, const dq_convert_conf *conf, dq_stage **out,
                     dq_diag *diag);

// What a copy stage makes of packets, in buffers of another region: of the host or of a GPU.
typedef struct dq_copy_conf {
    dq_region *region;       // a packet fills one buffer, its segments one behind the other
    dq_data_types types;     // of payloads; both BYTES: packets stay as they are
    uint32_t payload_offset; // where the payload begins that is converted, as in dq_convert_conf
    int32_t at_payload;
    int32_t policy; // dq_policy when no buffer is free; one that waits has the region for itself
} dq_copy_conf;

// A stage that moves bursts into another region, in a session that is open. The copies come from *copies, a
// receive queue of the stage's own, in the order of what came; where a GPU's memory is among source and
// region, the GPU moves them, and what came is held until it has. INVALID_PARAMETER names what can't be.
int dq_stage_copy(dq_session *s, const char *name, const dq_copy_conf *conf, dq_stage **out,
                  dq_queue **copies, dq_diag *diag);

#endif
