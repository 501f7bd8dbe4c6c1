// k_move.h: what a mover is told: a list of moves, each of which one or more warps of a GPU do, and a ticket
// at the end. Plain C that the host, the GPU sources and tests share; addresses are numbers that the GPU can
// read and write (device memory, registered host memory), whoever looks at them.
//
// Moves of a list don't overlap and are done in any order. No side has to be aligned. Sources are read in
// whole words of 16 bytes at multiples of 16, so that up to 15 bytes before and behind them are read, too,
// and not looked at: memory begins and ends at multiples of 16. Of a destination no other byte is written.
#ifndef K_MOVE_H
#define K_MOVE_H

#include <stdint.h>

// What one move does.
enum {
    DQK_COPY,    // len bytes; in a list with a conversion slowly where not all is a multiple of 8
    DQK_CONVERT, // len bytes, a whole number of elements, in the list's conversion; without one as DQK_COPY
    DQK_FILL,    // len bytes at dst become the lowest byte of src
    DQK_SUM, // the CRC-32C of a page, len DQK_PAGE, goes to the 4 bytes at dst; in lists of DQK_SUMS alone
};

typedef struct dqk_move {
    uint64_t src, dst;
    uint32_t len; // bytes of source; 0: nothing is done
    uint32_t what;
} dqk_move;

// A launch, passed by value to the kernel of its conversion (dqk_kernel). A batch's
// id, bitmap and extra numbers are moves, too, DQK_COPY from the host's record, which stays as it is until
// the ticket.
typedef struct dqk_list {
    uint64_t moves;  // address of n moves, at a multiple of 8
    uint64_t ticket; // address of 8 bytes of host memory at a multiple of 8, or 0: the last block to end
    uint64_t value;  // writes this there, when all that the list wrote can be seen by host and GPU
    uint64_t done;   // with a ticket: address of a uint32_t in device memory that is 0 and nobody else's at
                     // the time; it is 0 again before the ticket is written
    uint32_t n;      // moves
    uint32_t parts;  // warps a move: dqk_parts of the longest of them; n * parts < 2^32
    uint32_t conversion; // dqk_conversion, or 0
    uint32_t far;        // 1: most sources lie in host memory, 0: on the device; either works, slower
} dqk_list;

// Conversions are numbered from 1 in the order of k_convert.h (K_OUTPUTS of int4, then K_WHOLE_BYTES); those
// above DQK_SWAPPED read inputs whose bytes are in the other order than the host's.
enum { DQK_SWAPPED = 24, DQK_CONVERSIONS = 36 };

// In the place of a conversion: the list has checksums. Pages begin at multiples of 16.
enum { DQK_SUMS = DQK_CONVERSIONS + 1, DQK_PAGE = 4096 };

#define DQK_PART 4096 // bytes of source, or of a fill, that a warp does

// Warps that share a move of len bytes; short ones have a warp alone. Of a list that converts four times as
// many, as it takes a warp longer.
static inline uint32_t dqk_parts(uint32_t len) {
    return len <= DQK_PART ? 1 : (len + DQK_PART - 1) / DQK_PART;
}
static inline uint32_t dqk_list_parts(uint32_t len, uint32_t conversion) {
    return dqk_parts(conversion ? 4 * len : len);
}

// Threads a block; and blocks that are enough for a list whose sources lie in host memory: more only take
// room from others.
enum { DQK_THREADS = 256, DQK_HOST_BLOCKS = 16 };

// Blocks for a list on a GPU of so many multiprocessors: one for each 8 parts, up to 8 a multiprocessor.
static inline uint32_t dqk_blocks(const dqk_list *l, uint32_t multiprocessors) {
    const uint32_t warps = DQK_THREADS / 32, most = l->far ? DQK_HOST_BLOCKS : 8 * multiprocessors;
    uint64_t blocks = ((uint64_t)l->n * l->parts + warps - 1) / warps;
    return blocks < most ? (uint32_t)blocks : most;
}

#endif
