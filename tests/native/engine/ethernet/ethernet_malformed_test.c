// ethernet_malformed_test.c: damaged frames on the whole way in: from a driver, past the flows, into a
// queue's buffers, through actions, verbs and answers. Behind each frame, and behind each packet in its
// buffer, lies memory that nothing may read (address sanitizer) or write (elsewhere).
#include "ethernet_rig.h"

#include "frames.h"
#include "neighbour/membership.h"
#include "neighbour/neigh.h"
#include "packet/transform.h"
#include "pipeline/actions.h"
#include "pipeline/session.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { BATCH = 32, FRONT = 4, CANARY = 0x5a, ROOM = 1024 };

static const dq_action vxlan = {
    .kind = DQ_ACT_ENCAP, .tunnel = DQ_TUNNEL_VXLAN, .ttl = 64, .id = 100, .udp_dst = 4789};
static const dq_action gre = {
    .kind = DQ_ACT_ENCAP, .tunnel = DQ_TUNNEL_GRE, .ttl = 64, .protocol = 0x0800, .ipv4_src = 1};
static const dq_action nvgre = {
    .kind = DQ_ACT_ENCAP, .tunnel = DQ_TUNNEL_NVGRE, .ttl = 64, .id = 7, .ipv4_src = 2};

// ---- frames -----------------------------------------------------------------------------------------------

static void put_in(uint8_t *p, uint32_t *len, uint32_t at, const void *what, uint32_t n) {
    memmove(p + at + n, p + at, *len - at);
    memcpy(p + at, what, n);
    *len += n;
}

// Puts the frame into a tunnel.
static uint32_t wrap(uint8_t *p, uint32_t len, const dq_action *how) {
    dqi_acts acts;
    dq_diag d = {{0}};
    must(dqi_acts_make(how, 1, &acts, &d), &d);
    memmove(p + DQ_HEADROOM, p, len);
    dqi_frame f = {.p = p + DQ_HEADROOM, .len = len, .room = DQ_HEADROOM};
    if (dqi_acts_apply(&acts, &f, ROOM) != DQI_DONE) return len;
    memmove(p, f.p, f.len);
    return f.len;
}

static void damage(uint64_t *seed, uint8_t *p, uint32_t *len) {
    static const uint8_t values[] = {0, 1, 4, 0x45, 0x4f, 0x60, 0x81, 0xff};
    for (uint32_t n = dq_below(seed, 5); n > 0; n--) {
        uint32_t at = 12 + dq_below(seed, dq_below(seed, 2) ? 46 : ROOM);
        if (at < *len) p[at] = dq_below(seed, 2) ? values[dq_below(seed, 8)] : (uint8_t)dq_rand(seed);
    }
    if (dq_below(seed, 3) == 0) *len = dq_below(seed, 3) ? dq_below(seed, *len + 1) : dq_below(seed, 15);
}

// Any frame: plain, in a tunnel, with tags in tags, of nothing but random bytes; most of them damaged.
static uint32_t any_frame(uint64_t *seed, uint8_t *p) {
    static const dq_action *const tunnels[] = {&vxlan, &gre, &nvgre};
    frame f;
    frame_random(seed, true, &f);
    uint32_t len = frame_write(&f, p), kind = dq_below(seed, 8);
    if (kind < 3) len = wrap(p, len, tunnels[kind]);
    for (uint32_t n = kind == 3 ? dq_below(seed, 12) : 0; n > 0; n--)
        put_in(p, &len, 12, dq_below(seed, 2) ? "\x81\0\0\1" : "\x88\xa8\0\2", 4);
    if (kind == 4) fill_random(seed, p, len = dq_below(seed, 400));
    if (kind != 5) damage(seed, p, &len);
    return len;
}

// Puts the frame on device queue 0, in up to three pieces of memory of their own, sometimes with a tag beside
// it.
static void hand_out(uint64_t *seed, const uint8_t *p, uint32_t len) {
    fake_queue *l = &fake[0];
    const uint32_t first = l->n;
    for (uint32_t at = 0, n; at < len; at += n) {
        n = l->n - first < 2 && dq_below(seed, 4) == 0 ? 1 + dq_below(seed, len - at) : len - at;
        uint8_t *own = malloc(FRONT + n);
        if (!own) exit(1);
        memcpy(own + FRONT, p + at, n);
        l->pieces[l->n++] =
            (dqi_piece){.data = own + FRONT, .len = n, .buf = DQI_NO_BUF, .more = at + n < len};
    }
    if (dq_below(seed, 8) == 0) l->pieces[first].vlan_tpid = 0x8100, l->pieces[first].vlan_tci = 1;
}

// Where buffer id of a region ends; nothing but packets may be touched before that.
static uint8_t *end_of(const dq_session *s, const dq_region *r, uint32_t id) {
    return s->core.base + dqi_buf_off(r, id) - DQ_HEADROOM + r->stride;
}

// Puts the frame on device queue 0 in a buffer of the queues' region, guarded behind it.
static void hand_out_in_place(const rig *r, const uint8_t *p, uint32_t len) {
    fake_queue *l = &fake[0];
    uint32_t id;
    DQ_EQ(dqi_bufs_alloc(r->region[0], &id, 1), 1);
    uint8_t *to = r->s->core.base + dqi_buf_off(r->region[0], id);
    memcpy(to, p, len);
    ASAN_POISON_MEMORY_REGION(to + len, (size_t)(end_of(r->s, r->region[0], id) - to - len));
    l->pieces[l->n++] = (dqi_piece){.data = to, .len = len, .buf = id};
}

// ---- packets ----------------------------------------------------------------------------------------------

// Guards what lies behind each packet of a burst.
static void guard(const rig *r, const dq_burst *b) {
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t k = 0; k < b->nseg; k++) {
            uint8_t *end = r->s->core.base + b->off[k][i] + b->len[k][i];
            size_t rest = (size_t)(end_of(r->s, r->region[k], b->bufs[k][i]) - end);
            ASAN_UNPOISON_MEMORY_REGION(end, rest);
            memset(end, CANARY, rest);
            ASAN_POISON_MEMORY_REGION(end, rest);
        }
}

// Nothing was written behind a packet.
static void unguard(const rig *r, const dq_burst *b) {
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t k = 0; k < b->nseg; k++) {
            uint8_t *at = r->s->core.base + b->off[k][i] + b->len[k][i],
                    *end = end_of(r->s, r->region[k], b->bufs[k][i]);
            ASAN_UNPOISON_MEMORY_REGION(at, (size_t)(end - at));
            while (at < end && *at == CANARY)
                at++;
            DQ_CHECK(at == end);
        }
}

// Reads every named field of all packets, sets every one that can be set, and fills the checksums in.
static void look_at(dq_burst *b) {
    uint64_t out[BATCH];
    uint8_t ok[BATCH];
    dq_field f;
    const char *name;
    DQ_EQ(dq_burst_checksums(b, -1), DQ_OK);
    for (uint32_t k = 0; (name = dq_field_name(k)); k++) {
        DQ_CHECK(dq_field_named(name, &f));
        DQ_CHECK(dq_burst_column(b, &f, out, ok) <= b->n);
        dq_burst_set(b, &f, k, 1, k % 2 ? DQ_CSUM_UPDATE : DQ_CSUM_KEEP);
    }
    for (uint32_t k = 0; k < 4; k++) {
        const dq_field bits = {.base = DQ_BASE_START + k,
                               .bit_width = 64,
                               .bit_offset = 8 * (b->len[0][0] > 8 ? b->len[0][0] - 8 : 0)};
        dq_burst_column(b, &bits, out, ok);
    }
}

// What the session takes of the frames: one look, as rx.c has it.
static uint32_t receive(const rig *r, dq_queue *q) {
    dq_burst *b = dqi_burst_get(q->bursts);
    uint32_t n = (uint32_t)dqi_eth_rx(q, &b, BATCH);
    b->queue = q;
    guard(r, b);
    unguard(r, b); // header split may need to move what it has received too much
    uint32_t gone = atomic_load(&q->rx.lead) > 0 ? dqi_rx_actions(q, b, 0) : 0;
    dqi_add(&q->c.out, n - gone);
    guard(r, b);
    look_at(b);
    unguard(r, b);
    dq_burst_unref(b);
    return n;
}

// ---- cases ------------------------------------------------------------------------------------------------

static dq_rule rule(uint32_t set, uint32_t id, uint16_t queue) {
    return (dq_rule){.match = {.set = set}, .order = id, .flow_id = id, .n_queues = 1, .queues = {queue}};
}

static dq_rule decap(uint32_t set, uint32_t id, uint32_t action) {
    dq_rule r = rule(set, id, (uint16_t)(id % QUEUES));
    r.n_actions = 1;
    r.first_action = action;
    return r;
}

// Flows of all kinds, tunnels among them.
static void set_flows(dq_iface *i) {
    dq_action acts[] = {vxlan, gre, nvgre, {.kind = DQ_ACT_VLAN_POP}};
    for (int k = 0; k < 3; k++)
        acts[k].kind = DQ_ACT_DECAP;
    dq_rule r[] = {decap(0, 1, 0),
                   decap(0, 2, 1),
                   decap(0, 3, 2),
                   decap(DQ_MATCH_VLAN_ID, 4, 3),
                   rule(DQ_MATCH_ECPRI_TYPE | DQ_MATCH_ECPRI, 5, 1),
                   rule(DQ_MATCH_FLEX, 6, 2),
                   rule(DQ_MATCH_IPV6_DST, 7, 1),
                   rule(DQ_MATCH_TCP_DST, 8, 0),
                   rule(DQ_MATCH_ETHERTYPE, 9, 2)};
    r[3].match.vlan_id = 1;
    r[5].match.flex_mask = 3, r[5].match.flex_offset = 4;
    memset(r[6].match.ipv6_dst, 11, 16);
    r[6].match.ipv6_dst_prefix = 120;
    r[7].match.tcp_dst = (dq_port_range){2000, 2002};
    r[7].rss = 1, r[7].n_queues = 3, r[7].queues[1] = 1, r[7].queues[2] = 2;
    r[8].match.ethertype = 0x0806;
    dq_diag d = {{0}};
    must(dq_iface_change_rules(i, NULL, 0, r, sizeof r / sizeof *r, acts, &d), &d);
}

static void run(rig_conf c, uint64_t seed, int rounds) {
    rig r = rig_open(c);
    uint64_t given = 0, taken = 0, lost = 0, bad = 0, changed = 0;
    set_flows(r.i);
    for (int round = 0; round < rounds; round++) {
        for (uint32_t k = 0; k < BATCH; k++, given++) {
            uint8_t p[ROOM];
            uint32_t len = any_frame(&seed, p);
            if (len == 0) p[len++] = 0;
            if (c.in_place)
                hand_out_in_place(&r, p, len);
            else
                hand_out(&seed, p, len);
        }
        for (uint32_t k = 0; k < 2 * c.queues; k++)
            taken += receive(&r, r.q[k % c.queues]);
        for (uint32_t k = 0; !c.in_place && k < fake[0].n; k++)
            free(fake[0].pieces[k].data - FRONT);
        DQ_EQ(fake[0].at, fake[0].n);
        fake[0].n = fake[0].at = 0;
    }
    for (uint32_t k = 0; k < c.queues; k++) {
        dq_line l = line_of(&r, DQ_LINE_RX, k);
        lost += l.dropped[DQ_DROP_TOO_LONG];
        bad += l.dropped[DQ_DROP_BAD_TUNNEL];
        changed += l.extra[DQ_EXTRA_TRANSFORMED];
        DQ_CHECK(l.in > given / 20);
    }
    dq_line w = line_of(&r, DQ_LINE_WIRE, 0);
    DQ_EQ(w.in, given);
    DQ_EQ(given, taken + lost + dropped(&w));
    DQ_CHECK(bad > given / 50 && changed > given / 50);
    rig_close(&r);
}

static void copied(void) {
    run((rig_conf){.device_queues = 1, .queues = QUEUES, .nseg = 1, .size = {600}, .isolation = true}, 1,
        150);
}
static void split(void) {
    run((rig_conf){.device_queues = 1, .queues = QUEUES, .nseg = 2, .size = {64, 600}}, 2, 150);
}
static void in_place_all(void) {
    run((rig_conf){.device_queues = 1, .queues = QUEUES, .nseg = 1, .size = {ROOM}, .in_place = true}, 3,
        150);
}

// What asks for an answer, damaged.
static void answers(void) {
    static const uint8_t arp[42] = "\xff\xff\xff\xff\xff\xff\2\0\0\0\0\2\x08\6\0\1\x08\0\6\4\0\1\2\0\0\0\0\2"
                                   "\x0a\0\0\2\0\0\0\0\0\0\x0a\0\0\1";
    static const uint8_t igmp[46] = "\1\0\x5e\0\0\1\2\0\0\0\0\2\x08\0\x46\xc0\0\x20\0\0\0\0\1\2\0\0\x0a\0\0\2"
                                    "\xe0\0\0\1\x94\4\0\0\x11\x64\xee\x9b";
    dqi_station me = {.mac = {2, 0, 0, 0, 0, 1}, .n_ip4 = 1, .ip4 = {{10, 0, 0, 1}}};
    dqi_membership m;
    uint64_t seed = 4;
    uint32_t answered = 0, asked = 0;
    dqi_membership_init(&m, 1);
    for (int k = 0; k < 20000; k++) {
        uint8_t p[ROOM], out[DQI_NEIGH_MAX];
        uint32_t len = k % 3 ? (k % 3 == 1 ? sizeof arp : sizeof igmp) : any_frame(&seed, p);
        if (k % 3) memcpy(p, k % 3 == 1 ? arp : igmp, len);
        if (dq_below(&seed, 4)) damage(&seed, p, &len);
        uint8_t *exact = dq_exact(p, len);
        uint32_t n = dqi_neigh_answer(&me, exact, len, out);
        DQ_CHECK(n <= sizeof out);
        answered += n > 0;
        asked += dqi_membership_query(&m, exact, len, k);
        free(exact);
    }
    DQ_CHECK(answered > 1000 && answered < 7000);
    DQ_CHECK(asked > 1000 && asked < 7000);
    dqi_membership_free(&m);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(copied);
    DQ_RUN(split);
    DQ_RUN(in_place_all);
    DQ_RUN(answers);
    return dq_done();
}
