// steer_sets.h: what the maps of the eBPF program hold of an interface's rules. Rules become sets: those
// without port ranges and flex items are entries of a hash map, under the group of rules that look at the
// same bits; the others are tried one by one. Rules that come to the same share a place, which counts them.
#ifndef DQI_STEER_SETS_H
#define DQI_STEER_SETS_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"
#include "packet/match_key.h"
#include "engine/xdp/steer_map.h"

typedef struct steer_held {
    steer_entry entry;
    uint32_t rules; // that need it
    bool in_map, touched;
    struct steer_held *next; // of its bucket
} steer_held;

typedef struct steer_sets {
    steer_group groups[STEER_GROUPS];
    uint32_t in_group[STEER_GROUPS]; // rules
    steer_single singles[STEER_SINGLES];
    uint32_t in_single[STEER_SINGLES]; // rules
    uint64_t new_groups;               // bit g: not as in the map
    bool new_singles[STEER_SINGLES];
    uint32_t all; // rules that want everything

    steer_held **buckets;
    uint32_t n_buckets, n_nodes, n_entries; // nodes that rules need are entries
    steer_held **touched;                   // since dqi_steer_begin
    uint32_t n_touched;
} steer_sets;

// Makes room for a change of n rules, taken and given back counted each; false: no memory.
bool dqi_steer_begin(steer_sets *t, uint32_t n);
// Takes a rule in. NO_SPACE_AVAILABLE names the limit, INVALID_PARAMETER the rule; then it is as it was.
int dqi_steer_take(steer_sets *t, const dq_rule *r, dq_diag *diag);
// Gives one back that was taken.
void dqi_steer_give_back(steer_sets *t, const dq_rule *r);
// Ends a change: frees what no rule needs and no map has.
void dqi_steer_end(steer_sets *t);
void dqi_steer_sets_free(steer_sets *t);
// One more than the last place that is used.
uint32_t dqi_steer_groups_end(const steer_sets *t);
uint32_t dqi_steer_singles_end(const steer_sets *t);

#endif
