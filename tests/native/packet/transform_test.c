// transform_test.c: tags and tunnels against headers written out byte by byte; there and back again is the
// same frame; noise, cuts and damage never reach outside the frame and its room.
#include "frames.h"

#include "packet/packet.h"
#include "packet/transform.h"

enum { ROOM = 128, SPACE = ROOM + FRAME_MAX };

static const dq_action base = {.kind = DQ_ACT_ENCAP,
                               .ttl = 64,
                               .tos = 0x20,
                               .ipv4_src = 0xc0000201,
                               .ipv4_dst = 0xc0000202,
                               .id = 0x123456,
                               .udp_src = 49999,
                               .udp_dst = 4789,
                               .protocol = DQI_TYPE_TEB,
                               .eth_src = {2, 0, 0, 0, 0, 1},
                               .eth_dst = {2, 0, 0, 0, 0, 2},
                               .flow_id = 7};

static dq_action tunnel(int kind, int type, uint16_t protocol) {
    dq_action a = base;
    a.kind = (uint8_t)kind;
    a.tunnel = (uint8_t)type;
    a.protocol = protocol;
    return a;
}

static dq_action over_ipv6(dq_action a) {
    static const uint8_t src[] = {0x20, 1, 0xd, 0xb8, [15] = 1}, dst[] = {0x20, 1, 0xd, 0xb8, [15] = 2};
    a.ipv6 = 1;
    memcpy(a.ipv6_src, src, 16);
    memcpy(a.ipv6_dst, dst, 16);
    return a;
}

static dqi_acts ready(const dq_action *a, uint32_t n) {
    dqi_acts acts;
    dq_diag d = {{0}};
    DQ_EQ(dqi_acts_make(a, n, &acts, &d), DQ_OK);
    DQ_EQ_STR(d.text, "");
    return acts;
}

// A frame behind ROOM bytes, in memory that ends with it.
static dqi_frame place(const uint8_t *frame, uint32_t len) {
    uint8_t *space = malloc(ROOM + len + 1);
    if (!space) exit(1);
    memset(space, 0xee, ROOM);
    if (len) memcpy(space + ROOM, frame, len);
    return (dqi_frame){.p = space + ROOM, .len = len, .room = ROOM};
}

static void drop(dqi_frame *f) { free(f->p - f->room); }

static int run(const dq_action *a, uint32_t n, dqi_frame *f) {
    dqi_acts acts = ready(a, n);
    return dqi_acts_apply(&acts, f, UINT32_MAX);
}

static void wants_outer(const dqi_frame *f, uint32_t inner, uint8_t proto, uint32_t header) {
    const uint8_t eth[] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0};
    const uint8_t addresses[] = {192, 0, 2, 1, 192, 0, 2, 2};
    const uint8_t ip[] = {
        0x45, 0x20, (uint8_t)((20 + header + inner) >> 8), (uint8_t)(20 + header + inner), 0, 0, 0x40, 0,
        64,   proto};
    DQ_EQ(f->len, 34 + header + inner);
    DQ_EQ_BYTES(f->p, eth, sizeof eth);
    DQ_EQ_BYTES(f->p + 14, ip, sizeof ip);
    DQ_EQ_BYTES(f->p + 26, addresses, sizeof addresses);
    uint32_t sum = 0;
    for (int i = 14; i < 34; i += 2)
        sum += (uint32_t)f->p[i] << 8 | f->p[i + 1];
    DQ_EQ((sum >> 16) + (sum & 0xffff), 0xffff);
}

static uint32_t some_frame(uint64_t *seed, frame *f, uint8_t *buf) {
    frame_random(seed, false, f);
    f->tcp_options = f->ip_options = 0;
    return frame_write(f, buf);
}

static void headers_are_as_the_rfcs_say(void) {
    static const uint8_t vxlan[] = {0xc3, 0x4f, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0x12, 0x34, 0x56, 0};
    static const uint8_t nvgre[] = {0x20, 0, 0x65, 0x58, 0x12, 0x34, 0x56, 7};
    static const uint8_t gre[] = {0, 0, 0x65, 0x58};
    static const struct {
        int type;
        uint8_t proto;
        uint32_t n;
        const uint8_t *header;
    } cases[] = {
        {DQ_TUNNEL_VXLAN, 17, 16, vxlan}, {DQ_TUNNEL_NVGRE, 47, 8, nvgre}, {DQ_TUNNEL_GRE, 47, 4, gre}};
    uint64_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        frame f;
        uint8_t buf[FRAME_MAX], want[16];
        uint32_t len = some_frame(&seed, &f, buf), k = (uint32_t)round % 3;
        dqi_frame x = place(buf, len);
        dq_action a = tunnel(DQ_ACT_ENCAP, cases[k].type, DQI_TYPE_TEB);
        DQ_EQ(run(&a, 1, &x), DQI_DONE);
        wants_outer(&x, len, cases[k].proto, cases[k].n);
        memcpy(want, cases[k].header, cases[k].n);
        if (k == 0) put16(want + 4, 16 + len);
        DQ_EQ_BYTES(x.p + 34, want, cases[k].n);
        DQ_EQ_BYTES(x.p + 34 + cases[k].n, buf, len);
        drop(&x);
    }
}

// IPv6 instead: the tunnel's header as before, UDP with a checksum.
static void headers_over_ipv6(void) {
    static const uint8_t ip[] = {0x86, 0xdd, 0x62, 0, 0, 0};
    uint64_t seed = 7;
    for (int round = 0; round < 3000; round++) {
        frame f;
        uint8_t buf[FRAME_MAX];
        uint32_t len = some_frame(&seed, &f, buf);
        int type = 1 + round % 3;
        dq_action a = tunnel(DQ_ACT_ENCAP, type, DQI_TYPE_TEB), b = over_ipv6(a);
        dqi_frame x = place(buf, len), y = place(buf, len);
        DQ_EQ(run(&a, 1, &x), DQI_DONE);
        DQ_EQ(run(&b, 1, &y), DQI_DONE);
        DQ_EQ(y.len, x.len + 20);
        DQ_EQ_BYTES(y.p, x.p, 12);
        DQ_EQ_BYTES(y.p + 12, ip, sizeof ip);
        DQ_EQ(dqi_be16(y.p + 18), y.len - 54);
        DQ_EQ(y.p[20], type == DQ_TUNNEL_VXLAN ? 17 : 47);
        DQ_EQ(y.p[21], 64);
        DQ_EQ_BYTES(y.p + 22, b.ipv6_src, 16);
        DQ_EQ_BYTES(y.p + 38, b.ipv6_dst, 16);
        dqi_pkt k;
        dqi_parse(y.p, y.len, &k);
        DQ_CHECK(dqi_csum_ok(y.p, &k));
        DQ_CHECK(type != DQ_TUNNEL_VXLAN || dqi_be16(y.p + 60) != 0);
        if (type == DQ_TUNNEL_VXLAN) put16(y.p + 60, 0);
        DQ_EQ_BYTES(y.p + 54, x.p + 34, x.len - 34);
        drop(&x);
        drop(&y);
    }
}

// What one side puts on, the other takes off, also where the wire padded the frame.
static void there_and_back(void) {
    uint64_t seed = 2;
    for (int round = 0; round < 20000; round++) {
        static const int types[] = {DQ_TUNNEL_VXLAN, DQ_TUNNEL_GRE, DQ_TUNNEL_NVGRE};
        frame f;
        uint8_t buf[FRAME_MAX], padded[SPACE] = {0};
        uint32_t len = some_frame(&seed, &f, buf);
        dq_action on[3] = {{.kind = DQ_ACT_VLAN_PUSH, .tpid = 0x9100, .tci = (uint16_t)dq_rand(&seed)},
                           tunnel(DQ_ACT_ENCAP, types[round % 3], DQI_TYPE_TEB),
                           {.kind = DQ_ACT_VLAN_PUSH, .tpid = 0x8100, .tci = (uint16_t)dq_rand(&seed)}};
        if (dq_below(&seed, 2)) on[1] = over_ipv6(on[1]);
        dq_action off[3] = {{.kind = DQ_ACT_VLAN_POP}, on[1], {.kind = DQ_ACT_VLAN_POP}};
        off[1].kind = DQ_ACT_DECAP;
        dqi_frame x = place(buf, len);
        DQ_EQ(run(on, 3, &x), DQI_DONE);
        uint32_t pad = x.len + dq_below(&seed, 30);
        memcpy(padded, x.p, x.len);
        dqi_frame y = place(padded, pad);
        DQ_EQ(run(off, 3, &y), DQI_DONE);
        DQ_EQ(y.len, len);
        DQ_EQ_BYTES(y.p, buf, len);
        drop(&x);
        drop(&y);
    }
}

// A GRE tunnel carries whole frames whatever its protocol is.
static void gre_carries_frames(void) {
    uint64_t seed = 3;
    for (int round = 0; round < 5000; round++) {
        static const uint16_t protocols[] = {0x0800, 0x86dd, 0x88b5};
        frame f;
        uint8_t buf[FRAME_MAX];
        uint32_t len = some_frame(&seed, &f, buf);
        dq_action on = tunnel(DQ_ACT_ENCAP, DQ_TUNNEL_GRE, protocols[round % 3]), off = on;
        off.kind = DQ_ACT_DECAP;
        dqi_frame x = place(buf, len);
        DQ_EQ(run(&on, 1, &x), DQI_DONE);
        wants_outer(&x, len, 47, 4);
        DQ_EQ_BYTES(x.p + 38, buf, len);
        DQ_EQ(run(&off, 1, &x), DQI_DONE);
        DQ_EQ(x.len, len);
        DQ_EQ_BYTES(x.p, buf, len);
        drop(&x);
    }
}

// A foreign tunnel carries packets alone: those get an Ethernet header with the outer one's addresses.
static void network_packets(void) {
    uint64_t seed = 3;
    uint32_t carried = 0;
    for (int round = 0; round < 20000; round++) {
        frame f;
        uint8_t buf[FRAME_MAX], own[FRAME_MAX + 38];
        uint32_t len = some_frame(&seed, &f, buf), packet = len - f.l3 - f.padding;
        dqi_pkt k;
        if (f.ip == 0) continue;
        dqi_parse(buf, len, &k);
        dqi_csum_fill(buf, &k); // of all that shows that it is a packet its sum shows most
        dq_action on = tunnel(DQ_ACT_ENCAP, DQ_TUNNEL_GRE, f.ip == 4 ? 0x0800 : 0x86dd), off = on;
        off.kind = DQ_ACT_DECAP;
        dqi_frame x = place(buf + f.l3, packet);
        DQ_EQ(run(&on, 1, &x), DQI_DONE);
        memcpy(own, x.p, x.len);
        DQ_EQ(run(&off, 1, &x), DQI_DONE);
        DQ_EQ(x.len, 14 + packet);
        DQ_EQ_BYTES(x.p, own, 12);
        DQ_EQ(dqi_be16(x.p + 12), off.protocol);
        DQ_EQ_BYTES(x.p + 14, buf + f.l3, packet);
        carried++;
        drop(&x);
    }
    DQ_CHECK(carried > 10000);
}

static void tags(void) {
    uint64_t seed = 4;
    for (int round = 0; round < 5000; round++) {
        frame f;
        uint8_t buf[FRAME_MAX], want[FRAME_MAX + 4];
        uint32_t len = some_frame(&seed, &f, buf);
        dq_action push = {.kind = DQ_ACT_VLAN_PUSH, .tpid = 0x88a8, .tci = (uint16_t)dq_rand(&seed)};
        dq_action pop = {.kind = DQ_ACT_VLAN_POP};
        dqi_frame x = place(buf, len);
        DQ_EQ(run(&push, 1, &x), DQI_DONE);
        memcpy(want, buf, 12);
        put16(put16(want + 12, 0x88a8), push.tci);
        memcpy(want + 16, buf + 12, len - 12);
        DQ_EQ(x.len, len + 4);
        DQ_EQ_BYTES(x.p, want, len + 4);
        DQ_EQ(run(&pop, 1, &x), DQI_DONE);
        DQ_EQ_BYTES(x.p, buf, len);
        DQ_EQ(run(&pop, 1, &x), DQI_DONE); // the frame's own, where it has one
        DQ_EQ(x.len, len - (f.n_vlans ? 4 : 0));
        drop(&x);
    }
}

typedef struct bend {
    const char *what;
    uint32_t at;
    uint8_t flip;
} bend;

static void refused(const dq_action *on, const dq_action *off, const bend *b) {
    uint8_t inner[64] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
    dqi_frame x = place(inner, sizeof inner);
    DQ_EQ(run(on, 1, &x), DQI_DONE);
    x.p[b->at] ^= b->flip;
    if (b->at >= 14 && b->at < 34 && b->at != 24) { // else it would be the checksum that fails
        put16(x.p + 24, 0);
        put16(x.p + 24, dqi_csum_fold(dqi_csum_add(x.p + 14, 20, 0)));
    }
    if (run(off, 1, &x) != DQ_DROP_BAD_TUNNEL) dq_failed(__FILE__, __LINE__, b->what);
    drop(&x);
}

// One thing wrong at a time, and it is not such a tunnel.
static void other_tunnels_are_refused(void) {
    static const bend common[] = {
        {"ethertype", 13, 1},    {"version", 14, 0x10}, {"longer than it is", 16, 0x40},
        {"fragment", 20, 0x20},  {"protocol", 23, 1},   {"header checksum", 24, 1},
        {"header length", 14, 2}};
    static const bend vxlan[] = {{"port", 37, 1},
                                 {"UDP length", 38, 0x40},
                                 {"UDP length 15", 39, 0x5f},
                                 {"no VNI", 42, 8},
                                 {"VNI", 46, 1}};
    static const bend gre[] = {{"version", 35, 1}, {"routing", 34, 0x40}, {"protocol", 36, 1}};
    static const bend nvgre[] = {
        {"no key", 34, 0x20}, {"sum", 34, 0x80}, {"protocol", 37, 1}, {"TNI", 38, 0x80}};
    static const struct {
        int type;
        const bend *bends;
        size_t n;
    } cases[] = {{DQ_TUNNEL_VXLAN, vxlan, 5}, {DQ_TUNNEL_GRE, gre, 3}, {DQ_TUNNEL_NVGRE, nvgre, 4}};
    for (size_t k = 0; k < 3; k++) {
        dq_action on = tunnel(DQ_ACT_ENCAP, cases[k].type, DQI_TYPE_TEB), off = on;
        off.kind = DQ_ACT_DECAP;
        for (size_t i = 0; i < sizeof common / sizeof *common; i++)
            refused(&on, &off, &common[i]);
        for (size_t i = 0; i < cases[k].n; i++)
            refused(&on, &off, &cases[k].bends[i]);
    }
}

// A GRE sender may add a checksum, which has to be right, a key and a sequence number.
static void gre_options(void) {
    static const uint8_t inner[20] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5, 1, 2, 3, 4, 5, 6};
    for (int set = 0; set < 16; set++) {
        uint8_t buf[100] = {0};
        bool summed = set & 1, bent = set & 8;
        uint32_t options = 4u * (uint32_t)((set & 1) + (set >> 1 & 1) + (set >> 2 & 1));
        dq_action on = tunnel(DQ_ACT_ENCAP, DQ_TUNNEL_GRE, DQI_TYPE_TEB), off = on;
        off.kind = DQ_ACT_DECAP;
        memcpy(buf + options, inner, sizeof inner);
        dqi_frame x = place(buf, sizeof inner + options);
        DQ_EQ(run(&on, 1, &x), DQI_DONE);
        x.p[34] = (uint8_t)((summed ? 0x80 : 0) | (set & 2 ? 0x20 : 0) | (set & 4 ? 0x10 : 0));
        if (summed) put16(x.p + 38, dqi_csum_fold(dqi_csum_add(x.p + 34, x.len - 34, 0)));
        if (bent) x.p[x.len - 1] ^= 1;
        if (summed && bent) {
            DQ_EQ(run(&off, 1, &x), DQ_DROP_BAD_TUNNEL);
        } else {
            DQ_EQ(run(&off, 1, &x), DQI_DONE);
            DQ_EQ(x.len, sizeof inner);
            DQ_EQ_BYTES(x.p, inner, sizeof inner - 1);
        }
        drop(&x);
    }
}

// UDP's checksum is right or 0, over either version of IP; of bytes in a further segment it can't be known.
static void udp_checksums(void) {
    uint8_t inner[61] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5, 9};
    for (int v6 = 0; v6 < 2; v6++) {
        dq_action on = tunnel(DQ_ACT_ENCAP, DQ_TUNNEL_VXLAN, 0), off;
        if (v6) on = over_ipv6(on);
        off = on;
        off.kind = DQ_ACT_DECAP;
        for (int bent = 0; bent < 4; bent++) {
            dqi_frame x = place(inner, sizeof inner);
            DQ_EQ(run(&on, 1, &x), DQI_DONE);
            dqi_pkt k;
            dqi_parse(x.p, x.len, &k);
            dqi_csum_fill(x.p, &k);
            if (bent > 0) x.p[x.len - 1] ^= 1;
            if (bent == 2) put16(x.p + k.l4 + 6, 0);
            if (bent == 3) x.rest = 1, x.len--;
            DQ_EQ(run(&off, 1, &x), bent == 1 ? DQ_DROP_BAD_TUNNEL : DQI_DONE);
            drop(&x);
        }
        dqi_frame other = place(inner, sizeof inner); // the other version of IP
        DQ_EQ(run(&on, 1, &other), DQI_DONE);
        off.ipv6 = !off.ipv6;
        DQ_EQ(run(&off, 1, &other), DQ_DROP_BAD_TUNNEL);
        drop(&other);
    }
}

// Packets of one flow keep their source port, and many flows have many.
static void entropy(void) {
    uint64_t seed = 6;
    uint32_t different = 0;
    bool seen[16384] = {false};
    dq_action a = tunnel(DQ_ACT_ENCAP, DQ_TUNNEL_VXLAN, 0);
    a.udp_src = 0;
    for (int round = 0; round < 1000; round++) {
        frame f;
        uint8_t buf[FRAME_MAX];
        uint16_t port[2];
        some_frame(&seed, &f, buf);
        for (int k = 0; k < 2; k++) {
            f.payload[0]++; // the same flow
            uint32_t len = frame_write(&f, buf);
            dqi_frame x = place(buf, len);
            DQ_EQ(run(&a, 1, &x), DQI_DONE);
            port[k] = (uint16_t)(x.p[34] << 8 | x.p[35]);
            drop(&x);
        }
        DQ_CHECK(port[0] >= 49152);
        DQ_EQ(port[0], port[1]);
        different += !seen[port[0] - 49152];
        seen[port[0] - 49152] = true;
    }
    DQ_CHECK(different > 900);
}

static void limits(void) {
    uint8_t buf[100] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
    dq_action a = tunnel(DQ_ACT_ENCAP, DQ_TUNNEL_VXLAN, 0), many[8];
    dqi_acts acts = ready(&a, 1);
    dq_diag d = {{0}};
    for (int k = 0; k < 8; k++)
        many[k] = a;
    DQ_EQ(dqi_acts_make(many, 8, &acts, &d), DQ_INVALID_PARAMETER);
    DQ_EQ(dqi_acts_make(many, 3, &acts, &d), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(d.text, "its actions add 150 bytes, at most 128 are possible");
    acts = ready(many, 2);
    DQ_EQ(acts.grows, 100);
    for (uint32_t most = 199; most <= 200; most++) {
        dqi_frame x = place(buf, sizeof buf);
        DQ_EQ(dqi_acts_apply(&acts, &x, most), most == 199 ? DQ_DROP_TOO_LONG : DQI_DONE);
        drop(&x);
    }
    dq_action push = {.kind = DQ_ACT_VLAN_PUSH, .tpid = 0x8100}; // a tag doesn't count
    acts = ready(&push, 1);
    dqi_frame x = place(buf, sizeof buf);
    DQ_EQ(dqi_acts_apply(&acts, &x, sizeof buf), DQI_DONE);
    x.room = 3;
    DQ_EQ(dqi_acts_apply(&acts, &x, UINT32_MAX), DQ_DROP_TOO_LONG);
    x.room = ROOM - 4;
    drop(&x);
    acts = ready(&a, 1); // the rest of the packet counts, IPv4 takes no more than 65535
    x = place(buf, sizeof buf);
    x.rest = 65535 - 36 - sizeof buf;
    DQ_EQ(dqi_acts_apply(&acts, &x, UINT32_MAX), DQI_DONE);
    drop(&x);
    x = place(buf, sizeof buf);
    x.rest = 65536 - 36 - sizeof buf;
    DQ_EQ(dqi_acts_apply(&acts, &x, UINT32_MAX), DQ_DROP_TOO_LONG);
    drop(&x);
}

static dq_action any_action(uint64_t *seed) {
    static const uint16_t protocols[] = {DQI_TYPE_TEB, 0x0800, 0x86dd};
    dq_action a =
        tunnel(1 + (int)dq_below(seed, 4), 1 + (int)dq_below(seed, 3), protocols[dq_below(seed, 3)]);
    a.udp_src = dq_below(seed, 2) ? 0 : 5;
    a.tpid = dq_below(seed, 2) ? 0x8100 : 0x88a8;
    return dq_below(seed, 2) ? over_ipv6(a) : a;
}

// Frames that are cut, damaged or noise, under any actions: what is outside stays untouched (the address
// sanitizer sees what is behind), and what comes out lies inside.
static void survives_anything(void) {
    uint64_t seed = 5;
    uint32_t done = 0, dropped = 0;
    for (int round = 0; round < 150000; round++) {
        frame f;
        uint8_t buf[SPACE];
        uint32_t len = some_frame(&seed, &f, buf), n = 1 + dq_below(&seed, 2);
        dq_action actions[2] = {any_action(&seed), any_action(&seed)};
        if (actions[0].ipv6) actions[1].ipv6 = 0; // two take more than there is room for
        if (dq_below(&seed, 2)) {                 // mostly a tunnel, so that decapsulation gets somewhere
            dq_action on = actions[0];
            on.kind = DQ_ACT_ENCAP;
            dqi_frame x = place(buf, len);
            if (run(&on, 1, &x) == DQI_DONE) memcpy(buf, x.p, len = x.len);
            drop(&x);
        }
        if (dq_below(&seed, 3) == 0) fill_random(&seed, buf, len);
        for (uint32_t k = dq_below(&seed, 4); k > 0; k--)
            buf[dq_below(&seed, len < 60 ? len : 60)] = (uint8_t)dq_rand(&seed);
        uint32_t left = dq_below(&seed, 2) ? dq_below(&seed, len + 1) : len;
        dqi_frame x = place(buf, left);
        uint8_t *space = x.p - ROOM;
        uint32_t closed =
            dq_below(&seed, 2) ? 0 : dq_below(&seed, ROOM + 1); // bytes of the room that are not ours
        x.room -= closed;
        x.rest = dq_below(&seed, 4) ? 0 : dq_below(&seed, 3000);
        uint32_t rest = x.rest;
        int why = run(actions, n, &x);
        done += why == DQI_DONE;
        dropped += why != DQI_DONE;
        DQ_CHECK(why == DQI_DONE || why == DQ_DROP_BAD_TUNNEL || why == DQ_DROP_TOO_LONG);
        DQ_CHECK(x.p >= space + closed && x.p + x.len <= space + ROOM + left && x.rest <= rest);
        for (uint32_t k = 0; k < closed; k++)
            DQ_EQ(space[k], 0xee);
        free(space);
    }
    DQ_CHECK(done > 30000 && dropped > 30000);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(headers_are_as_the_rfcs_say);
    DQ_RUN(headers_over_ipv6);
    DQ_RUN(there_and_back);
    DQ_RUN(gre_carries_frames);
    DQ_RUN(network_packets);
    DQ_RUN(tags);
    DQ_RUN(other_tunnels_are_refused);
    DQ_RUN(gre_options);
    DQ_RUN(udp_checksums);
    DQ_RUN(entropy);
    DQ_RUN(limits);
    DQ_RUN(survives_anything);
    return dq_done();
}
