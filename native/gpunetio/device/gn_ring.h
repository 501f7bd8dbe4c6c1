// gn_ring.h: the layout of a context: all that a kernel and the proxy say to each other, in one block of
// memory.
//
// Every word has one owner, who alone writes it after the block was made: the kernel (its threads among
// themselves by gn_swap) or the proxy. The kernel needs the block's address; the header in front
// of it has the rest as offsets from there, modulo 2^64, so that words may lie elsewhere: what a kernel keeps
// for itself (`local`), or what it polls (`state`), in GPU memory. The proxy trusts nothing that the kernel
// could write: it keeps a copy of header and rows from before the kernel's start, and takes from the block
// only words that are the kernel's.
//
// A ticket is the number of a slot's use, 64 bits, counted up and never wrapped; its slot is its lowest bits.
// Each word of a slot has the lap's bit on top, which turns each time round the ring: a slot is there when
// all its words have the bit of its ticket, in whatever order they came.
//
// Rules of order, each with the case of tests/native/gpunetio/device/gn_order_test.c that fails without it:
//   1. the kernel's bytes in regions before the slot that names them: release of each word, or one fence
//      before all of them: data_before_its_slot;
//   2. the proxy's bytes before the descriptor that names them: data_before_its_descriptor;
//   3. a slot is read before it is `accepted`: slot_read_before_accepted;
//   4. results, `dropped` and `error` before `completed`: result_before_completed;
//   5. a packet's last read before its release mark: packet_read_before_released;
//   6. an item and what it stands for before `ready`, its reads before `done`: data_before_signal.
#ifndef GN_RING_H
#define GN_RING_H

#include "gpunetio/device/gn_base.h"

// Changes with everything here that kernels see. In the lowest half the sizes of slot and descriptor.
#define GN_ABI 0x676e000200400020ull

#define GN_LAP        (1ull << 63)
#define GN_LEAST_LOG2 1  // slots of a ring: 2 ...
#define GN_MOST_LOG2  16 // ... to 65536
#define GN_TX_WORDS   8
#define GN_RX_WORDS   4
#define GN_HOLE_NS    100000000ull // a ticket that was taken is to be there by then, where others wait behind it

// A place: a row of the context's regions and a byte in it. 63 bits.
#define GN_REGIONS (1u << 15)
GN_FN gn_u64 gn_place(gn_u32 region, gn_u64 offset) {
    return (gn_u64)(region & (GN_REGIONS - 1)) << 48 | (offset & 0xffffffffffffull);
}
GN_FN gn_u32 gn_place_region(gn_u64 place) { return (gn_u32)(place >> 48) & (GN_REGIONS - 1); }
GN_FN gn_u64 gn_place_offset(gn_u64 place) { return place & 0xffffffffffffull; }

// ---- what a transmit slot says ----------------------------------------------------------------------------

enum gn_flags {
    GN_INLINE = 1, // put: the bytes are in the slot, at most GN_INLINE_BYTES
    GN_SIGNAL = 2, // put: adds to word 4's place, once the bytes are there
    GN_RESULT = 4, // add: what was there comes to word 6's place
    GN_TOP = 8,    // bit 63 of the operand
    GN_SPLIT = 16, // send: a second segment
};

// X(NAME, name, words: bit k: word k may say something; flags that it may have, what it does).
#define GN_OP_ROWS(X)                                                                                        \
    X(NOP, "nop", 0x81, 0, "nothing: a ticket that isn't needed after all")                                  \
    X(SEND, "send", 0xef, GN_SPLIT, "sends a packet of one or two segments, at a time, to a peer")           \
    X(PUT, "put", 0xff, GN_INLINE | GN_SIGNAL | GN_TOP, "bytes to a remote region, then perhaps a signal")   \
    X(GET, "get", 0x8b, 0, "bytes from a remote region")                                                     \
    X(ADD, "add", 0xf1, GN_RESULT | GN_TOP, "adds to 64 bits of a remote region: a signal, fetch-and-add")   \
    X(COPY, "copy", 0x8b, 0, "bytes from one of the context's regions to another")                           \
    X(FILE, "file", 0x8b, 0, "bytes to a writer of the context, behind what its file has")

enum gn_op {
#define X(id, ...) GN_OP_##id,
    GN_OP_ROWS(X)
#undef X
        GN_OPS
};

#define GN_INLINE_BYTES 21 // seven each in words 1, 2 and 6, the first one lowest

// The words, below the lap's bit:
//   0  op, 7 bits from 56; flags, 8 from 48; 16 that are 0; bytes, 32 from 0
//   1  the local place: what is sent, put, copied or written; where a get comes to
//   2  send: when, ns since the session's start; 0: at once
//   3  send: connection, 0: the queue's peer. put, get: the remote place. copy: the place it goes to. file:
//      the writer's number
//   4  the place of 64 bits that the operand is added to
//   5  the operand's lowest 63 bits. send: bytes of the second segment
//   6  send: the second segment's place. add: where the result comes to
//   7  the ticket's lowest 63 bits
typedef struct gn_slot {
    gn_u64 w[GN_TX_WORDS];
} gn_slot;

typedef struct gn_rx_slot { // a segment of a packet that came
    gn_u64 w[GN_RX_WORDS];  // 0 place; 1 flow, 32 bits from 0, bytes, 31 from 32; 2 time; 3 gn_rx_word
} gn_rx_slot;

// Word 3: the connection that it came by; which segment; whether the next descriptor has the packet's next.
GN_FN gn_u64 gn_rx_word(gn_u32 conn, gn_u32 segment, gn_u32 more) {
    return (gn_u64)(more != 0) << 62 | (gn_u64)(segment & 15) << 56 | conn;
}

// ---- words of rings ---------------------------------------------------------------------------------------

typedef struct gn_tx_state { // the proxy's; a line
    gn_u64 accepted;         // tickets below it were read: their slots are free
    gn_u64 completed;        // tickets below it are done: their bytes are the kernel's again; GN_SOME_FAILED
    gn_u64 dropped;          // of them, those that were refused or failed
    gn_u64 error;            // the last of these: gn_error
    gn_u64 epoch;            // the ring's life, from 1; GN_BROKEN_RING on top: nothing is taken any more
    gn_u64 spare[3];
} gn_tx_state;

#define GN_BROKEN_RING (1ull << 63)
#define GN_SOME_FAILED                                                                                       \
    (1ull << 63) // on top of completed: `dropped` is not 0: kernels ask for `error` then alone

// Why, a gn_fault (gn_check.h), and the ticket's lowest 56 bits.
GN_FN gn_u64 gn_error(gn_u32 fault, gn_u64 ticket) {
    return (gn_u64)fault << 56 | (ticket & ((1ull << 56) - 1));
}

typedef struct gn_tx_posted { // the kernel's; a line
    gn_u64 waits; // a ticket + 1 that a thread waits behind, 0: none: the proxy looks for a hole below it
    gn_u64 spare[7];
} gn_tx_posted;

typedef struct gn_tx_local { // the kernel's, for itself; a line
    gn_u64 reserved;         // the next ticket
    gn_u64 seen;             // `accepted` as some thread read it last
    gn_u64 spare[6];
} gn_tx_local;

typedef struct gn_rx_state { // the proxy's; a line
    gn_u64 filled;           // tickets below it are there; behind the descriptors themselves
    gn_u64 dropped;          // packets that found the ring full
    gn_u64 epoch;            // as gn_tx_state's
    gn_u64 spare[5];
} gn_rx_state;

typedef struct gn_rx_local { // the kernel's, for itself; a line
    gn_u64 taken;            // the next ticket that nobody took
    gn_u64 seen;             // `filled` as some thread read it last
    gn_u64 spare[6];
} gn_rx_local;

// A semaphore hands items from one side to the other, in order. What state item t is in, its counters say:
// FREE from ready on, READY from hold to ready, HOLD from done to hold, DONE below done. EXIT: the producer
// has no more than those below ready. ERROR: the consumer failed at item done, and takes no more.
typedef struct gn_sem_producer { // the producer's; a line
    gn_u64 ready;                // GN_SEM_END on top: EXIT
    gn_u64 spare[7];
} gn_sem_producer;

typedef struct gn_sem_consumer { // the consumer's; a line
    gn_u64 hold;
    gn_u64 done; // GN_SEM_END on top: ERROR
    gn_u64 spare[6];
} gn_sem_consumer;

typedef struct gn_sem_item { // the producer's
    gn_u64 first, count;     // receive tickets, or what both sides agree on
} gn_sem_item;

#define GN_SEM_END (1ull << 63)

enum gn_sem_status { GN_SEM_FREE, GN_SEM_READY, GN_SEM_HOLD, GN_SEM_DONE, GN_SEM_ERROR, GN_SEM_EXIT };

// ---- the header and its rows: written before the kernel starts, never again
// ---------------------------------

typedef struct gn_tx_row { // 128 B
    gn_u64 slots;          // gn_slot[size]
    gn_u64 state;          // gn_tx_state as the kernel polls it
    gn_u64 source;         // the proxy's own; other than state: gn_relay brings it there
    gn_u64 posted;         // gn_tx_posted
    gn_u64 local;          // gn_tx_local
    gn_u64 first;          // ticket
    gn_u64 epoch;          // of the kernel's start
    gn_u32 log2;           // of the number of slots
    gn_u32 ops;            // bit k: it takes gn_op k
    gn_u32 queue;          // the context's queue, in errors
    gn_u32 spare32;
    gn_u64 back; // from the header to the row: a row alone leads to its context (doca_gpu.h)
    gn_u64 spare[6];
} gn_tx_row;

typedef struct gn_rx_row { // 128 B
    gn_u64 slots;          // gn_rx_slot[size]
    gn_u64 state;          // gn_rx_state, as of gn_tx_row
    gn_u64 source;
    gn_u64 released; // gn_u64[size], the kernel's: ticket + 1 once its packet may go
    gn_u64 local;    // gn_rx_local
    gn_u64 first, epoch;
    gn_u32 log2, queue;
    gn_u64 back;   // as gn_tx_row's
    gn_u64 single; // 1: each packet has one descriptor
    gn_u64 spare[6];
} gn_rx_row;

typedef struct gn_sem_row { // 64 B
    gn_u64 producer;        // gn_sem_producer
    gn_u64 consumer;        // gn_sem_consumer
    gn_u64 items;           // gn_sem_item[size]
    gn_u64 first;
    gn_u32 log2, spare32;
    gn_u64 back; // as gn_tx_row's
    gn_u64 spare[2];
} gn_sem_row;

enum gn_rights { GN_READ = 1, GN_WRITE = 2, GN_ADD = 4, GN_REMOTE = 8 }; // of a region; REMOTE: a peer's

typedef struct gn_region { // 32 B
    gn_u64 base;           // where the kernel has it; 0: nowhere
    gn_u64 bytes;
    gn_u32 stride, rights; // stride: bytes from packet buffer to packet buffer, 0: it has none
    gn_u64 spare;
} gn_region;

typedef struct gn_proxy_words { // the proxy's; a line
    gn_u64 abort;               // not 0: every wait ends
    gn_u64 beat;                // counts the proxy's rounds
    gn_u64 spare[6];
} gn_proxy_words;

typedef struct gn_kernel_words { // the kernel's; a line
    gn_u64 abi;                  // GN_ABI that it was compiled with, once it has opened the context
    gn_u64 beat;                 // the GPU's time, ns, when some thread was last heard of
    gn_u64 spare[6];
} gn_kernel_words;

typedef struct gn_context { // 256 B, in front of the block
    gn_u64 abi;    // GN_ABI. It, the next one, and what that leads to stay where they are in all versions
    gn_u64 kernel; // gn_kernel_words
    gn_u64 bytes;  // of the block
    gn_u32 n_tx, n_rx, n_sems, n_regions;
    gn_u64 tx, rx, sems, regions; // rows
    gn_u64 proxy, proxy_source;   // gn_proxy_words, as of gn_tx_row
    gn_u64 limit_ns;              // of a wait that names none
    gn_u64 spare[20];
} gn_context;

// ---- what both sides compute ------------------------------------------------------------------------------

GN_FN void *gn_at(const void *context, gn_u64 offset) { return (void *)((gn_u8 *)context + offset); }
GN_FN gn_u64 gn_lap(gn_u64 ticket, gn_u32 log2) { return ((ticket >> log2 & 1) ^ 1) << 63; }
GN_FN gn_u64 gn_index(gn_u64 ticket, gn_u32 log2) { return ticket & ((1ull << log2) - 1); }
GN_FN gn_slot *gn_tx_slot(const void *context, const gn_tx_row *r, gn_u64 ticket) {
    return (gn_slot *)gn_at(context, r->slots) + gn_index(ticket, r->log2);
}
GN_FN gn_rx_slot *gn_rx_slot_of(const void *context, const gn_rx_row *r, gn_u64 ticket) {
    return (gn_rx_slot *)gn_at(context, r->slots) + gn_index(ticket, r->log2);
}

// Whether slot w of n words is there for the ticket; what it says, without the lap's bits, in out. Each word
// was stored behind the bytes that the slot names: one of them is loaded for that order.
GN_FN int gn_read(const gn_u64 *w, gn_u32 n, gn_u64 lap, gn_u64 *out) {
    gn_u64 other = 0;
    for (gn_u32 k = n; k-- > 0;) {
        gn_u64 v = k ? gn_load_beside(&w[k]) : gn_load(&w[0]);
        other |= v ^ lap;
        out[k] = v & ~GN_LAP;
    }
    return !(other & GN_LAP);
}

// Writes n words of a slot, in no order among them: what was written before is seen before.
GN_FN void gn_write(gn_u64 *w, gn_u32 n, gn_u64 lap, const gn_u64 *words) {
    gn_fence();
    for (gn_u32 k = 0; k < n; k++)
        gn_store_fenced(&w[k], lap | (words[k] & ~GN_LAP));
}

// The state of item t: counters as they were read, done first, then hold, then ready.
GN_FN int gn_sem_state(gn_u64 t, gn_u64 done, gn_u64 hold, gn_u64 ready) {
    gn_u64 d = done & ~GN_SEM_END;
    if (t < d) return GN_SEM_DONE;
    if (done & GN_SEM_END) return GN_SEM_ERROR;
    if (t < hold) return GN_SEM_HOLD;
    if (t < (ready & ~GN_SEM_END)) return GN_SEM_READY;
    return ready & GN_SEM_END ? GN_SEM_EXIT : GN_SEM_FREE;
}

#endif
