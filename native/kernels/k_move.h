// k_move.h: the input of a mover: a list of moves, each done by one or more warps of a GPU, and a ticket
// written at the end. Plain C shared by the host, the GPU sources and tests; addresses are numbers valid on
// the GPU (device memory, registered host memory).
//
// Moves of a list don't overlap and are done in any order. Neither side needs alignment. Sources are read in
// aligned 16-byte words, so up to 15 bytes before and after them are read and ignored: memory must begin and
// end at multiples of 16. Of a destination only its own bytes are written.
#ifndef K_MOVE_H
#define K_MOVE_H

#include <stdint.h>

// Operations of a move.
enum {
    DQK_COPY,    // len bytes; slow in a conversion's list unless src, dst and len are multiples of 8
    DQK_CONVERT, // len bytes, whole elements, by the list's conversion; without one as DQK_COPY
    DQK_FILL,    // sets len bytes at dst to the lowest byte of src
    DQK_SUM,     // CRC-32C of a page, len DQK_PAGE, to the 4 bytes at dst; only in lists of DQK_SUMS
};

typedef struct dqk_move {
    uint64_t src, dst;
    uint32_t len; // source bytes; 0: no operation
    uint32_t what;
} dqk_move;

// How the elements of a list's packed conversion lie in payloads, and what their values become: (v + offset)
// * scale, where v is an element's integer, or levels[code]. In fp32 it is rounded after each operation; fp64
// output is computed in fp64.
typedef struct dqk_packing {
    uint32_t bits, stride, skip;        // of an element, the i-th of which begins at bit i * stride + skip
    uint32_t unit_bytes, unit_elements; // the smallest payload of whole elements
    uint32_t padded;                    // elements of a padded word of 32 bits; 0: none
    uint32_t flip;                      // bits to invert in an element whose highest bit is bit 31
    uint8_t low_first;                  // bits are counted from the lowest of each byte
    uint8_t mirror;                     // words of mirror + 1 bytes have the lowest byte first
    uint8_t groups;                     // units are groups behind an exponent
    uint8_t gev;                        // units are two elements in 3 bytes
    uint8_t swapped;                    // pairs of elements are exchanged
    uint8_t positive;                   // integers have no sign
    uint8_t scaled;                     // scale or offset is set, or integers exceed int32
    uint64_t levels;                    // address of 2^bits floats; 0: none
    double scale, offset;
} dqk_packing;

// A launch, passed by value to the kernel of its conversion (dqk_kernel). A batch's id, bitmap and extra
// numbers are also moves, DQK_COPY from the host's record, which must not change before the ticket.
typedef struct dqk_list {
    uint64_t moves;  // address of n moves, 8-byte aligned
    uint64_t ticket; // address of 8 bytes of host memory, 8-byte aligned, or 0: the last block
    uint64_t value;  // writes this there, once all writes of the list are visible to host and GPU
    uint64_t done;   // with a ticket: address of a uint32_t in device memory that is 0 and used by this list
                     // alone; reset to 0 before the ticket is written
    uint32_t n;      // moves
    uint32_t parts;  // warps per move: dqk_parts of the longest one; n * parts < 2^32
    uint32_t conversion; // dqk_conversion, or 0
    uint32_t far;        // 1: most sources are in host memory, 0: in device memory; the wrong value is only
                         // slower
    dqk_packing packing; // of conversions from DQK_PACKED on
} dqk_list;

// Conversions are numbered from 1 in the order of k_convert.h (K_OUTPUTS of int4, then K_WHOLE_BYTES); those
// above DQK_SWAPPED read inputs in the byte order that is not the host's.
enum { DQK_SWAPPED = 24, DQK_CONVERSIONS = 36 };

// Conversions of packed elements as the list's packing describes them, in the order of K_PACKED_OUTPUTS.
enum { DQK_PACKED = DQK_CONVERSIONS + 1, DQK_PACKED_OUTPUTS = 7 };

// Pseudo-conversion: the list has checksums. Pages are 16-byte aligned.
enum { DQK_SUMS = DQK_PACKED + DQK_PACKED_OUTPUTS, DQK_PAGE = 4096 };

#define DQK_PART 4096 // source or fill bytes per warp

// Returns the number of warps that share a move of len bytes; short ones use one. A list with conversions
// uses four times as many, as they take longer.
static inline uint32_t dqk_parts(uint32_t len) {
    return len <= DQK_PART ? 1 : (len + DQK_PART - 1) / DQK_PART;
}
static inline uint32_t dqk_list_parts(uint32_t len, uint32_t conversion) {
    return dqk_parts(conversion ? 4 * len : len);
}

// Threads per block, and the number of blocks that suffices for a list with sources in host memory: more only
// take resources from other kernels.
enum { DQK_THREADS = 256, DQK_HOST_BLOCKS = 16 };

// Returns the number of blocks for a list: one per 8 parts, at most 8 per multiprocessor of the GPU.
static inline uint32_t dqk_blocks(const dqk_list *l, uint32_t multiprocessors) {
    const uint32_t warps = DQK_THREADS / 32, most = l->far ? DQK_HOST_BLOCKS : 8 * multiprocessors;
    uint64_t blocks = ((uint64_t)l->n * l->parts + warps - 1) / warps;
    return blocks < most ? (uint32_t)blocks : most;
}

#endif
