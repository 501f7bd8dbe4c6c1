// lane_patch.h: changes of fields and checksum updates, part of lane_body.h.

// One's complement sums are independent of byte order: words are summed in memory order (RFC 1071).
static inline VU NAME(words)(VU a) {
    a = (a & 0x0000ffff0000ffff) + (a >> 16 & 0x0000ffff0000ffff);
    return (a & 0xffffffff) + (a >> 32);
}

// RFC 1624, equation 3.
static inline VU NAME(adjust)(VU csum, VU sum) {
    sum += csum ^ 0xffff;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum ^ 0xffff;
}

// Values to store for each lane.
typedef struct NAME(stores) {
    VU word, ip, l4, l4_at;
} NAME(stores);

// Updates the checksums after the 16-bit words that they cover changed from `from` to s->word. A UDP checksum
// of 0 means none and stays 0; a computed 0 is sent as 0xffff (RFC 768). Without a transport checksum the
// IPv4 header's is stored twice.
static inline void NAME(checksums)(const NAME(frames) * f, VU from, NAME(stores) * s) {
    // 4 * 0xffff is 0 in one's complement and keeps the difference above 0.
    VU sum = NAME(words)(s->word) + (4 * 0xffff - NAME(words)(from));
    VU other = ~(f->udp | f->tcp);
    VU head = NAME(adjust)(f->w20 >> DQI_PAIR_SHIFT(4) & 0xffff, sum);
    VU old = WHERE(f->udp, f->w36) | WHERE(~f->udp, f->w46);
    old = old >> DQI_PAIR_SHIFT(4) & 0xffff;
    VU now = NAME(adjust)(old, sum);
    now |= WHERE(EQUAL(now, 0) & f->udp, ALL(0xffff));
    now = WHERE(~(EQUAL(old, 0) & f->udp), now);
    s->ip = head;
    s->l4 = WHERE(~other, now) | WHERE(other, head);
    s->l4_at = PLAIN_TCP_CSUM - WHERE(f->udp, ALL(PLAIN_TCP_CSUM - PLAIN_UDP_CSUM)) -
               WHERE(other, ALL(PLAIN_TCP_CSUM - PLAIN_IP_CSUM));
}

static inline void NAME(store)(const dqi_patch *c, uint8_t *p, const NAME(stores) * s, uint32_t j) {
    uint64_t word = s->word[j];
    memcpy(p + c->at, &word, 8);
    if (c->in_ip && c->ip_mask == 0) store16(p + PLAIN_IP_CSUM, s->ip[j]);
    if (c->in_l4) store16(p + s->l4_at[j], s->l4[j]);
}

// Sets those of WIDTH frames that `may` selects to v; returns the changed ones. Inlined, with c and in as
// locals, which stores to packets cannot alias.
static inline uint32_t NAME(change)(const dqi_patch *c, const NAME(frames) * f, VU v, uint64_t may) {
    NAME(stores) s = {0};
    VU from = WORDS(f->p, c->at);
    s.word = (from & ~c->mask) | (WIRE(v << c->shift) & c->mask);
    if (c->in_ip || c->in_l4) NAME(checksums)(f, from, &s);
    if (c->ip_mask != 0) s.word = (s.word & ~c->ip_mask) | (s.ip << c->ip_shift & c->ip_mask);
    uint32_t bits = BITS(NAME(having)(f, &c->who)) & (uint32_t)may;
    if (bits == (1u << WIDTH) - 1) {
        for (uint32_t j = 0; j < WIDTH; j++)
            NAME(store)(c, (uint8_t *)(uintptr_t)f->p[j], &s, j);
    } else {
        for (uint32_t j = 0; j < WIDTH; j++)
            if (bits >> j & 1) NAME(store)(c, (uint8_t *)(uintptr_t)f->p[j], &s, j);
    }
    return bits;
}

static uint64_t NAME(patch)(const dqi_packets *packets, uint32_t first, uint32_t n, const dqi_patch *patch,
                            uint64_t *plain) {
    const dqi_packets in = *packets;
    const dqi_patch c = *patch;
    uint64_t done = 0, known = 0;
    VU v = ALL(c.start + c.step * first);
    for (uint32_t j = 0; j < WIDTH; j++)
        v[j] += c.step * j;
    for (uint32_t i = 0; i < n; i += WIDTH, v += c.step * WIDTH) {
        NAME(frames) f;
        NAME(look)(&in, first + i, &f);
        if (c.values) v = CONST_AT(c.values);
        done |= (uint64_t)NAME(change)(&c, &f, v, c.lanes >> i) << i;
        PUT(known, f.plain);
    }
    *plain = known;
    return done;
}

#undef BYTE
#undef NUMBER
