// flow_table.h: between flow_table.c, which makes flow tables, and flow_table_lookup.c, which asks them.
#ifndef DQI_FLOW_TABLE_H
#define DQI_FLOW_TABLE_H

#include "packet/lanes.h"
#include "packet/match_key.h"
#include "packet/port_map.h"
#include "packet/rss.h"

enum { NO_RANK = DQI_NO_RANK, BUCKET_WAYS = 4 };

// What a rule does with a frame.
typedef struct flow_table_target {
    uint32_t flow_id;
    uint16_t n_queues; // 0: the answer for no match
    uint16_t rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} flow_table_target;

// A rule in a hash table: the upper half of its hash as a tag, and its rank below; a free place is NO_RANK. A
// slot exclusive-or a key's tag is the rank where the tags are equal, else larger than any rank.
typedef uint64_t flow_table_slot;
#define FLOW_TABLE_TAG(hash) ((hash) & ~(uint64_t)UINT32_MAX)

typedef enum flow_table_kind {
    STEP_SINGLE, // one rule
    STEP_HASH,   // rules with equal masks: a hash table of their values
    STEP_PORTS,  // rules that differ in a range of ports alone
} flow_table_kind;

// cond is the single rule's, or that of the group's first rule, which gives the masks.
typedef struct flow_table_step {
    flow_table_kind kind;
    uint32_t rank; // lowest that this step can yield
    const dqi_cond *cond;
    flow_table_slot *slots; // HASH: buckets of `ways` slots; of rules in one bucket the lower rank is first
    uint32_t ways;          // 1 or BUCKET_WAYS
    uint32_t n_buckets;     // a power of two
    uint64_t seed;          // of hashes
    dqi_port_map *ports;    // PORTS
    uint32_t shift;         // of the ports in KEY_L4
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
    uint32_t n;       // rules that can be reached
    uint32_t n_rules; // all
    bool shadowed;    // a group left out a rule, or some of its ports, as an equal one comes before
    uint32_t n_steps;
    uint32_t last;  // rank of frames that no step has one for: a catch-all's, or n
    uint32_t words; // of the key, that some rule needs
    dqi_key any;    // bits of the key that some rule looks at
    bool plain_ok;  // no rule looks further than fixed offsets can
    const dqi_rss *rss;
    dqi_cond *conds; // by rank
    // The words of all conditions side by side: checks[rank * n_words + k] is of word[k].
    uint32_t n_words;
    uint8_t word[KEY_WORDS];
    flow_table_check *checks;   // of n + 1 ranks: the last has no masks
    bool exact;                 // no step goes by tags of hashes
    flow_table_target *targets; // by rank; targets[n] is the answer for no match
    flow_table_step *steps;
    dq_rule *rules; // in order; of all of them the first n can be reached
    _Atomic uint32_t refs;

    dqi_flow_table *base; // of a layered table: what it changes
    uint64_t *gone;       // bit i: rule i of base is not there any more
};

// A hash of the key's words under the condition's masks (values of rules are masked already), as the kernel
// `hash` of a dqi_level makes it: its lower half leads to the bucket, its upper half is a tag.
static inline uint64_t dqi_flow_table_hash(const dqi_cond *c, const dqi_key *key, uint64_t seed) {
    uint64_t h = seed;
    for (uint32_t words = c->words; words != 0; words &= words - 1) {
        const int i = __builtin_ctz(words);
        h = dqi_hash_word(h, key->w[i] & c->mask.w[i]);
    }
    return h;
}

#endif
