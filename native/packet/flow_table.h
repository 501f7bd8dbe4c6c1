// flow_table.h: internals of flow tables, shared by flow_table.c (construction) and flow_table_lookup.c.
#ifndef DQI_FLOW_TABLE_H
#define DQI_FLOW_TABLE_H

#include "packet/lanes.h"
#include "packet/match_key.h"
#include "packet/port_map.h"
#include "packet/rss.h"

enum { NO_RANK = DQI_NO_RANK, BUCKET_WAYS = 4 };

// The action of a rule on a frame.
typedef struct flow_table_target {
    uint32_t flow_id;
    uint16_t n_queues; // 0: no rule matched
    uint16_t rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} flow_table_target;

// A rule in a hash table: the upper half of its hash as a tag, its rank below; NO_RANK: free. A slot XOR a
// key's tag is the rank if the tags are equal, else larger than any rank.
typedef uint64_t flow_table_slot;
#define FLOW_TABLE_TAG(hash) ((hash) & ~(uint64_t)UINT32_MAX)

typedef enum flow_table_kind {
    STEP_SINGLE, // one rule
    STEP_HASH,   // rules with equal masks: a hash table of the values
    STEP_PORTS,  // rules that differ in one port range only
} flow_table_kind;

// cond is the condition of the single rule, or of the group's first rule, which defines the masks.
typedef struct flow_table_step {
    flow_table_kind kind;
    uint32_t rank; // lowest rank in this step
    const dqi_cond *cond;
    flow_table_slot *slots; // HASH: buckets of `ways` slots; within a bucket, lower ranks come first
    uint32_t ways;          // 1 or BUCKET_WAYS
    uint32_t n_buckets;     // a power of two
    uint64_t seed;          // of the hash function
    dqi_port_map *ports;    // PORTS
    uint32_t shift;         // bit position of the ports in KEY_L4
} flow_table_step;

// One word of a rule's condition.
typedef struct flow_table_check {
    uint64_t mask, value;
} flow_table_check;

typedef enum flow_table_shape {
    SHAPE_EMPTY,
    SHAPE_CONSTANT,
    SHAPE_ONE_L4,
    SHAPE_GENERAL,
    SHAPE_LAYERED
} flow_table_shape;

struct dqi_flow_table {
    const dqi_level *level;
    flow_table_shape shape;
    uint32_t n;       // reachable rules
    uint32_t n_rules; // all rules
    bool shadowed;    // a group left out a rule, or some of its ports, that an equal one of lower rank covers
    uint32_t n_steps;
    uint32_t last;  // rank of frames that match in no step: that of a catch-all rule, or n
    uint32_t words; // bitmap of the key words that rules need
    dqi_key any;    // key bits that rules test
    bool plain_ok;  // rules test fixed offsets only
    const dqi_rss *rss;
    dqi_cond *conds; // by rank
    // The words of all conditions, interleaved: checks[rank * n_words + k] is of word[k].
    uint32_t n_words;
    uint8_t word[KEY_WORDS];
    flow_table_check *checks;   // of n + 1 ranks: the last has empty masks
    bool exact;                 // no step uses hash tags
    flow_table_target *targets; // by rank; targets[n] is used if no rule matches
    flow_table_step *steps;
    dq_rule *rules; // by priority; the first n are reachable
    _Atomic uint32_t refs;

    dqi_flow_table *base; // of a layered table: the unchanged base
    uint64_t *gone;       // bitmap: rule i of base is removed
};

// Hashes the key's words under the condition's masks (values of rules are masked already) as the kernel
// `hash` of a dqi_level does: the lower half selects the bucket, the upper half is the tag.
static inline uint64_t dqi_flow_table_hash(const dqi_cond *c, const dqi_key *key, uint64_t seed) {
    uint64_t h = seed;
    for (uint32_t words = c->words; words != 0; words &= words - 1) {
        const int i = __builtin_ctz(words);
        h = dqi_hash_word(h, key->w[i] & c->mask.w[i]);
    }
    return h;
}

#endif
