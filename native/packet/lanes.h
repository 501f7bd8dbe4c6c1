// lanes.h: processes up to 64 packets of a burst at once, column by column, for programs and verbs.
//
// Nearly all frames have the same shape: Ethernet without tags, IPv4 without options, not a fragment. Their
// headers lie at fixed offsets, so one pass finds them (the bitmap `plain`), and a field of all of them is
// read by a loop over fixed offsets. Any other frame is parsed (packet.h) and read individually. In queues of
// payloads, and for programs that use no header, everything lies at fixed offsets.
//
// Conditions on such fields, and changes of them, are the most common verbs: they stay in registers from load
// to result (match and patch of a dqi_level); everything else runs column-wise, one operator at a time.
//
// Loops over lanes are in lane_body.h and compiled once per instruction set: a dqi_level. All levels give the
// same results; tests compare each with a model.
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

// Packets as in a burst's columns; flow and ts may be NULL.
typedef struct dqi_packets {
    uint8_t *base; // packet i is the len[i] bytes at base + off[i]
    const uint64_t *off;
    const uint32_t *len;
    const uint32_t *whole;    // packet lengths if off and len cover only the part on the host; NULL: len
    const dqi_origin *origin; // bytes that the capture cut from each packet; NULL: none
    const uint32_t *flow;     // flow ids
    const int64_t *ts;        // receive times, ns; DQ_NO_TIME: none
    int64_t time_origin;      // origin of the field rx_time
    uint32_t n;
} dqi_packets;

// Amount of header information needed for each packet.
typedef enum dqi_look {
    DQI_LOOK_RAW,     // no headers: a queue of payloads, or only fields that need none
    DQI_LOOK_HEADERS, // Ethernet, IP and ports
    DQI_LOOK_EXTENTS, // also the ends of payload and IP packet
} dqi_look;

// Fields of a base (enum dq_base) in plain lanes.
typedef struct dqi_reach {
    const dqi_col *at;  // base address of each lane, in p or own
    uint64_t start;     // offset of the fields from `at`
    uint64_t end, room; // bytes from `at` that all lanes are known to have for fields, and in the packet
    dqi_col own;
} dqi_reach;

// 8 bytes of each plain lane, from which fields are extracted: programs read several fields of one word, and
// headers span one cache line per packet.
typedef struct dqi_words {
    uint8_t base;
    uint64_t byte;  // offset of the first one from reach[base]
    uint64_t lanes; // lanes that have all of them
    dqi_col v;      // in memory order
} dqi_words;
enum { DQI_WORDS = 4 }; // words cached at a time

// Bit i of each mask is lane i.
typedef struct dqi_lanes {
    const dqi_packets *in;
    uint32_t first, n; // packets [first, first + n) of in
    dqi_look look;
    bool payload;                   // of a queue of payloads
    uint64_t all;                   // lanes in use
    uint64_t plain, udp, tcp;       // plain lanes, and those of them with UDP and TCP
    dqi_col p;                      // addresses; of zeros for frames too short to be plain
    dqi_col len;                    // RAW and EXTENTS: bytes of each packet
    dqi_col end, payload_at, limit; // EXTENTS, plain lanes: end of the IP packet; start and end of the
                                    // payload
    uint64_t least;                 // RAW and EXTENTS: lower bound of len, end and limit in plain lanes
    bool same_payload_at;           // EXTENTS: payload_at is equal in all plain lanes
    uint32_t reached;               // bit b: reach[b] is valid
    dqi_reach reach[DQ_BASE_PAYLOAD + 1];
    uint32_t n_words; // words read so far; the last DQI_WORDS of them are cached
    dqi_words words[DQI_WORDS];
    bool parsed;
    dqi_pkt odd[DQI_LANES]; // if parsed: lanes that are not plain
} dqi_lanes;

// Plain frames that have a field: all ones or 0 for any plain frame, for those with UDP and with TCP.
typedef struct dqi_who {
    uint64_t any, udp, tcp;
} dqi_who;

// A condition on plain frames: the number at a fixed offset is in [from, to), both at most 2^62.
typedef struct dqi_term {
    uint32_t at, left, right; // the 8 bytes at `at`, shifted left, then right
    uint64_t from, to;
    dqi_who who;
} dqi_term;

// A change of plain frames: v << shift replaces the bits of mask; v is start + i * step for packet i, or its
// entry in `values`.
typedef struct dqi_patch {
    uint32_t at; // offset of 8 bytes; even, as checksums use 16-bit words
    uint32_t shift;
    uint64_t mask; // in memory order
    uint64_t start, step;
    const dqi_col *values; // one value per packet; NULL: use start and step
    uint64_t lanes;        // bit i: packet first + i may be changed
    dqi_who who;
    uint64_t ip_mask; // bits of the IPv4 header checksum if it lies in the same 8 bytes, else 0
    uint32_t ip_shift;
    bool in_ip, in_l4; // whether the IPv4 or transport checksum covers it and is updated (RFC 1624)
} dqi_patch;

// Key words (key_words.h) of up to DQI_LANES plain frames, and where neighbours differ under the masks.
typedef struct dqi_keys {
    dqi_col *l4, *ipv4; // KEY_L4 and KEY_IPV4
    uint64_t l4_mask, ipv4_mask;
    uint64_t last_l4, last_ipv4; // of the frame before the first
    uint64_t changed;            // bit i: frame i differs from its predecessor
} dqi_keys;

// A word of keys, with a mask.
typedef struct dqi_key_part {
    const dqi_col *word;
    uint64_t mask;
} dqi_key_part;

// Adds one word to a hash: each half times an odd number, 2^32 divided by the golden ratio and by the square
// root of two.
#define DQI_HASH_LOW  0x9e3779b1u
#define DQI_HASH_HIGH 0xb504f32du
static inline uint64_t dqi_hash_word(uint64_t h, uint64_t word) {
    h ^= word;
    h = (h & UINT32_MAX) * DQI_HASH_LOW + (h >> 32) * DQI_HASH_HIGH;
    return h ^ h >> 32;
}

// Kernels of one instruction set. Columns are changed in place: a = a op b.
typedef struct dqi_level {
    const char *name;
    void (*shape)(dqi_lanes *l);   // sets p, plain, udp, tcp
    void (*extents)(dqi_lanes *l); // also sets len, end, payload_at, limit, least, same_payload_at
    // Reads the 8 bytes at `at` (at most DQI_PLAIN_LEN - 8) of plain lanes, as numbers shifted left, then
    // right.
    void (*fixed)(const dqi_lanes *l, uint32_t at, uint32_t left, uint32_t right, dqi_col *out);
    // at = p + from, the base addresses of fields of a base.
    void (*reach)(const dqi_lanes *l, const dqi_col *from, dqi_col *at);
    // Returns the lanes in which at - p + end does not exceed the limit.
    uint64_t (*holding)(const dqi_lanes *l, const dqi_col *at, const dqi_col *limit, uint64_t end);
    // Reads the 8 bytes, in memory order, `byte` bytes after `at` in those lanes.
    void (*gather)(const dqi_lanes *l, const dqi_col *at, uint64_t byte, uint64_t lanes, dqi_col *out);
    // Converts such words to numbers from either byte order, shifted left, then right.
    void (*part)(const dqi_lanes *l, const dqi_col *words, bool little, uint32_t left, uint32_t right,
                 dqi_col *out);
    void (*fill)(dqi_col *a, uint64_t v);
    void (*keep)(dqi_col *a, uint64_t lanes); // zeroes the other lanes
    // a = (a << left) >> right; sign: arithmetic shift
    void (*cut)(dqi_col *a, uint32_t left, uint32_t right, bool sign);
    void (*unary[DQ_OP_COUNT])(dqi_col *a);
    void (*binary[DQ_OP_COUNT])(dqi_col *a, const dqi_col *b);
    uint64_t (*compare[DQ_OP_COUNT])(const dqi_col *a, const dqi_col *b);
    // For packets [first, first + n), n up to DQI_LANES, returns the plain ones that satisfy all terms;
    // *plain: all plain ones.
    uint64_t (*match)(const dqi_packets *in, uint32_t first, uint32_t n, const dqi_term *terms,
                      uint32_t n_terms, uint64_t *plain);
    // Patches the packets that have the field; returns them; *plain: all plain ones.
    uint64_t (*patch)(const dqi_packets *in, uint32_t first, uint32_t n, const dqi_patch *c, uint64_t *plain);
    // Fills k for all packets of in, up to DQI_LANES; returns those that are plain with UDP or TCP. The
    // others' words are undefined.
    uint64_t (*keys)(const dqi_packets *in, dqi_keys *k);
    // Hashes n keys with dqi_hash_word.
    void (*hash)(const dqi_key_part *part, uint32_t n_parts, uint64_t seed, uint32_t n, dqi_col *h);
} dqi_level;

// Returns the i-th level that this processor supports, the portable one first; NULL past the end.
const dqi_level *dqi_level_at(uint32_t i);
// Returns the fastest level. Any thread.
const dqi_level *dqi_level_best(void);

// Initializes l for packets [first, first + DQI_LANES) of in, or as many as there are. in must outlive l.
// Reads nothing outside the packets. Any thread, never blocks.
void dqi_lanes_look(dqi_lanes *l, const dqi_level *k, const dqi_packets *in, uint32_t first, dqi_look look,
                    bool payload);

// Returns the amount of header information needed to read a field.
dqi_look dqi_look_for(const dq_field *f);

// Returns in *bit and *width the position of a field in all plain frames, in *who the frames that have it.
// False: its position varies or exceeds the first DQI_PLAIN_LEN bytes.
bool dqi_plain_field(const dq_field *f, uint32_t *bit, uint32_t *width, dqi_who *who);

// Reads a checked field of each lane and returns the lanes that have it; the value of the others is 0.
uint64_t dqi_lanes_load(dqi_lanes *l, const dqi_level *k, const dq_field *f, dqi_col *out);

// Does the same for some lanes, by bits, with by->v[i] added to the bit offset in lane i; a value above
// DQI_MOVED_MAX counts as absent.
#define DQI_MOVED_MAX UINT32_C(0x7fffffff)
uint64_t dqi_lanes_load_at(dqi_lanes *l, const dqi_level *k, const dq_field *f, uint64_t lanes,
                           const dqi_col *by, dqi_col *out);
// Searches the lists of some lanes, of count->v[i] items each, that begin bit_offset + by->v[i] bits into the
// innermost payload.
uint64_t dqi_lanes_find(dqi_lanes *l, const dqi_item_key *key, uint32_t bit_offset, uint64_t lanes,
                        const dqi_col *by, const dqi_col *count, dqi_col *out);

// Returns the parsed headers of a lane that is not plain, with the packet's metadata.
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

// Shift of bytes k and k + 1 in such a word.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DQI_PAIR_SHIFT(k) (8 * (k))
#else
#define DQI_PAIR_SHIFT(k) (48 - 8 * (k))
#endif

extern const uint8_t dqi_zeros[DQI_PLAIN_LEN]; // content of a packet that is too short: never a plain frame

// Returns the read address of lane i; read-only.
static inline const uint8_t *dqi_lane_at(const dqi_lanes *l, uint32_t i) {
    return (const uint8_t *)(uintptr_t)l->p.v[i];
}

static inline uint8_t *dqi_lane_bytes(const dqi_lanes *l, uint32_t lane) {
    return l->in->base + l->in->off[l->first + lane];
}

#endif
