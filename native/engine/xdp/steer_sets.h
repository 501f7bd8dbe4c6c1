// steer_sets.h: contents of the eBPF program's maps for an interface's rules. Rules without port ranges and
// flex items are entries of a hash map, each in the group of rules that test the same bits; the others are
// tried one by one. Identical conditions share an entry, which counts its rules.
#ifndef DQI_STEER_SETS_H
#define DQI_STEER_SETS_H

#include "core/dq_core.h"
#include "engine/xdp/steer_map.h"
#include "packet/dq_rules.h"
#include "packet/match_key.h"

typedef struct steer_held {
    steer_entry entry;
    uint32_t rules; // number of rules that use it
    bool in_map, touched;
    struct steer_held *next; // in the same bucket
} steer_held;

typedef struct steer_sets {
    steer_group groups[STEER_GROUPS];
    uint32_t in_group[STEER_GROUPS]; // number of rules
    steer_single singles[STEER_SINGLES];
    uint32_t in_single[STEER_SINGLES]; // number of rules
    uint64_t new_groups;               // bit g: group g differs from the map
    bool new_singles[STEER_SINGLES];
    uint32_t all; // number of rules without conditions

    steer_held **buckets;
    uint32_t n_buckets, n_nodes, n_entries; // n_entries: nodes used by at least one rule
    steer_held **touched;                   // nodes touched since dqi_steer_begin
    uint32_t n_touched;
} steer_sets;

// Reserves room for a change of n rules, counting both added and removed ones; false: out of memory.
bool dqi_steer_begin(steer_sets *t, uint32_t n);
// Adds a rule. On error nothing changes: NO_SPACE_AVAILABLE names the limit, INVALID_PARAMETER the rule.
int dqi_steer_add(steer_sets *t, const dq_rule *r, dq_diag *diag);
// Removes a rule added before.
void dqi_steer_remove(steer_sets *t, const dq_rule *r);
// Ends a change: frees the nodes that no rule uses and no map contains.
void dqi_steer_end(steer_sets *t);
void dqi_steer_sets_free(steer_sets *t);
// Return the index of the last one in use, plus 1.
uint32_t dqi_steer_groups_end(const steer_sets *t);
uint32_t dqi_steer_singles_end(const steer_sets *t);

#endif
