// steer_map.h: the maps between steer.c and the eBPF program (engine/xdp/bpf/steer.bpf.c), which decides for
// each received frame whether it is ours or the kernel's. Only plain C: both compilers read it.
#ifndef DQI_STEER_MAP_H
#define DQI_STEER_MAP_H

#include <stdint.h>

#include "packet/key_words.h"

// Limits of what the program can hold: different sets of conditions without port ranges and flex items, rules
// of those sets, rules with port ranges or flex items, and receive queues of the device.
enum { STEER_GROUPS = 64, STEER_ENTRIES = 1 << 17, STEER_SINGLES = 256, STEER_QUEUES = 64 };

typedef struct steer_conf {
    uint32_t active;   // 0: everything is the kernel's
    uint32_t all;      // everything is ours: not isolated, or a rule without conditions
    uint32_t drop_all; // what is ours is dropped
    uint32_t n_groups; // used in the maps, from 0 on
    uint32_t n_singles;
} steer_conf;

// Rules whose conditions look at the same bits of the key: they are entries of one hash map.
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
    uint16_t src_lo, src_hi, dst_lo, dst_hi; // of ports
    uint32_t flex_val, flex_mask;
    uint16_t flex_offset; // behind the payload's start
    uint8_t flex;         // 1: the three above count
    uint8_t used;
    uint32_t unused;
} steer_single;

// Frames, and bytes of those dropped, counted on each processor.
typedef struct steer_counts {
    uint64_t ours, passed, dropped, dropped_bytes;
} steer_counts;

#endif
