// lanes.h: up to 64 packets of a burst at once, column by column, for programs and verbs.
//
// Nearly all frames have the same shape: Ethernet without tags, IPv4 without options, not a fragment. Their
// headers lie at fixed offsets, so one pass finds them (as bits of a word: `plain`), and a field of all of
// them is a loop over fixed offsets. Any other frame is parsed (packet.h) and read one by one. In queues that
// hold payloads, and for programs that look at no header, everything lies at fixed offsets.
//
// Conditions on such fields, and changes of them, are the commonest verbs: they go from load to result in
// registers (match and patch of a dqi_level); what else there is goes by columns, an operator at a time.
//
// Loops over lanes stand in lane_body.h and are compiled once for each instruction set: a dqi_level. All
// levels give the same results; tests hold each to a model.
#ifndef DQI_LANES_H
#define DQI_LANES_H

#include "core/origin.h"
#include "packet/dq_ops.h"
#include "packet/dq_rules.h"
#include "packet/field.h"
#include "packet/items.h"

#include <string.h>

enum { DQI_LANES = 64, DQI_PLAIN_LEN = 54 }; // shorter frames are never plain

typedef struct dqi_col {
    _Alignas(64) uint64_t v[DQI_LANES];
} dqi_col;

// Packets as columns of a burst have them; flow and ts may be NULL.
typedef struct dqi_packets {
    uint8_t *base; // packet i is the len[i] bytes at base + off[i]
    const uint64_t *off;
    const uint32_t *len;
    const uint32_t *whole; // bytes of each packet where off and len are of what the host has of it; NULL: len
    const dqi_origin *origin; // how many bytes more each packet had when it was captured; NULL: none
    const uint32_t *flow;     // flow ids
    const int64_t *ts;        // receive times, ns; DQ_NO_TIME: none
    int64_t time_origin;      // the field rx_time counts from it
    uint32_t n;
} dqi_packets;

// What is wanted of each packet.
typedef enum dqi_look {
    DQI_LOOK_RAW,     // no headers: a queue of payloads, or only fields that need none
    DQI_LOOK_HEADERS, // Ethernet, IP and the ports
    DQI_LOOK_EXTENTS, // also where payload and IP packet end
} dqi_look;

// Fields of a base (enum dq_base) in plain lanes.
typedef struct dqi_reach {
    const dqi_col *at;  // where each lane's begin: an address, of p or own,
    uint64_t start;     // and so many bytes behind it
    uint64_t end, room; // so many bytes from `at` all are known to have for fields, and in the packet
    dqi_col own;
} dqi_reach;

// 8 bytes of each plain lane, from which all fields that lie in them are cut: programs read several fields of
// the same word, and headers one cache line of each packet.
typedef struct dqi_words {
    uint8_t base;
    uint64_t byte;  // the first one, counted from reach[base]
    uint64_t lanes; // that have all of them
    dqi_col v;      // as they lie in memory
} dqi_words;
enum { DQI_WORDS = 4 }; // kept at once

// Bit i of each mask is lane i.
typedef struct dqi_lanes {
    const dqi_packets *in;
    uint32_t first, n; // packets [first, first + n) of in
    dqi_look look;
    bool payload;                   // a queue of payloads
    uint64_t all;                   // the lanes in use
    uint64_t plain, udp, tcp;       // udp and tcp: of the plain ones
    dqi_col p;                      // where to read; zeros for what can't be plain
    dqi_col len;                    // RAW and EXTENTS: bytes of each packet
    dqi_col end, payload_at, limit; // EXTENTS, of plain lanes: ends of the IP packet and of the payload
    uint64_t least;                 // RAW and EXTENTS: no plain lane's len, end or limit is less
    bool same_payload_at;           // EXTENTS: payload_at is the same in all plain lanes
    uint32_t reached;               // bit b: reach[b] has its addresses
    dqi_reach reach[DQ_BASE_PAYLOAD + 1];
    uint32_t n_words; // read so far; the latest DQI_WORDS of them are kept
    dqi_words words[DQI_WORDS];
    bool parsed;
    dqi_pkt odd[DQI_LANES]; // when parsed: of lanes that aren't plain
} dqi_lanes;

// Which plain frames have a field: all ones or 0 for all of them, and for those with UDP and with TCP.
typedef struct dqi_who {
    uint64_t any, udp, tcp;
} dqi_who;

// A condition on plain frames: the number at a fixed place is in [from, to), both at most 2^62.
typedef struct dqi_term {
    uint32_t at, left, right; // the 8 bytes at `at`, shifted left, then right
    uint64_t from, to;
    dqi_who who;
} dqi_term;

// A change of plain frames: v << shift in place of the bits of mask; v is start + i * step in packet i, or
// what `values` has for it.
typedef struct dqi_patch {
    uint32_t at; // of 8 bytes; even: checksums count words of 16 bits
    uint32_t shift;
    uint64_t mask; // as it lies in memory
    uint64_t start, step;
    const dqi_col *values; // of the packets looked at; NULL: start and step
    uint64_t lanes;        // bit i: packet first + i may be changed
    dqi_who who;
    uint64_t ip_mask; // of the IPv4 header's checksum where it lies in the same 8 bytes, else 0
    uint32_t ip_shift;
    bool in_ip, in_l4; // covered by the IPv4 header's checksum, by the transport's: they follow (RFC 1624)
} dqi_patch;

// Words of keys (key_words.h) of up to DQI_LANES plain frames, and where neighbours differ under the masks.
typedef struct dqi_keys {
    dqi_col *l4, *ipv4; // KEY_L4 and KEY_IPV4
    uint64_t l4_mask, ipv4_mask;
    uint64_t last_l4, last_ipv4; // of the frame before the first
    uint64_t changed;            // bit i: frame i differs from the one before
} dqi_keys;

// A word of keys, under a mask.
typedef struct dqi_key_part {
    const dqi_col *word;
    uint64_t mask;
} dqi_key_part;

// Takes one word more into a hash: each half times an odd number, of 2^32 divided by the golden ratio and by
// the square root of two.
#define DQI_HASH_LOW  0x9e3779b1u
#define DQI_HASH_HIGH 0xb504f32du
static inline uint64_t dqi_hash_word(uint64_t h, uint64_t word) {
    h ^= word;
    h = (h & UINT32_MAX) * DQI_HASH_LOW + (h >> 32) * DQI_HASH_HIGH;
    return h ^ h >> 32;
}

// Kernels of one instruction set. Columns are changed in place: a = a∘b.
typedef struct dqi_level {
    const char *name;
    void (*shape)(dqi_lanes *l);   // fills p, plain, udp, tcp
    void (*extents)(dqi_lanes *l); // the same, and len, end, payload_at, limit and what they have in common
    // The 8 bytes from `at` (at most DQI_PLAIN_LEN - 8) of plain lanes as numbers, shifted left, then right.
    void (*fixed)(const dqi_lanes *l, uint32_t at, uint32_t left, uint32_t right, dqi_col *out);
    // at = p + from, the addresses from which fields of a base count.
    void (*reach)(const dqi_lanes *l, const dqi_col *from, dqi_col *at);
    // Lanes in which at - p + end is at most the limit.
    uint64_t (*holding)(const dqi_lanes *l, const dqi_col *at, const dqi_col *limit, uint64_t end);
    // The 8 bytes, as they lie in memory, `byte` bytes behind `at` in those lanes.
    void (*gather)(const dqi_lanes *l, const dqi_col *at, uint64_t byte, uint64_t lanes, dqi_col *out);
    // Such words as numbers of either byte order, shifted left, then right.
    void (*part)(const dqi_lanes *l, const dqi_col *words, bool little, uint32_t left, uint32_t right,
                 dqi_col *out);
    void (*fill)(dqi_col *a, uint64_t v);
    void (*keep)(dqi_col *a, uint64_t lanes); // the others become 0
    // a = (a << left) >> right; sign: with copies of the top bit
    void (*cut)(dqi_col *a, uint32_t left, uint32_t right, bool sign);
    void (*unary[DQ_OP_COUNT])(dqi_col *a);
    void (*binary[DQ_OP_COUNT])(dqi_col *a, const dqi_col *b);
    uint64_t (*compare[DQ_OP_COUNT])(const dqi_col *a, const dqi_col *b);
    // Of packets [first, first + n), n up to DQI_LANES: which plain ones satisfy all terms, and which are
    // plain.
    uint64_t (*match)(const dqi_packets *in, uint32_t first, uint32_t n, const dqi_term *terms,
                      uint32_t n_terms, uint64_t *plain);
    // Patches those that have the field; which they are, and which are plain.
    uint64_t (*patch)(const dqi_packets *in, uint32_t first, uint32_t n, const dqi_patch *c, uint64_t *plain);
    // Fills k of all packets of in, up to DQI_LANES; which are plain and have UDP or TCP. The others' words
    // mean nothing.
    uint64_t (*keys)(const dqi_packets *in, dqi_keys *k);
    // Hashes of n keys, by dqi_hash_word.
    void (*hash)(const dqi_key_part *part, uint32_t n_parts, uint64_t seed, uint32_t n, dqi_col *h);
} dqi_level;

// The i-th level that this processor can run, the portable one first; NULL past the end.
const dqi_level *dqi_level_at(uint32_t i);
// The fastest one. Any thread.
const dqi_level *dqi_level_best(void);

// Looks at packets [first, first + DQI_LANES) of in, or as many as there are. in must outlive l. Reads
// nothing outside the packets. Any thread, never blocks.
void dqi_lanes_look(dqi_lanes *l, const dqi_level *k, const dqi_packets *in, uint32_t first, dqi_look look,
                    bool payload);

// What must be looked at to read a field.
dqi_look dqi_look_for(const dq_field *f);

// Where a field lies in every plain frame: bits from the start; *who: which of them have it. False where its
// place differs between plain frames, or goes past the first DQI_PLAIN_LEN bytes.
bool dqi_plain_field(const dq_field *f, uint32_t *bit, uint32_t *width, dqi_who *who);

// Reads a checked field of each lane and returns which have it; the value of the others is 0.
uint64_t dqi_lanes_load(dqi_lanes *l, const dqi_level *k, const dq_field *f, dqi_col *out);

// The same of some lanes, by bits, with a bit offset that is by->v[i] more in lane i; what is more than
// DQI_MOVED_MAX is nowhere.
#define DQI_MOVED_MAX UINT32_C(0x7fffffff)
uint64_t dqi_lanes_load_at(dqi_lanes *l, const dqi_level *k, const dq_field *f, uint64_t lanes,
                           const dqi_col *by, dqi_col *out);
// Looks in the lists of some lanes, count->v[i] items each, that begin bit_offset + by->v[i] bits into the
// innermost payload.
uint64_t dqi_lanes_find(dqi_lanes *l, const dqi_item_key *key, uint32_t bit_offset, uint64_t lanes,
                        const dqi_col *by, const dqi_col *count, dqi_col *out);

// The parsed headers of a lane that isn't plain, with what came with the packet.
const dqi_pkt *dqi_lanes_odd(dqi_lanes *l, uint32_t lane);
// Parses any lane.
void dqi_lanes_parse(const dqi_lanes *l, uint32_t lane, dqi_pkt *out);

static inline uint64_t dqi_word(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline uint64_t dqi_wire64(uint64_t v) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

// How far up in such a word the bytes k and k + 1 are.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DQI_PAIR_SHIFT(k) (8 * (k))
#else
#define DQI_PAIR_SHIFT(k) (48 - 8 * (k))
#endif

extern const uint8_t dqi_zeros[DQI_PLAIN_LEN]; // what too short a packet reads as: never a plain frame

// Where lane i is read; never written to.
static inline const uint8_t *dqi_lane_at(const dqi_lanes *l, uint32_t i) {
    return (const uint8_t *)(uintptr_t)l->p.v[i];
}

static inline uint8_t *dqi_lane_bytes(const dqi_lanes *l, uint32_t lane) {
    return l->in->base + l->in->off[l->first + lane];
}

#endif
