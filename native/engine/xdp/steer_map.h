// steer_map.h: maps shared by steer.c and the eBPF program (engine/xdp/bpf/steer.bpf.c) that decides whether
// a received frame goes to the session or to the kernel. Plain C only: both compilers read it.
#ifndef DQI_STEER_MAP_H
#define DQI_STEER_MAP_H

#include <stdint.h>

#include "packet/key_words.h"

// Capacity of the program: groups of rules without port ranges and flex items, rules in those groups, rules
// with port ranges or flex items, receive queues of the device.
enum { STEER_GROUPS = 64, STEER_ENTRIES = 1 << 17, STEER_SINGLES = 256, STEER_QUEUES = 64 };

typedef struct steer_conf {
    uint32_t active;   // 0: all frames go to the kernel
    uint32_t all;      // all frames go to the session: not isolated, or a rule without conditions
    uint32_t drop_all; // frames for the session are dropped
    uint32_t n_groups; // groups in use, from 0 on
    uint32_t n_singles;
} steer_conf;

// Rules whose conditions test the same bits of the key; they are entries of one hash map.
typedef struct steer_group {
    uint64_t mask[KEY_WORDS];
    uint64_t used;
} steer_group;

typedef struct steer_entry {
    uint64_t group;
    uint64_t value[KEY_WORDS]; // masked
} steer_entry;

typedef struct steer_single {
    uint64_t mask[KEY_WORDS], value[KEY_WORDS];
    uint16_t src_lo, src_hi, dst_lo, dst_hi; // port ranges
    uint32_t flex_val, flex_mask;
    uint16_t flex_offset; // from the start of the payload
    uint8_t flex;         // 1: the three fields above are valid
    uint8_t used;
    uint32_t unused;
} steer_single;

// Frames per CPU, and bytes of the dropped ones.
typedef struct steer_counts {
    uint64_t ours, passed, dropped, dropped_bytes;
} steer_counts;

#endif
