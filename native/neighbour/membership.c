// membership.c: a query is answered after a random delay, each change is reported twice, with a random delay
// between. Everything due at the same time goes into one report, one record per member.
#include "neighbour/membership.h"
#include "packet/dq_rules.h"

#include <errno.h>
#include <stdlib.h>

#define CHANGES     2                     // robustness: reports per change
#define CHANGE_NS   INT64_C(1000000000)   // maximum delay between them
#define OLD_NS      INT64_C(260000000000) // how long an old querier is assumed present
#define OLDEST_WAIT INT64_C(10000000000)  // of an IGMPv1 querier, which specifies none

enum { PROTO_IGMP = 2, IGMP_QUERY = 0x11, MLD_QUERY = 130 };

void dqi_membership_init(dqi_membership *m, uint64_t seed) { *m = (dqi_membership){.seed = seed | 1}; }

void dqi_membership_free(dqi_membership *m) {
    free(m->all);
    *m = (dqi_membership){0};
}

// Returns a random time at most `most` from now.
static int64_t soon(dqi_membership *m, int64_t now, int64_t most) {
    m->seed ^= m->seed << 13;
    m->seed ^= m->seed >> 7;
    m->seed ^= m->seed << 17;
    return most <= 0 ? now : now + (int64_t)(m->seed % (uint64_t)most);
}

// ---- joining and leaving ----------------------------------------------------------------------------------

// Groups of all hosts, and those that stay on the host, are never reported.
static bool is_silent(const dqi_group *g) {
    static const uint8_t all4[] = {224, 0, 0, 1}, all6[16] = {0xff, 2, [15] = 1};
    const uint8_t *a = dqi_group_bytes(&g->group);
    if (g->group.sa.sa_family == AF_INET) return memcmp(a, all4, sizeof all4) == 0;
    return (a[1] & 15) <= 1 || memcmp(a, all6, sizeof all6) == 0;
}

static void say(dqi_member *e, bool leaving, uint32_t times, int64_t now) {
    e->leaving = leaving;
    e->changes = is_silent(&e->g) ? 0 : times;
    e->change_ns = now;
    if (leaving) e->answer_ns = INT64_MAX;
}

// Removes members whose leaving has been reported.
static void sweep(dqi_membership *m) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n; k++)
        if (!m->all[k].leaving || m->all[k].changes > 0) m->all[n++] = m->all[k];
    m->n = n;
}

static int add(dqi_membership *m, const dqi_group *g, int64_t now) {
    if (m->n == m->cap) {
        uint32_t cap = 2 * m->cap + 16;
        dqi_member *all = realloc(m->all, cap * sizeof *all);
        if (!all) return ENOMEM;
        m->all = all;
        m->cap = cap;
    }
    dqi_member *e = &m->all[m->n++];
    *e = (dqi_member){.g = *g, .answer_ns = INT64_MAX};
    say(e, false, CHANGES, now);
    return 0;
}

int dqi_membership_change(dqi_membership *m, const dqi_group *g, bool join, int64_t now) {
    dqi_member *same = NULL;
    for (uint32_t k = 0; k < m->n; k++) {
        dqi_member *e = &m->all[k];
        if (join && !e->leaving && dqi_group_clash(&e->g, g)) return EINVAL;
        if (dqi_group_same(&e->g, g)) same = e;
    }
    bool there = same && !same->leaving;
    if (there == join) return join ? 0 : EADDRNOTAVAIL;
    if (!same) return add(m, g, now);
    say(same, !join, CHANGES, now);
    sweep(m);
    return 0;
}

void dqi_membership_leave_all(dqi_membership *m, int64_t now) {
    for (uint32_t k = 0; k < m->n; k++)
        say(&m->all[k], true, 1, now);
    sweep(m);
}

uint32_t dqi_membership_macs(const dqi_membership *m, uint8_t (*macs)[6], uint32_t max) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n; k++) {
        if (m->all[k].leaving) continue;
        const dqi_sockaddr *g = &m->all[k].g.group;
        if (n < max) dqi_group_mac(g->sa.sa_family, dqi_group_bytes(g), macs[n]);
        n++;
    }
    return n;
}

// ---- queries ----------------------------------------------------------------------------------------------

typedef struct query {
    int family;
    bool old;
    int64_t wait_ns;
    const uint8_t *group; // zero: all groups
    const uint8_t *sources;
    uint32_t n_sources;
} query;

// Values in the upper half of the field's range have an exponent in the next three bits (RFC 3376, 4.1.1).
static int64_t wait_of(uint32_t code, uint32_t bits, int64_t unit_ns) {
    uint32_t mantissa = bits - 4, half = 1u << (bits - 1);
    if (code < half) return code * unit_ns;
    uint32_t exponent = code >> mantissa & 7, digits = code & ((1u << mantissa) - 1);
    return (int64_t)((digits | 1u << mantissa) << (exponent + 3)) * unit_ns;
}

// Parses what IGMP and MLD have in common: the query's n bytes from head on are flags, the querier's
// interval, the number of sources and the sources, of a bytes each; absent in the old versions.
static bool read_sources(query *q, const uint8_t *p, uint32_t n, uint32_t head, uint32_t a) {
    q->old = n == head;
    if (q->old) return true;
    if (n < head + 4) return false;
    q->n_sources = dqi_be16(p + head + 2);
    q->sources = p + head + 4;
    return q->n_sources * a <= n - head - 4;
}

static bool read_igmp(query *q, const uint8_t *frame, const dqi_pkt *pkt) {
    const uint8_t *p = frame + pkt->l4, *ip = frame + pkt->l3;
    uint32_t n = pkt->end - pkt->l4;
    if (n < 8 || p[0] != IGMP_QUERY || ip[16] >> 4 != 14 || dqi_csum_fold(dqi_csum_add(p, n, 0)) != 0)
        return false;
    q->family = AF_INET;
    q->group = p + 4;
    if (!read_sources(q, p, n, 8, 4)) return false;
    q->wait_ns = q->old ? p[1] * INT64_C(100000000) : wait_of(p[1], 8, 100000000);
    if (q->old && p[1] == 0) q->wait_ns = OLDEST_WAIT;
    return true;
}

static bool read_mld(query *q, const uint8_t *frame, const dqi_pkt *pkt) {
    const uint8_t *p = frame + pkt->l4, *ip = frame + pkt->l3;
    uint32_t n = pkt->end - pkt->l4;
    bool local = ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80 && ip[7] == 1;
    if (n < 24 || p[0] != MLD_QUERY || !local || ip[24] != 0xff || !dqi_csum_ok(frame, pkt)) return false;
    q->family = AF_INET6;
    q->group = p + 8;
    if (!read_sources(q, p, n, 24, 16)) return false;
    uint32_t code = dqi_be16(p + 4);
    q->wait_ns = q->old ? code * INT64_C(1000000) : wait_of(code, 16, 1000000);
    return true;
}

// Reports whether the whole IP packet is present: the checksum of a truncated one cannot be verified.
static bool is_whole(const uint8_t *frame, const dqi_pkt *pkt) {
    const uint8_t *ip = frame + pkt->l3;
    uint32_t len = pkt->has & DQ_HAS_IPV4 ? dqi_be16(ip + 2) : DQI_IPV6_LEN + dqi_be16(ip + 4);
    return pkt->l3 + len == pkt->end;
}

static bool is_meant(const query *q, const dqi_member *e) {
    static const uint8_t all[16] = {0};
    uint32_t a = q->family == AF_INET ? 4 : 16;
    if (e->leaving || e->g.group.sa.sa_family != q->family || is_silent(&e->g)) return false;
    if (memcmp(q->group, all, a) == 0) return true;
    if (memcmp(q->group, dqi_group_bytes(&e->g.group), a) != 0) return false;
    if (q->n_sources == 0 || e->g.source.sa.sa_family == AF_UNSPEC) return true;
    for (uint32_t k = 0; k < q->n_sources; k++)
        if (memcmp(q->sources + k * a, dqi_group_bytes(&e->g.source), a) == 0) return true;
    return false;
}

bool dqi_membership_query(dqi_membership *m, const uint8_t *frame, uint32_t len, int64_t now) {
    dqi_pkt pkt;
    query q = {0};
    if (!dqi_parse(frame, len, &pkt) || pkt.n_vlans > 0 || pkt.l4 == DQI_NONE || pkt.has & DQ_HAS_FRAGMENT ||
        !is_whole(frame, &pkt))
        return false;
    bool igmp = pkt.has & DQ_HAS_IPV4 && pkt.ip_proto == PROTO_IGMP;
    bool mld = pkt.has & DQ_HAS_IPV6 && pkt.ip_proto == DQI_PROTO_ICMPV6;
    if (!(igmp && read_igmp(&q, frame, &pkt)) && !(mld && read_mld(&q, frame, &pkt))) return false;
    if (q.old) m->old_until[mld] = now + OLD_NS;
    int64_t at = soon(m, now, q.wait_ns);
    for (uint32_t k = 0; k < m->n; k++)
        if (is_meant(&q, &m->all[k]) && at < m->all[k].answer_ns) m->all[k].answer_ns = at;
    return true;
}

// ---- reports ----------------------------------------------------------------------------------------------

static int64_t due(const dqi_member *e) {
    return e->changes > 0 && e->change_ns < e->answer_ns ? e->change_ns : e->answer_ns;
}

int64_t dqi_membership_due(const dqi_membership *m) {
    int64_t least = INT64_MAX;
    for (uint32_t k = 0; k < m->n; k++)
        least = due(&m->all[k]) < least ? due(&m->all[k]) : least;
    return least;
}

static int record_of(const dqi_member *e, int64_t now) {
    bool any = e->g.source.sa.sa_family == AF_UNSPEC;
    if (e->changes == 0 || e->change_ns > now) return any ? DQI_IS_EX : DQI_IS_IN;
    if (e->leaving) return any ? DQI_TO_IN : DQI_BLOCK;
    return any ? DQI_TO_EX : DQI_ALLOW;
}

// Updates e after its due records were reported.
static void mark_reported(dqi_membership *m, dqi_member *e, int64_t now) {
    if (e->answer_ns <= now) e->answer_ns = INT64_MAX;
    if (e->changes == 0 || e->change_ns > now) return;
    e->changes--;
    e->change_ns = soon(m, now, CHANGE_NS);
}

static bool is_old(const dqi_membership *m, int family, int64_t now) {
    return now < m->old_until[family == AF_INET6];
}

static uint32_t report_old(dqi_membership *m, dqi_member *e, const dqi_station *me, int64_t now,
                           uint8_t *out) {
    bool other = false; // another source of the same group
    for (uint32_t k = 0; k < m->n; k++)
        other |= &m->all[k] != e && !m->all[k].leaving && dqi_addr_same_host(&m->all[k].g.group, &e->g.group);
    mark_reported(m, e, now);
    return e->leaving && other ? 0 : dqi_report_old(me, &e->g, !e->leaving, out);
}

// Reports what is due of e's family, from e on.
static uint32_t report_all(dqi_membership *m, dqi_member *e, const dqi_station *me, int64_t now, uint8_t *out,
                           uint32_t room) {
    dqi_report r;
    int family = e->g.group.sa.sa_family;
    dqi_report_begin(&r, me, family, out, room);
    for (; e < m->all + m->n; e++) {
        if (e->g.group.sa.sa_family != family || due(e) > now) continue;
        if (!dqi_report_add(&r, record_of(e, now), &e->g)) break;
        mark_reported(m, e, now);
    }
    return dqi_report_end(&r);
}

uint32_t dqi_membership_report(dqi_membership *m, const dqi_station *me, int64_t now, uint8_t *out,
                               uint32_t room) {
    uint32_t len = 0;
    for (uint32_t k = 0; k < m->n && len == 0; k++) {
        dqi_member *e = &m->all[k];
        if (due(e) > now) continue;
        len = is_old(m, e->g.group.sa.sa_family, now) ? report_old(m, e, me, now, out)
                                                      : report_all(m, e, me, now, out, room);
    }
    sweep(m);
    return len;
}
