// rewrite.h: changes fields of every packet of a stream by rules (dq_rewrite_rule), compiled once. Any number
// of threads may run one rewrite.
#ifndef DQI_REWRITE_H
#define DQI_REWRITE_H

#include "packet/lanes.h"
#include "program/dq_program.h"

typedef struct dqi_rewrite dqi_rewrite;

// Copies the rules; csum: dq_csum, or DQ_CSUM_COMPUTE. INVALID_PARAMETER with the rule and the reason;
// DQ_ESYS: no memory. The caller frees *out.
int dqi_rewrite_new(const dq_rewrite_rule *rules, uint32_t n, int csum, dqi_rewrite **out, dq_diag *diag);
void dqi_rewrite_free(dqi_rewrite *r);
// Reports whether some rule uses replay loops.
bool dqi_rewrite_loops(const dqi_rewrite *r);
// Applies the rules in order. number: index of the first packet; loops: replay loop of each packet, NULL: all
// 0. Returns how many packets had the fields of all rules, and for a map one of its values. Never blocks.
uint32_t dqi_rewrite_run(const dqi_rewrite *r, const dqi_level *k, const dqi_packets *in, bool payload,
                         uint64_t number, const uint32_t *loops);

#endif
