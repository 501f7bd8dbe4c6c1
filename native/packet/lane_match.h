// lane_match.h: conditions on fields, part of lane_body.h.

static inline VU NAME(having)(const NAME(frames) * f, const dqi_who *who) {
    return WHERE(ALL(who->any), f->plain) | WHERE(ALL(who->udp), f->udp) | WHERE(ALL(who->tcp), f->tcp);
}

static uint64_t NAME(match)(const dqi_packets *packets, uint32_t first, uint32_t n, const dqi_term *terms,
                            uint32_t n_terms, uint64_t *plain) {
    const dqi_packets in = *packets;
    uint64_t bits = 0, known = 0;
    for (uint32_t i = 0; i < n; i += WIDTH) {
        NAME(frames) f;
        NAME(look)(&in, first + i, &f);
        VU ok = f.plain;
        for (const dqi_term *t = terms; t < terms + n_terms; t++) {
            VU v = WIRE(WORDS(f.p, t->at)) << t->left >> t->right;
            ok &= ~(v - t->from) & (v - t->to) & NAME(having)(&f, &t->who);
        }
        PUT(bits, ok);
        PUT(known, f.plain);
    }
    *plain = known;
    return bits;
}
