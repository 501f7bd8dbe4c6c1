// lane_keys.h: key words and their hashes, part of lane_body.h.

static uint64_t NAME(keys)(const dqi_packets *packets, dqi_keys *k) {
    const dqi_packets in = *packets;
    uint64_t plain = 0, changed = 0;
    VU l4_before = ALL(k->last_l4), ipv4_before = ALL(k->last_ipv4);
    for (uint32_t i = 0; i < in.n; i += WIDTH) {
        NAME(frames) f;
        NAME(look_for)(&in, i, true, &f);
        VU has =
            ALL(DQ_HAS_ETH | DQ_HAS_IPV4) | WHERE(f.udp, ALL(DQ_HAS_UDP)) | WHERE(f.tcp, ALL(DQ_HAS_TCP));
        VU l4 = NUMBER(f.w12, 4) << 48 | BYTE(f.w20, 3) << 40 | has << 32 |
                WIRE(DQI_JOIN(f.w28, f.w36, 48)) >> 32;
        VU ipv4 = WIRE(DQI_JOIN(f.w20, f.w28, 48));
        AT(k->l4) = l4;
        AT(k->ipv4) = ipv4;
        VU diff =
            ((l4 ^ NEXT(l4_before, l4)) & k->l4_mask) | ((ipv4 ^ NEXT(ipv4_before, ipv4)) & k->ipv4_mask);
        PUT(changed, ~EQUAL(diff, 0));
        PUT(plain, f.udp | f.tcp);
        l4_before = l4;
        ipv4_before = ipv4;
    }
    k->changed = changed;
    return plain;
}

// n_words is a constant at each call.
static inline void NAME(hash_words)(const dqi_key_part *part, uint32_t n_words, uint64_t seed, uint32_t n,
                                    dqi_col *h) {
    for (uint32_t i = 0; i < n; i += WIDTH) {
        VU v = ALL(seed);
        for (uint32_t k = 0; k < n_words; k++) {
            v ^= CONST_AT(part[k].word) & part[k].mask;
            v = LOW_TIMES(v, DQI_HASH_LOW) + LOW_TIMES(v >> 32, DQI_HASH_HIGH);
            v ^= v >> 32;
        }
        AT(h) = v;
    }
}

static void NAME(hash)(const dqi_key_part *part, uint32_t n_words, uint64_t seed, uint32_t n, dqi_col *h) {
    switch (n_words) {
    case 1:
        NAME(hash_words)(part, 1, seed, n, h);
        return;
    case 2:
        NAME(hash_words)(part, 2, seed, n, h);
        return;
    default:
        NAME(hash_words)(part, n_words, seed, n, h);
    }
}
