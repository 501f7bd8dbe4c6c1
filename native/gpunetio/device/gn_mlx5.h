// gn_mlx5.h: work queues in the format of an mlx5 NIC, whose entries a kernel writes by hand: an interpreter
// for the proxy. It decodes an entry to a descriptor, which gn_check validates, and writes completion
// entries.
//
// A transmit ring has such entries in place of slots if its row has a completion queue (gn_tx_row.cq). The
// layouts are those of mlx5dv.h, big endian: an entry is 64 bytes of up to four segments of 16 bytes, the
// first of which names operation, index and queue. The kernel stores the index after its last entry in the
// doorbell record, with release order. Completion entries are as many as entries; the owner bit flips on each
// pass.
//
// The first entry that is invalid, or fails, gets a completion entry with a syndrome and stops the queue: all
// later ones are completed in error and not executed.
#ifndef GN_MLX5_H
#define GN_MLX5_H

#include "gpunetio/device/gn_check.h"

#include <stdbool.h>

#define GN_MLX5_ENTRY 64u // bytes of an entry, and of a completion entry

enum gn_mlx5_opcode {
    GN_MLX5_NOP = 0,
    GN_MLX5_WRITE = 8,
    GN_MLX5_WRITE_IMM = 9, // with the immediate value of the control segment
    GN_MLX5_SEND = 10,
    GN_MLX5_SEND_IMM = 11,
    GN_MLX5_READ = 16,
    GN_MLX5_COMPARE_SWAP = 17,
    GN_MLX5_FETCH_ADD = 18,
    GN_MLX5_DUMP = 35, // reads memory, for the order of a NIC's writes: nothing to do
};

enum gn_mlx5_syndrome {
    GN_MLX5_LOCAL_LENGTH = 1,
    GN_MLX5_LOCAL_OPERATION = 2, // an operation, a segment or a control field that is not valid
    GN_MLX5_LOCAL_PROTECTION = 4,
    GN_MLX5_FLUSHED = 5, // after an entry in error
    GN_MLX5_REMOTE_REQUEST = 18,
    GN_MLX5_REMOTE_ACCESS = 19,
    GN_MLX5_REMOTE_OPERATION = 20, // the engine could not do it
};

enum gn_mlx5_completion { GN_MLX5_DONE = 0, GN_MLX5_ERROR = 13 };

#define GN_MLX5_SIGNALED 8          // of the control segment: requests a completion entry
#define GN_MLX5_INLINE   0x80000000 // of a byte count: the bytes follow

// What is kept of an accepted entry until it completes.
typedef struct gn_mlx5_pending {
    gn_u8 opcode, signaled;
    gn_u8 syndrome, fault; // 0: none so far; the second one is of gn_check.h
    gn_u32 bytes;
} gn_mlx5_pending;

typedef struct gn_mlx5_queue {
    gn_u8 *completions;    // memory of the kernel
    const gn_u32 *record;  // the same
    const gn_region *rows; // the same: base addresses of the regions, as the kernel knows them
    gn_mlx5_pending *of;   // of each entry
    gn_u32 number, log2;   // number of the queue, from 1; 2^log2 entries, up to 2^15
    gn_u64 first;          // ticket of index 0
    gn_u64 completed;      // lower tickets are completed
    gn_u64 written;        // completion entries
    bool stopped;          // after an error
} gn_mlx5_queue;

// Returns whether the doorbell record has passed the ticket's entry. The record holds 16 bits of the index.
// Any thread.
bool gn_mlx5_is_posted(const gn_mlx5_queue *q, gn_u64 ticket);
// Reads the entry of the next ticket once from the kernel's memory, and checks it. Returns the first error,
// as gn_check does, or GN_FAULT_NONE with the operation in *out. An error stops the queue. If the queue has
// stopped, the entry is flushed: GN_FAULT_FLUSHED. The entry that had its place before is completed.
int gn_mlx5_take(gn_mlx5_queue *q, const gn_u64 *entries, gn_u64 ticket, const gn_given *given, gn_desc *out);
// Records that an accepted operation failed, and stops the queue.
void gn_mlx5_fail(gn_mlx5_queue *q, gn_u64 ticket, int fault);
// Completes all tickets below `below`: writes completion entries of those that requested one or failed.
void gn_mlx5_complete(gn_mlx5_queue *q, gn_u64 below);

#endif
