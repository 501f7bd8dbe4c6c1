// steer.bpf.c: decides for each frame that a device receives whether it is redirected to the AF_XDP socket of
// its queue or passed to the kernel. The maps are defined in steer_map.h. The queue and flow of redirected
// frames are determined in user space.
//
// Licensed under Apache-2.0 like the rest: it uses no GPL-only helper. The parser matches packet.c and builds
// the same key as match.c; a test compares them on random frames. The most frequent frames are read in place,
// all others with bpf_xdp_load_bytes, so that headers may lie in any fragment of a frame.
#include <stdbool.h>

#include "engine/xdp/steer_map.h"
#include "packet/dq_rules.h"

#define SECTION(name)   __attribute__((section(name), used))
#define inlined         static inline __attribute__((always_inline))
#define field(name, n)  int(*name)[n]
#define typed(name, of) __typeof__(of) *name

// Kernel interface (linux/bpf.h).
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_XSK = 17, NO_PREALLOC = 1 };
enum xdp_action { XDP_DROP = 1, XDP_PASS = 2 };
struct xdp_md {
    uint32_t data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const redirect_map)(void *map, uint64_t key, uint64_t flags) = (void *)51;
static long (*const loop)(uint32_t n, void *step, void *with, uint64_t flags) = (void *)181;
static uint64_t (*const buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*const load_bytes)(struct xdp_md *ctx, uint32_t off, void *to, uint32_t n) = (void *)189;

struct {
    field(type, MAP_ARRAY);
    field(max_entries, 1);
    typed(key, uint32_t);
    typed(value, steer_conf);
} conf SECTION(".maps");
struct {
    field(type, MAP_ARRAY);
    field(max_entries, STEER_GROUPS);
    typed(key, uint32_t);
    typed(value, steer_group);
} groups SECTION(".maps");
struct {
    field(type, MAP_HASH);
    field(map_flags, NO_PREALLOC);
    field(max_entries, STEER_ENTRIES);
    typed(key, steer_entry);
    typed(value, uint8_t);
} entries SECTION(".maps");
struct {
    field(type, MAP_ARRAY);
    field(max_entries, STEER_SINGLES);
    typed(key, uint32_t);
    typed(value, steer_single);
} singles SECTION(".maps");
struct {
    field(type, MAP_PERCPU_ARRAY);
    field(max_entries, 1);
    typed(key, uint32_t);
    typed(value, steer_counts);
} counts SECTION(".maps");
struct {
    field(type, MAP_XSK);
    field(max_entries, STEER_QUEUES);
    typed(key, uint32_t);
    typed(value, uint32_t);
} sockets SECTION(".maps");

enum { ETH_LEN = 14, IPV4_LEN = 20, IPV6_LEN = 40, UDP_LEN = 8, TCP_LEN = 20, ICMP_LEN = 8 };
enum { ICMP = 1, TCP = 6, UDP = 17, FRAGMENT = 44, AUTHENTICATION = 51, ICMPV6 = 58 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, VLAN = 0x8100, QINQ = 0x88a8, ECPRI = 0xaefe };
enum { MAX_VLANS = 2, MAX_EXTENSIONS = 8, ECPRI_LAST_WITH_ID = 2, PLAIN_LEN = ETH_LEN + IPV4_LEN + TCP_LEN };

// Functions that the verifier checks once, independently of their callers.
#define global __attribute__((noinline))

// As dqi_pkt. has_payload: payload and payload_len are valid.
typedef struct packet {
    uint32_t len, l3, end, payload, payload_len;
    uint16_t ethertype, ipv4_len;
    uint8_t proto, has;
    bool has_payload;
    uint64_t w[KEY_WORDS];
} packet;

inlined uint16_t be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
inlined uint32_t be32(const uint8_t *p) { return (uint32_t)be16(p) << 16 | be16(p + 2); }
inlined uint64_t be64(const uint8_t *p) { return (uint64_t)be32(p) << 32 | be32(p + 4); }
inlined uint64_t mac48(const uint8_t *p) { return (uint64_t)be16(p) << 32 | be32(p + 2); }
inlined uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

inlined void set_payload(packet *k, uint32_t off) {
    k->has_payload = true;
    k->payload = off;
    k->payload_len = k->end - off;
}

inlined void take_udp(packet *k, uint32_t l4, const uint8_t *h) {
    uint32_t udp_len = be16(h + 4);
    if (udp_len != 0 && udp_len < UDP_LEN) return;
    k->has |= DQ_HAS_UDP;
    k->w[KEY_L4] |= be32(h);
    set_payload(k, l4 + UDP_LEN);
    if (udp_len != 0) k->payload_len = least(k->payload_len, udp_len - UDP_LEN);
}

inlined void take_tcp(packet *k, uint32_t l4, const uint8_t *h) {
    uint32_t header = (uint32_t)(h[12] >> 4) * 4;
    if (header < TCP_LEN) return;
    k->has |= DQ_HAS_TCP;
    k->w[KEY_L4] |= be32(h);
    set_payload(k, l4 + least(header, k->end - l4));
}

global int parse_l4(struct xdp_md *ctx, packet *k, uint32_t off) {
    if (!k) return 0;
    uint8_t h[TCP_LEN];
    uint32_t avail = k->end - off;
    if (k->proto == UDP) {
        if (avail >= UDP_LEN && load_bytes(ctx, off, h, UDP_LEN) == 0) take_udp(k, off, h);
    } else if (k->proto == TCP) {
        if (avail >= TCP_LEN && load_bytes(ctx, off, h, TCP_LEN) == 0) take_tcp(k, off, h);
    } else if ((k->proto == ICMP && k->has & DQ_HAS_IPV4) || (k->proto == ICMPV6 && k->has & DQ_HAS_IPV6)) {
        if (avail < ICMP_LEN) return 0;
        k->has |= DQ_HAS_ICMP;
        set_payload(k, off + ICMP_LEN);
    } else {
        set_payload(k, off);
    }
    return 0;
}

global int parse_ipv4(struct xdp_md *ctx, packet *k) {
    if (!k) return 0;
    uint8_t h[IPV4_LEN];
    uint32_t room = k->len - k->l3;
    if (room < IPV4_LEN || load_bytes(ctx, k->l3, h, IPV4_LEN) != 0 || h[0] >> 4 != 4) return 0;
    uint32_t header = (uint32_t)(h[0] & 15) * 4, total = be16(h + 2);
    uint16_t frag = be16(h + 6);
    if (total == 0) total = room;
    if (header < IPV4_LEN || total < header || header > room) return 0;
    k->has |= DQ_HAS_IPV4 | (frag & 0x3fff ? DQ_HAS_FRAGMENT : 0);
    k->end = least(k->len, k->l3 + total);
    k->proto = h[9];
    k->ipv4_len = be16(h + 2);
    k->w[KEY_IPV4] = be64(h + 12);
    if (frag & 0x1fff)
        set_payload(k, k->l3 + header);
    else
        parse_l4(ctx, k, k->l3 + header);
    return 0;
}

// Returns the length in bytes of an extension header with second byte n; 0: not a header that can be skipped.
inlined uint32_t extension_len(uint8_t next, uint8_t n) {
    if (next == 0 || next == 43 || next == 60 || next == 135 || next == 139 || next == 140)
        return ((uint32_t)n + 1) * 8;
    if (next == FRAGMENT) return 8;
    return next == AUTHENTICATION ? ((uint32_t)n + 2) * 4 : 0;
}

inlined void parse_extensions(struct xdp_md *ctx, packet *k, uint32_t off) {
    for (int n = 0; n <= MAX_EXTENSIONS; n++) {
        uint8_t h[8];
        if (extension_len(k->proto, 0) == 0) {
            parse_l4(ctx, k, off);
            return;
        }
        if (n == MAX_EXTENSIONS || k->end - off < 8 || load_bytes(ctx, off, h, 8) != 0) return;
        uint32_t len = extension_len(k->proto, h[1]);
        if (len > k->end - off) return;
        uint16_t frag = k->proto == FRAGMENT ? be16(h + 2) : 0;
        k->proto = h[0];
        off += len;
        if (frag & 0xfff9) k->has |= DQ_HAS_FRAGMENT;
        if (frag & 0xfff8) {
            set_payload(k, off);
            return;
        }
    }
}

global int parse_ipv6(struct xdp_md *ctx, packet *k) {
    if (!k) return 0;
    uint8_t h[IPV6_LEN];
    uint32_t room = k->len - k->l3, start = k->l3 + IPV6_LEN;
    if (room < IPV6_LEN || load_bytes(ctx, k->l3, h, IPV6_LEN) != 0 || h[0] >> 4 != 6) return 0;
    uint32_t body = be16(h + 4);
    bool to_end = body == 0 && (h[6] == 0 || h[6] == UDP || h[6] == TCP);
    k->has |= DQ_HAS_IPV6;
    k->end = to_end ? k->len : least(k->len, start + body);
    k->proto = h[6];
    k->w[KEY_IPV6_SRC_HI] = be64(h + 8);
    k->w[KEY_IPV6_SRC_LO] = be64(h + 16);
    k->w[KEY_IPV6_DST_HI] = be64(h + 24);
    k->w[KEY_IPV6_DST_LO] = be64(h + 32);
    parse_extensions(ctx, k, start);
    return 0;
}

global int parse_ecpri(struct xdp_md *ctx, packet *k) {
    if (!k) return 0;
    uint64_t over = k->ethertype == ECPRI ? KEY_ECPRI_ETH
                    : k->has & DQ_HAS_UDP ? KEY_ECPRI_UDP
                                          : KEY_ECPRI_NONE;
    uint8_t h[6] = {0};
    if (over == KEY_ECPRI_NONE || !k->has_payload || k->payload_len < 4) return 0;
    if (k->payload_len >= 6) {
        if (load_bytes(ctx, k->payload, h, 6) != 0) return 0;
    } else if (load_bytes(ctx, k->payload, h, 4) != 0) {
        return 0;
    }
    k->w[KEY_ECPRI] = over << 32 | (uint64_t)h[1] << 16;
    if (h[1] <= ECPRI_LAST_WITH_ID && k->payload_len >= 6) k->w[KEY_ECPRI] |= KEY_ECPRI_HAS_ID | be16(h + 4);
    return 0;
}

// Fills the key words composed of several headers.
inlined void finish(struct xdp_md *ctx, packet *k, uint16_t tci, const uint8_t *eth) {
    k->w[KEY_ETH_DST] = mac48(eth) << 16 | k->ethertype;
    k->w[KEY_ETH_SRC] = mac48(eth + 6) << 16 | tci;
    k->w[KEY_L4] |= (uint64_t)k->ipv4_len << 48 | (uint64_t)k->proto << 40 | (uint64_t)k->has << 32;
    parse_ecpri(ctx, k);
}

// As dqi_plain and its consequences: no tag, IPv4 without options, not a fragment, UDP or TCP.
inlined bool parse_plain(struct xdp_md *ctx, packet *k) {
    const uint8_t *p = (const uint8_t *)(long)ctx->data;
    if (p + PLAIN_LEN > (const uint8_t *)(long)ctx->data_end) return false;
    if ((be32(p + 12) & 0xffffff00) != 0x08004500 || (be32(p + 20) & 0x3fff0000) != 0) return false;
    uint32_t total = be16(p + 16);
    bool udp = p[23] == UDP && total >= IPV4_LEN + UDP_LEN && (uint16_t)(be16(p + 38) - 1) >= UDP_LEN - 1;
    bool tcp = p[23] == TCP && total >= IPV4_LEN + TCP_LEN && p[46] >> 4 >= 5;
    if (!udp && !tcp) return false;
    k->ethertype = IPV4;
    k->has = DQ_HAS_ETH | DQ_HAS_IPV4;
    k->end = least(k->len, ETH_LEN + total);
    k->proto = p[23];
    k->ipv4_len = (uint16_t)total;
    k->w[KEY_IPV4] = be64(p + 26);
    if (udp)
        take_udp(k, ETH_LEN + IPV4_LEN, p + ETH_LEN + IPV4_LEN);
    else
        take_tcp(k, ETH_LEN + IPV4_LEN, p + ETH_LEN + IPV4_LEN);
    finish(ctx, k, 0, p);
    return true;
}

// A frame with a truncated Ethernet header has a key of zeros.
inlined void parse_general(struct xdp_md *ctx, packet *k) {
    uint8_t eth[ETH_LEN], tag[4];
    uint16_t tci = 0;
    uint32_t off = ETH_LEN;
    bool cut = false;
    if (k->len < ETH_LEN || load_bytes(ctx, 0, eth, ETH_LEN) != 0) return;
    k->has = DQ_HAS_ETH;
    k->ethertype = be16(eth + 12);
    for (int n = 0; n < MAX_VLANS && (k->ethertype == VLAN || k->ethertype == QINQ); n++) {
        cut = k->len - off < 4 || load_bytes(ctx, off, tag, 4) != 0;
        if (cut) break;
        if (n == 0) tci = be16(tag);
        k->has |= DQ_HAS_VLAN;
        k->ethertype = be16(tag + 2);
        off += 4;
    }
    k->l3 = off;
    if (cut)
        ;
    else if (k->ethertype == IPV4)
        parse_ipv4(ctx, k);
    else if (k->ethertype == IPV6)
        parse_ipv6(ctx, k);
    else
        set_payload(k, off);
    finish(ctx, k, tci, eth);
}

global int parse(struct xdp_md *ctx, packet *k) {
    if (!k) return 0;
    k->len = k->end = (uint32_t)buff_len(ctx);
    if (!parse_plain(ctx, k)) parse_general(ctx, k);
    return 0;
}

// State of a search through groups or single rules.
typedef struct search {
    struct xdp_md *ctx;
    const packet *k;
    bool found;
} search;

static long look_in_group(uint32_t g, search *s) {
    const steer_group *group = map_lookup(&groups, &g);
    if (!group || !group->used) return 0;
    steer_entry e = {.group = g};
#pragma unroll
    for (int i = 0; i < KEY_WORDS; i++)
        e.value[i] = s->k->w[i] & group->mask[i];
    s->found = map_lookup(&entries, &e) != NULL;
    return s->found;
}

inlined bool fits(struct xdp_md *ctx, const packet *k, const steer_single *s) {
    uint64_t diff = 0;
    if (!s->used) return false;
#pragma unroll
    for (int i = 0; i < KEY_WORDS; i++)
        diff |= (k->w[i] & s->mask[i]) ^ s->value[i];
    uint16_t src = (uint16_t)(k->w[KEY_L4] >> 16), dst = (uint16_t)k->w[KEY_L4];
    if (diff != 0 || src < s->src_lo || src > s->src_hi || dst < s->dst_lo || dst > s->dst_hi) return false;
    if (!s->flex) return true;
    uint8_t h[4];
    if (!k->has_payload || k->payload_len < s->flex_offset + 4u) return false;
    if (load_bytes(ctx, k->payload + s->flex_offset, h, 4) != 0) return false;
    return (be32(h) & s->flex_mask) == s->flex_val;
}

static long look_at_single(uint32_t i, search *s) {
    const steer_single *one = map_lookup(&singles, &i);
    s->found = one && fits(s->ctx, s->k, one);
    return s->found;
}

inlined bool is_ours(struct xdp_md *ctx, const steer_conf *c) {
    if (c->all) return true;
    if (c->n_groups == 0 && c->n_singles == 0) return false;
    packet k = {0};
    parse(ctx, &k);
    search s = {.ctx = ctx, .k = &k};
    loop(c->n_groups, look_in_group, &s, 0);
    if (!s.found) loop(c->n_singles, look_at_single, &s, 0);
    return s.found;
}

SECTION("xdp.frags") int steer(struct xdp_md *ctx) {
    uint32_t zero = 0;
    const steer_conf *c = map_lookup(&conf, &zero);
    steer_counts *n = map_lookup(&counts, &zero);
    if (!c || !n || !c->active) return XDP_PASS;
    if (!is_ours(ctx, c)) {
        n->passed++;
        return XDP_PASS;
    }
    if (c->drop_all) {
        n->dropped++;
        n->dropped_bytes += buff_len(ctx);
        return XDP_DROP;
    }
    n->ours++;
    return (int)redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char licence[] SECTION("license") = "Apache-2.0";
