// gn_ring.h: memory layout of a context: all data exchanged by a kernel and the proxy, in one block.
//
// Every word has one owner, the only writer after initialization: the kernel (its threads use gn_swap) or the
// proxy. The kernel needs only the block's address; the header at its start has the offsets of everything
// else, modulo 2^64, so that words may be located elsewhere: private state of the kernel (`local`) or words
// it polls (`state`) in GPU memory. The proxy trusts no data that the kernel could write: it keeps copies of
// header and rows from before the kernel's start, and reads only words owned by the kernel from the block.
//
// A ticket is the number of a slot's use: 64 bits, incremented, never wrapping; its low bits select the slot.
// The top bit of each word of a slot is the lap bit, which flips on each pass through the ring: a slot is
// complete when all its words have the lap bit of its ticket, in whatever order they arrived.
//
// Ordering rules, each with the case of tests/native/gpunetio/device/gn_order_test.c that fails without it:
// 1. the kernel's bytes in regions before the slot that refers to them: release of each word, or one fence
// before all of them: data_before_its_slot;
// 2. the proxy's bytes before the descriptor that refers to them: data_before_its_descriptor;
// 3. a slot is read before it is `accepted`: slot_read_before_accepted;
// 4. results, `dropped` and `error` before `completed`: result_before_completed;
// 5. a packet's last read before its release mark: packet_read_before_released;
// 6. an item and the data it refers to before `ready`, its reads before `done`: data_before_signal.
#ifndef GN_RING_H
#define GN_RING_H

#include "gpunetio/device/gn_slot.h"

// Changes with every change of the layout visible to kernels. Low half: sizes of slot and descriptor.
#define GN_ABI 0x676e000600400020ull

#define GN_LEAST_LOG2 1            // slots of a ring: from 2 ...
#define GN_MOST_LOG2  16           // ... to 65536
#define GN_HOLE_NS    100000000ull // time to publish a reserved ticket while others wait behind it

// ---- words of rings ---------------------------------------------------------------------------------------

typedef struct gn_tx_state { // proxy; one line
    gn_u64 accepted;         // lower tickets have been read: their slots are free
    gn_u64 completed; // lower tickets have completed: the kernel owns their bytes again; GN_SOME_FAILED
    gn_u64 dropped;   // number of rejected or failed ones
    gn_u64 error;     // the last of these: gn_error
    gn_u64 epoch;     // life of the ring, from 1; top bit GN_BROKEN_RING: no more slots are accepted
    gn_u64 failed;    // ticket + 1 of the first of these; 0: none
    gn_u64 spare[2];
} gn_tx_state;

#define GN_BROKEN_RING (1ull << 63)
#define GN_SOME_FAILED                                                                                       \
    (1ull << 63) // top bit of completed: `dropped` is not 0; kernels read `error` only then

// Encodes an error: a gn_fault (gn_check.h), and the low 56 bits of the ticket.
GN_FN gn_u64 gn_error(gn_u32 fault, gn_u64 ticket) {
    return (gn_u64)fault << 56 | (ticket & ((1ull << 56) - 1));
}
typedef struct gn_tx_posted { // kernel; one line
    gn_u64 waits; // ticket + 1 behind which a thread waits, 0: none: the proxy checks for a hole below
    gn_u64 spare[7];
} gn_tx_posted;
typedef struct gn_tx_local { // kernel, private; one line
    gn_u64 reserved;         // next ticket
    gn_u64 seen;             // last value of `accepted` read by a thread
    gn_u64 spare[6];
} gn_tx_local;
typedef struct gn_rx_state { // proxy; one line
    gn_u64 filled;           // lower tickets are available; stored after the descriptors
    gn_u64 dropped;          // packets that found the ring full
    gn_u64 epoch;            // as in gn_tx_state
    gn_u64 spare[5];
} gn_rx_state;
typedef struct gn_rx_local { // kernel, private; one line
    gn_u64 taken;            // next ticket to take
    gn_u64 seen;             // last value of `filled` read by a thread
    gn_u64 spare[6];
} gn_rx_local;

// A semaphore passes items from one side to the other, in order. The counters define the state of item t:
// FREE for t >= ready, READY from hold to ready, HOLD from done to hold, DONE below done. EXIT: the producer
// adds none after ready. ERROR: the consumer failed at item done, and takes no more.
typedef struct gn_sem_producer { // producer; one line
    gn_u64 ready;                // top bit GN_SEM_END: EXIT
    gn_u64 spare[7];
} gn_sem_producer;
typedef struct gn_sem_consumer { // consumer; one line
    gn_u64 hold;
    gn_u64 done; // top bit GN_SEM_END: ERROR
    gn_u64 spare[6];
} gn_sem_consumer;
typedef struct gn_sem_item { // producer
    gn_u64 first, count;     // receive tickets, or user-defined
} gn_sem_item;

#define GN_SEM_END (1ull << 63)

enum gn_sem_status { GN_SEM_FREE, GN_SEM_READY, GN_SEM_HOLD, GN_SEM_DONE, GN_SEM_ERROR, GN_SEM_EXIT };

// ---- header and rows: constant after the kernel's start ---------------------------------------------------

typedef struct gn_tx_row { // 128 B
    gn_u64 slots;          // gn_slot[size]
    gn_u64 state;          // gn_tx_state polled by the kernel
    gn_u64 source;         // the proxy's own; if different from state, gn_relay copies it
    gn_u64 posted;         // gn_tx_posted
    gn_u64 local;          // gn_tx_local
    gn_u64 first;          // ticket
    gn_u64 epoch;          // at the kernel's start
    gn_u32 log2;           // of the number of slots
    gn_u32 ops;            // bit k: accepts gn_op k
    gn_u32 queue, spare32; // queue: number in errors
    gn_u64 back;           // offset from the header to the row, so that a row leads to its context
    gn_u64 cq, record;     // gn_mlx5.h: completion entries, and doorbell record; cq 0: gn_slots
    gn_u64 spare[4];
} gn_tx_row;

typedef struct gn_rx_row { // 128 B
    gn_u64 slots;          // gn_rx_slot[size]
    gn_u64 state;          // gn_rx_state, as in gn_tx_row
    gn_u64 source;
    gn_u64 released; // gn_u64[size], kernel: ticket + 1 once its packet is released
    gn_u64 local;    // gn_rx_local
    gn_u64 first, epoch;
    gn_u32 log2, queue;
    gn_u64 back;   // as in gn_tx_row
    gn_u64 single; // 1: each packet has one descriptor
    gn_u64 spare[6];
} gn_rx_row;

typedef struct gn_sem_row { // 64 B
    gn_u64 producer;        // gn_sem_producer
    gn_u64 consumer;        // gn_sem_consumer
    gn_u64 items;           // gn_sem_item[size]
    gn_u64 first;
    gn_u32 log2, spare32;
    gn_u64 back; // as in gn_tx_row
    gn_u64 spare[2];
} gn_sem_row;

enum gn_rights { GN_READ = 1, GN_WRITE = 2, GN_ADD = 4, GN_REMOTE = 8 }; // of a region; REMOTE: of a peer

typedef struct gn_region { // 32 B
    gn_u64 base;           // address in the kernel; 0: not accessible
    gn_u64 bytes;
    gn_u32 stride, rights; // stride: distance between packet buffers in bytes, 0: none
    gn_u64 spare;
} gn_region;

// An object is what a kernel gets as a pointer to a queue or an array of buffers, and owns. Its parts lead to
// rings: transmit; its completions; receive; its completions.
typedef struct gn_part { // 128 B
    gn_u64 back;         // offset from the header to this part
    gn_u64 row;          // its ring's row, 0: none. Buffers: place of the first one
    gn_u32 number;       // ring, from 1. Buffers: how many
    gn_u32 size, mask;   // slots of the ring, and this less 1. Buffers: bytes of each
    gn_u32 spare;
    gn_u64 table;     // the kernel's words per slot, GN_TABLE_WORDS each; 0: none
    gn_u64 words[11]; // the kernel's
} gn_part;

typedef struct gn_object { // 512 B
    gn_part part[4];
} gn_object;

enum gn_object_kind { GN_OBJECT_TX, GN_OBJECT_RX, GN_OBJECT_BUFFERS };

#define GN_TX_TABLE_WORDS 1     // part 0
#define GN_RX_TABLE_WORDS 10    // part 2: a posted receive, 2 words, and its completion
typedef struct gn_proxy_words { // proxy; one line
    gn_u64 abort;               // not 0: all waits end
    gn_u64 beat;                // incremented in each round of the proxy
    gn_u64 spare[6];
} gn_proxy_words;

typedef struct gn_kernel_words { // kernel; one line
    gn_u64 abi;                  // GN_ABI it was compiled with, once it has opened the context
    gn_u64 beat;                 // GPU time in ns of the last sign of life
    gn_u64 spare[6];
} gn_kernel_words;

typedef struct gn_context { // 256 B, at the start of the block
    gn_u64 abi;             // GN_ABI. This, `kernel` and the words there have the same place in all versions
    gn_u64 kernel;          // gn_kernel_words
    gn_u64 bytes;           // of the block
    gn_u32 n_tx, n_rx, n_sems, n_regions;
    gn_u64 tx, rx, sems, regions; // rows
    gn_u64 proxy, proxy_source;   // gn_proxy_words, as in gn_tx_row
    gn_u64 limit_ns;              // default limit of waits
    gn_u64 objects;               // gn_object[n_objects]
    gn_u64 start_ns;              // the session's start in ns since 1970
    gn_u32 n_objects, exits;      // exits: the kernel reads the word `abort` itself, as its exit flag
    gn_u64 spare[17];
} gn_context;

// ---- helpers for both sides -------------------------------------------------------------------------------

GN_FN void *gn_at(const void *context, gn_u64 offset) { return (void *)((gn_u8 *)context + offset); }
GN_FN gn_u64 gn_lap(gn_u64 ticket, gn_u32 log2) { return ((ticket >> log2 & 1) ^ 1) << 63; }
GN_FN gn_u64 gn_index(gn_u64 ticket, gn_u32 log2) { return ticket & ((1ull << log2) - 1); }
GN_FN gn_slot *gn_tx_slot(const void *context, const gn_tx_row *r, gn_u64 ticket) {
    return (gn_slot *)gn_at(context, r->slots) + gn_index(ticket, r->log2);
}
GN_FN gn_rx_slot *gn_rx_slot_of(const void *context, const gn_rx_row *r, gn_u64 ticket) {
    return (gn_rx_slot *)gn_at(context, r->slots) + gn_index(ticket, r->log2);
}

// Reads slot w of n words, without lap bits, to out; returns whether it is complete for the lap. Each word
// was stored after the bytes that the slot refers to: a load-acquire of one of them orders all.
GN_FN int gn_read(const gn_u64 *w, gn_u32 n, gn_u64 lap, gn_u64 *out) {
    gn_u64 other = 0;
    for (gn_u32 k = n; k-- > 0;) {
        gn_u64 v = k ? gn_load_beside(&w[k]) : gn_load(&w[0]);
        other |= v ^ lap;
        out[k] = v & ~GN_LAP;
    }
    return !(other & GN_LAP);
}

// Writes n words of a slot, unordered among themselves, after all preceding stores.
GN_FN void gn_write(gn_u64 *w, gn_u32 n, gn_u64 lap, const gn_u64 *words) {
    gn_fence();
    for (gn_u32 k = 0; k < n; k++)
        gn_store_fenced(&w[k], lap | (words[k] & ~GN_LAP));
}

// Returns the state of item t from counters read in the order done, hold, ready.
GN_FN int gn_sem_state(gn_u64 t, gn_u64 done, gn_u64 hold, gn_u64 ready) {
    gn_u64 d = done & ~GN_SEM_END;
    if (t < d) return GN_SEM_DONE;
    if (done & GN_SEM_END) return GN_SEM_ERROR;
    if (t < hold) return GN_SEM_HOLD;
    if (t < (ready & ~GN_SEM_END)) return GN_SEM_READY;
    return ready & GN_SEM_END ? GN_SEM_EXIT : GN_SEM_FREE;
}

#endif
