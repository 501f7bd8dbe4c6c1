// dq_reorder.h: stages that build aggregates of packets, convert elements, and copy between regions.
#ifndef DQ_REORDER_H
#define DQ_REORDER_H

#include "core/dq_core.h"
#include "kernels/dq_samples.h"
#include "program/dq_program.h"

// Element types of an aggregate's data.
typedef enum dq_dtype {
    DQ_DTYPE_BYTES, // unconverted
    DQ_DTYPE_INT4,  // two per byte, high half first
    DQ_DTYPE_INT8,
    DQ_DTYPE_INT16,
    DQ_DTYPE_INT32,
    DQ_DTYPE_FP16,
    DQ_DTYPE_BF16,
    DQ_DTYPE_FP32,
    DQ_DTYPE_FP64,
    DQ_DTYPES
} dq_dtype;

// Input and output element types of payloads. Both BYTES, without a sample type: no conversion. Outputs are
// fp16, bf16, fp32, fp64, int32, int16 and int8 (dq_dtype). The value of an element is (v + offset) * scale,
// where v is its number, or levels[code]. k_convert.h and unpack.h specify the rounding.
typedef struct dq_data_types {
    int32_t input, output;
    int32_t network;      // 1: input is big endian; 0: host byte order
    dq_sample sample;     // bits not 0: the input's type, instead of input and network
    int32_t full_scale;   // 1: the scale is 2^-(bits-1), of unsigned types 2^-bits
    int32_t any_scale;    // 1: the caller changes the scale later, so the conversion has one even if it is 1
    double scale, offset; // scale 0: 1
    const double *levels; // 2^bits values, read by the call; at most 8 bits. NULL: none
} dq_data_types;

// Returns a type's name in scripts, such as "int16"; NULL: invalid type.
const char *dq_dtype_name(int dtype);

#define DQ_FILL_KEEP     (-1) // gaps keep the buffer's previous contents
#define DQ_MAX_WINDOW    64
#define DQ_LEAST_BATCHES 4  // minimum number of distinct batches
#define DQ_REORDER_LEN   52 // maximum length of a reorder stage's name

// Rule of a reorder stage. Either seq: a number of seq_bits bits that counts packets continuously, `slots`
// per batch; or batch and slot.
typedef struct dq_reorder_conf {
    dq_region *region; // one buffer per aggregate
    dq_number seq;
    uint32_t seq_bits;
    dq_number batch, slot;
    uint64_t wrap;         // batch counts modulo this, at least DQ_LEAST_BATCHES; 0: 2^64
    dq_number offset;      // bytes in the slot, a multiple of packet_bytes
    dq_number extra;       // number stored per slot
    dq_number source;      // source by which packets and losses are counted,
    int32_t source_peer;   // or 1: the packet's peer; n 0 and 0: not per source
    uint32_t slots;        // per batch
    uint32_t slot_bytes;   // 0: longest payload so far, at most buf_size / slots
    uint32_t packet_bytes; // with offset: payload per packet, the last of a slot may be shorter; otherwise 0
    uint32_t segment, payload_offset; // start of the payload: bytes from the segment's start,
    int32_t at_payload;               // 1: or from the start of the innermost payload (segment 0)
    dq_number header;                 // additional bytes before it, computed per packet
    dq_number length;                 // its length, if packets specify it; truncated ones are bad_place
    dq_data_types types;              // of payloads; slot_bytes, packet_bytes and offset count input bytes
    uint32_t window;                  // maximum open batches; 0: up to 4, depending on the region's buffers
    int64_t timeout_ns;               // of a batch, from its first packet; 0: none
    int32_t fill;                     // for gaps: a byte, or DQ_FILL_KEEP
    int32_t drop_incomplete;          // 1: only complete batches are delivered
    int32_t wait;                     // 1: a queue ahead of others waits for them, up to timeout_ns
    int32_t policy;                   // dq_policy if no buffer is free
    int32_t by_gpu;           // 1: a GPU moves payloads, to a region of any kind; always so for GPU memory
    int32_t ring;             // 1: batch k goes to buffer k of the region, as a network card places it
    const uint32_t *flow_ids; // only packets of these flows, others pass; n_flow_ids 0: all
    uint32_t n_flow_ids;
} dq_reorder_conf;

// With ring, the numbers count exactly the buffers of the region and restart at 0; larger ones are bad_place.
// The region is the stage's alone. A buffer takes packets again once its last aggregate is freed; until then
// packets of its batch are no_packet_buffer. Aggregates have DQ_BURST_DIRECT_PLACED.

// Creates a stage that assembles packets into aggregates (dq_aggregate); the session is open. Aggregates are
// delivered in order, one per burst, through *aggregates, a receive queue of the stage, polled with the stage
// by its first source's poller, which feeds pipes like any other. Packets not selected continue in the
// stage's pipe. INVALID_PARAMETER names the error.
int dq_stage_reorder(dq_session *s, const char *name, const dq_reorder_conf *conf, dq_stage **out,
                     dq_queue **aggregates, dq_diag *diag);

#define DQ_HEAP_ITEMS     64 // maximum items stored per heap
#define DQ_HEAP_SKIP_KEYS 8

// Rule of a heaps stage: pieces of any length, each with a byte offset in a heap whose size the packets
// specify.
typedef struct dq_heaps_conf {
    dq_region *region; // one buffer per heap, filled partly or completely
    dq_number id;      // of the heap: any number, in any order
    dq_number size;    // of the heap, bytes; n 0: heap_bytes. Packets without it belong to an open heap
    uint32_t heap_bytes;
    dq_number offset;                 // of the piece in the heap, bytes
    uint32_t segment, payload_offset; // as in dq_reorder_conf
    int32_t at_payload;
    dq_number header, length;
    dq_number items_at, items;        // item list: offset in the innermost payload, number; n 0: none
    uint32_t item_bytes, value_bits;  // size of an item; bits after its key
    uint64_t skip[DQ_HEAP_SKIP_KEYS]; // keys of items to ignore
    uint32_t n_skip;
    uint32_t window;         // maximum open heaps; 0: up to 4, depending on the region's buffers
    int64_t timeout_ns;      // of a heap, from its first packet; 0: none
    int32_t fill;            // for gaps: a byte, or DQ_FILL_KEEP
    int32_t drop_incomplete; // 1: only complete heaps are delivered
    int32_t policy;          // dq_policy if no buffer is free
} dq_heaps_conf;

// Creates a stage that assembles packets into heaps, delivered through *heaps as aggregates with one slot of
// the heap's size and cells of one byte. Names have at most DQ_REORDER_LEN bytes. INVALID_PARAMETER names the
// error.
int dq_stage_heaps(dq_session *s, const char *name, const dq_heaps_conf *conf, dq_stage **out,
                   dq_queue **heaps, dq_diag *diag);

// Conversion of payloads into buffers of the stage.
typedef struct dq_sample_choice {
    uint64_t number;
    dq_data_types types; // with a sample type
} dq_sample_choice;

typedef struct dq_convert_conf {
    dq_region *region;               // one buffer per packet
    dq_data_types types;             // of payloads, without choices
    dq_number type;                  // of a packet, which chooses its types
    const dq_sample_choice *choices; // by number, read by the call
    uint32_t n_choices;              // 0: all payloads have `types`
    dq_number scale;                 // of a packet, a factor of the types' scale; n 0: none
    int32_t scale_signed;            // 1: it is a signed number
    int32_t scale_power;             // 1: the factor is 2 to the power of it
    uint32_t payload_offset;         // start of the payload: bytes from the packet's start,
    int32_t at_payload;              // or as in dq_reorder_conf,
    dq_number header, length;        // as there
    int32_t policy;                  // dq_policy if no buffer is free; with wait, the region is exclusive
} dq_convert_conf;

// Creates a stage that converts the elements of payloads; the session is open. Bytes before the payload are
// kept, with IP and UDP lengths and checksums of frames updated; bytes after it are dropped. Packets whose
// type or scale is not known pass unchanged and count as raw. INVALID_PARAMETER names the error.
int dq_stage_convert(dq_session *s, const char *name, const dq_convert_conf *conf, dq_stage **out,
                     dq_diag *diag);

// Copy of packets into buffers of another region, of the host or of a GPU.
typedef struct dq_copy_conf {
    dq_region *region;       // one buffer per packet, its segments concatenated
    dq_data_types types;     // of payloads; both BYTES: no conversion
    uint32_t payload_offset; // start of the payload to convert, as in dq_convert_conf
    int32_t at_payload;
    int32_t policy; // dq_policy if no buffer is free; with wait, the region is exclusive
} dq_copy_conf;

// Creates a stage that copies bursts into another region; the session is open. Copies are delivered in order
// through *copies, a receive queue of the stage. If source or region is GPU memory, the GPU copies, and the
// input burst is referenced until it is done. INVALID_PARAMETER names the error.
int dq_stage_copy(dq_session *s, const char *name, const dq_copy_conf *conf, dq_stage **out,
                  dq_queue **copies, dq_diag *diag);

#endif
