// dq_program.h: programs evaluated per packet, and operations on bursts.
#ifndef DQ_PROGRAM_H
#define DQ_PROGRAM_H

#include "core/dq_core.h"
#include "packet/dq_ops.h"
#include "packet/dq_rules.h"

// A number computed from fields of a packet; n 0: none.
typedef struct dq_number {
    const dq_insn *insns;
    uint32_t n;
} dq_number;

// Creates a program over packet fields: a condition or a number. Checks and copies the instructions; the
// caller frees it. INVALID_PARAMETER with the instruction and the reason, GENERIC_FAILURE: no memory. Any
// thread.
int dq_prog_new(const dq_insn *insns, uint32_t n, dq_prog **out, dq_diag *diag);
void dq_prog_free(dq_prog *prog);

// Verbs read the first segment only; any number of threads may run one program. None of them blocks.
//
// Writes the field of packet i to out[i]; ok (may be NULL) [i] = 0 if the packet lacks it. Returns the number
// of packets that have it.
uint32_t dq_burst_column(dq_burst *b, const dq_field *f, uint64_t *out, uint8_t *ok);
// Does the same with a program's number; 1 and 0 for a condition.
uint32_t dq_burst_eval(dq_burst *b, const dq_prog *prog, uint64_t *out, uint8_t *ok);
// Returns a bitmap of the bits in which some number differs from the first; 0 if n is 0.
uint64_t dq_column_differing_bits(const uint64_t *v, uint32_t n);
// Writes the low 1, 2, 4 or 8 bytes of each number contiguously. Both: any thread, never block.
void dq_column_narrow(const uint64_t *v, uint32_t n, uint32_t bytes, void *out);
// Writes the indices of the packets for which the program is true; returns their number.
uint32_t dq_burst_select(dq_burst *b, const dq_prog *prog, uint32_t *idx);
// Returns the number of such packets.
uint32_t dq_burst_count(dq_burst *b, const dq_prog *prog);

// Handling of a packet's IPv4, UDP, TCP and ICMP checksums when a field is set.
typedef enum dq_csum {
    DQ_CSUM_KEEP,   // unchanged
    DQ_CSUM_UPDATE, // updated by the difference (RFC 1624): correct ones stay correct, wrong ones stay wrong,
                    // a UDP checksum of 0 stays 0. Recomputed if the field controls their coverage (lengths,
                    // protocol, fragment offset) or is one.
} dq_csum;
// Sets the field in every packet to v + i * step. Returns the number of packets set. INVALID_PARAMETER on a
// shared burst.
int dq_burst_set(dq_burst *b, const dq_field *f, uint64_t v, uint64_t step, int csum);
// Does the same for a field whose bit offset is increased by the number `place` of each packet; packets
// without that number lack the field.
int dq_burst_set_at(dq_burst *b, const dq_field *f, const dq_prog *place, uint64_t v, uint64_t step,
                    int csum);
// Operation of a rewrite rule on its field.
typedef enum dq_rewrite_kind {
    DQ_REWRITE_SET,  // start + step * index of the packet among all rewritten ones
    DQ_REWRITE_LOOP, // adds step * replay loop of the packet, from 0
    DQ_REWRITE_MAP,  // the first matching map
} dq_rewrite_kind;
// For a value v with (v & mask) == from, the bits of mask become `to`; likewise for the rule's field `low`.
typedef struct dq_rewrite_map {
    uint64_t mask, from, to;
    uint64_t low_mask, low_from, low_to;
} dq_rewrite_map;
typedef struct dq_rewrite_rule {
    dq_field field;
    dq_number place; // as in dq_burst_set_at; n 0: at the field's own offset
    int32_t kind;    // dq_rewrite_kind
    uint64_t start, step;
    const dq_rewrite_map *maps;
    uint32_t n_maps;
    dq_field low; // second field that the maps test and change, as the lower half of an IPv6 address;
                  // bit_width 0: none
} dq_rewrite_rule;
#define DQ_MAX_REWRITE_RULES 64
#define DQ_CSUM_COMPUTE      2 // for rewrites, besides dq_csum: recomputes them after all rules

// Finds the named field ("udp_dst"); false: unknown. dq_field_name returns the i-th name, NULL past the end.
bool dq_field_named(const char *name, dq_field *out);
const char *dq_field_name(uint32_t i);
// Returns the i-th field's description, with its unit.
const char *dq_field_text(uint32_t i);
// Compiles a filter with libpcap, if installed. The caller frees *out with free().
int dq_pcap_compile(const char *text, int dlt, dq_cbpf_insn **out, uint32_t *n, dq_diag *diag);

// Computes the IPv4, UDP, TCP and ICMP checksums of packet i, of all packets if i < 0. A packet without any
// is unchanged. INVALID_PARAMETER past the burst, or if the burst is shared.
int dq_burst_checksums(dq_burst *b, int64_t i);

#endif
