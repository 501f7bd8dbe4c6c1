// dq_program.h: programs that run over packets, and operations on bursts.
#ifndef DQ_PROGRAM_H
#define DQ_PROGRAM_H

#include "core/dq_core.h"
#include "packet/dq_ops.h"
#include "packet/dq_rules.h"

// A number over the fields of a packet; n 0: none.
typedef struct dq_number {
    const dq_insn *insns;
    uint32_t n;
} dq_number;

// A program that runs over bursts: a condition, or a number (dq_prog.h). Checked and copied; the caller frees
// it. INVALID_PARAMETER with the instruction and the reason, GENERIC_FAILURE: no memory. Any thread.
int dq_prog_new(const dq_insn *insns, uint32_t n, dq_prog **out, dq_diag *diag);
void dq_prog_free(dq_prog *prog);

// Verbs look at the first segment; any number of threads may run one program. None of them blocks.
//
// out[i] = the field of packet i; ok (may be NULL) [i] = 0 where the packet hasn't got it. The number of
// packets that have it.
uint32_t dq_burst_column(dq_burst *b, const dq_field *f, uint64_t *out, uint8_t *ok);
// The same of a program's number; 1 and 0 for a condition.
uint32_t dq_burst_eval(dq_burst *b, const dq_prog *prog, uint64_t *out, uint8_t *ok);
// What of a column differs: a bit is set where some number has another one than the first. 0 of none.
uint64_t dq_column_differing_bits(const uint64_t *v, uint32_t n);
// The lower 1, 2, 4 or 8 bytes of each number, one behind the other. Both: any thread, never block.
void dq_column_narrow(const uint64_t *v, uint32_t n, uint32_t bytes, void *out);
// Indices of the packets for which the program holds; n.
uint32_t dq_burst_select(dq_burst *b, const dq_prog *prog, uint32_t *idx);
// How many there are.
uint32_t dq_burst_count(dq_burst *b, const dq_prog *prog);

// What becomes of the IPv4, UDP, TCP and ICMP checksums of a packet in which a field is set.
typedef enum dq_csum {
    DQ_CSUM_KEEP,   // nothing
    DQ_CSUM_UPDATE, // they follow by the difference (RFC 1624): right ones stay right, wrong ones stay wrong,
                    // and a UDP checksum of 0 stays 0. Computed anew where the field says what they cover
                    // (lengths, protocol, fragment offset) or is a checksum.
} dq_csum;
// Sets the field in every packet to v + i * step. The number of packets set. INVALID_PARAMETER on a shared
// burst.
int dq_burst_set(dq_burst *b, const dq_field *f, uint64_t v, uint64_t step, int csum);
// The same of a field that lies as many bits further on as `place`, a number, says of each packet; packets
// without such a number have no such field.
int dq_burst_set_at(dq_burst *b, const dq_field *f, const dq_prog *place, uint64_t v, uint64_t step,
                    int csum);
// What a rule of a rewrite makes of its field.
typedef enum dq_rewrite_kind {
    DQ_REWRITE_SET,  // start + step * number of the packet among all that are rewritten
    DQ_REWRITE_LOOP, // step * loop of the capture that it was replayed in, from 0, more than it has
    DQ_REWRITE_MAP,  // what the first of its maps says that is for it
} dq_rewrite_kind;
// Of a value v with (v & mask) == from, the bits of mask become `to`; likewise of a rule's field `low`.
typedef struct dq_rewrite_map {
    uint64_t mask, from, to;
    uint64_t low_mask, low_from, low_to;
} dq_rewrite_map;
typedef struct dq_rewrite_rule {
    dq_field field;
    dq_number place; // as in dq_burst_set_at; n 0: it lies where it lies
    int32_t kind;    // dq_rewrite_kind
    uint64_t start, step;
    const dq_rewrite_map *maps;
    uint32_t n_maps;
    dq_field low; // a second field that its maps look at and change with the first, as the lower half of an
                  // IPv6 address; bit_width 0: none
} dq_rewrite_rule;
#define DQ_MAX_REWRITE_RULES 64
#define DQ_CSUM_COMPUTE      2 // of a rewrite, beside dq_csum: they are computed anew when all rules are through

// The named field ("udp_dst"), false when there is none of that name; and the i-th name, NULL past the end.
bool dq_field_named(const char *name, dq_field *out);
const char *dq_field_name(uint32_t i);
// What it is, with its unit.
const char *dq_field_text(uint32_t i);
// libpcap's compiler, when libpcap is there. Caller frees *out with free().
int dq_pcap_compile(const char *text, int dlt, dq_cbpf_insn **out, uint32_t *n, dq_diag *diag);

// Computes the checksums of IPv4, UDP, TCP and ICMP of packet i, of all packets with i < 0. A packet that has
// none stays as it is. INVALID_PARAMETER past the burst, or where others read it.
int dq_burst_checksums(dq_burst *b, int64_t i);

#endif
