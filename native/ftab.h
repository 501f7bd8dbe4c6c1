// ftab.h: between ftab.c, which makes flow tables, and ftab_lookup.c, which asks them.
#ifndef DQI_FTAB_H
#define DQI_FTAB_H

#include "match_key.h"
#include "rss.h"

enum { NO_RANK = INT32_MAX };

// What a rule does with a frame.
typedef struct ftab_target {
    uint32_t flow_id;
    uint16_t n_queues; // 0: the answer for no match
    uint16_t rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} ftab_target;

typedef struct ftab_slot {
    uint32_t tag;  // upper half of the hash
    uint32_t rank; // + 1; 0: empty
} ftab_slot;

// Single rule: n_slots is 0 and cond is the rule's. Group: cond is that of any of its rules and gives the
// masks.
typedef struct ftab_step {
    uint32_t rank; // lowest that this step can yield
    uint32_t n_slots;
    const dqi_cond *cond;
    ftab_slot *slots;
} ftab_step;

typedef enum ftab_shape {
    SHAPE_EMPTY,
    SHAPE_CONSTANT,
    SHAPE_ONE_L4,
    SHAPE_GENERAL,
    SHAPE_LAYERED
} ftab_shape;

struct dqi_ftab {
    ftab_shape shape;
    uint32_t n;       // rules that can be reached
    uint32_t n_rules; // all
    bool shadowed;    // a hash table left out a rule that an equal one comes before
    uint32_t n_steps;
    uint32_t words; // of the key, that some rule needs
    bool plain_ok;  // no rule looks further than fixed offsets can
    const dqi_rss *rss;
    dqi_cond *conds;      // by rank
    ftab_target *targets; // by rank; targets[n] is the answer for no match
    ftab_step *steps;
    dq_rule *rules; // in order; of all of them the first n can be reached
    _Atomic uint32_t refs;

    dqi_ftab *base; // of a layered table: what it changes
    uint64_t *gone; // bit i: rule i of base is not there any more
};

// A hash of the key's words under the condition's masks; values of rules are masked already.
static inline uint64_t dqi_ftab_hash(const dqi_cond *c, const dqi_key *key) {
    uint64_t h = 0;
    for (uint32_t words = c->words; words != 0; words &= words - 1) {
        int i = __builtin_ctz(words);
        h = (h ^ (key->w[i] & c->mask.w[i])) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return h * 0xd6e8feb86659fd93ull;
}

#endif
