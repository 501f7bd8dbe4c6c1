// match.h: tests packets against rules, and finds the first matching rule of a table.
//
// A match is conditions on header fields, all of which must hold. A flow table is built once from rules and
// is immutable; changing flows means swapping the pointer to the next table between two batches.
#ifndef DQI_MATCH_H
#define DQI_MATCH_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"
#include "packet/packet.h"

#define DQI_NO_QUEUE 0xffff // no rule matched

typedef struct dqi_flow_table dqi_flow_table;

// Checks that a match is consistent (not udp_dst with tcp_dst, an empty range, ...); else returns
// DQ_INVALID_PARAMETER with the member and the reason in diag (may be NULL).
int dqi_match_check(const dq_match *m, dq_diag *diag);

// Reports whether the frame of len bytes at p, parsed into *pkt, meets every condition of a checked match.
// Compiles the match each time: for many packets see dqi_flow_table_select. Never blocks.
bool dqi_match_packet(const dq_match *m, const uint8_t *p, uint32_t len, const dqi_pkt *pkt);

// Builds the table of n rules (0: nothing matches) into *out; the rules are copied. Free it with
// dqi_flow_table_free. DQ_INVALID_PARAMETER names the rule in diag; DQ_GENERIC_FAILURE: no memory. Any
// thread; allocates.
int dqi_flow_table_build(const dq_rule *rules, uint32_t n, dqi_flow_table **out, dq_diag *diag);
void dqi_flow_table_free(dqi_flow_table *t);

// Builds *out from old, whose rules have distinct orders, without the rules of the n_gone orders and with the
// n_add rules. It may share memory with old; each is freed separately. With neither it builds the same rules
// in the form that is fastest to look up. Errors as dqi_flow_table_build, and DQ_INVALID_PARAMETER for an
// unknown order; old never changes.
int dqi_flow_table_change(const dqi_flow_table *old, const uint64_t *gone, uint32_t n_gone,
                          const dq_rule *add, uint32_t n_add, dqi_flow_table **out, dq_diag *diag);

// Returns the rule of this order, or NULL. Valid as long as the table.
const dq_rule *dqi_flow_table_rule(const dqi_flow_table *t, uint64_t order);

// Classifies n Ethernet frames (frame i is the len[i] bytes at base + off[i]): writes the flow id of the
// first rule that it matches and the queue selected by the rule, or flow id 0 and DQI_NO_QUEUE. Only reads
// the table, so any number of threads may share it. Never blocks, never allocates.
void dqi_flow_table_classify(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off,
                             const uint32_t *len, uint32_t n, uint32_t *flow_id, uint16_t *queue);

// Writes the indices, ascending, of the frames that match some rule (room for n); returns their number.
uint32_t dqi_flow_table_select(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off,
                               const uint32_t *len, uint32_t n, uint32_t *out);

#endif
