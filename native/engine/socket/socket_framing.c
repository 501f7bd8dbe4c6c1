#include "engine/socket/socket_framing.h"
#include "pipeline/dq_session.h"

#include <string.h>

static uint64_t read_prefix(const dqi_framing *f, const uint8_t *p) {
    uint64_t v = 0;
    for (uint32_t i = 0; i < f->width; i++)
        v = v << 8 | p[f->le ? f->width - 1 - i : i];
    return v;
}

// Determines the length of the current message: 1 known, 0 too few bytes, -1 invalid.
static int learn(const dqi_framing *f, dqi_cutter *c) {
    uint64_t len = f->fixed;
    if (c->to - c->from < (f->width ? f->width : 1)) return 0;
    if (f->kind == DQ_FRAMING_PREFIX) {
        len = read_prefix(f, c->base + c->from);
        if (f->incl && len < f->width) return -1;
        if (f->incl) len -= f->width;
        if (len > f->max_bytes) return -1;
    }
    c->from += f->width;
    c->need = (uint32_t)len;
    c->known = true;
    return 1;
}

int dqi_cut_next(const dqi_framing *f, dqi_cutter *c, uint32_t *at, uint32_t *len) {
    int known = c->known ? 1 : learn(f, c);
    if (known <= 0) return known;
    if (c->to - c->from < c->need) return 0;
    *at = c->from;
    *len = c->need;
    c->from += c->need;
    c->known = false;
    return 1;
}

bool dqi_cut_fits(const dqi_framing *f, const dqi_cutter *c) {
    uint32_t need = c->known ? c->need : f->width ? f->width : f->fixed;
    return c->base && c->room - c->from >= need && c->room > c->to;
}

void dqi_cut_move(const dqi_framing *f, dqi_cutter *c, uint8_t *base, uint32_t room) {
    uint32_t n = c->to - c->from, at = c->known ? f->width : 0;
    if (n > 0) memcpy(base + at, c->base + c->from, n);
    c->base = base;
    c->room = room;
    c->from = at;
    c->to = at + n;
}

uint32_t dqi_cut_pending(const dqi_framing *f, const dqi_cutter *c) {
    return c->to - c->from + (c->known ? f->width : 0);
}

int dqi_framing_prefix(const dqi_framing *f, uint64_t len, uint8_t out[8]) {
    if (f->kind == DQ_FRAMING_FIXED) return len == f->fixed ? 0 : -1;
    uint64_t v = f->incl ? len + f->width : len;
    if (f->width < 8 && v >> (8 * f->width) != 0) return -1;
    for (uint32_t i = 0; i < f->width; i++)
        out[f->le ? i : f->width - 1 - i] = (uint8_t)(v >> (8 * i));
    return (int)f->width;
}
