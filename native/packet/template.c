// template.c: templates: a packet to send many times, with fields that vary from packet to packet.
#include "packet/template.h"
#include "core/dq_core.h"
#include "core/err.h"
#include "packet/dq_template.h"
#include "packet/field.h"
#include "packet/packet.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 64 };

// Position of a field in each packet: bits of the 8 bytes from `at`, read in its byte order.
typedef struct window {
    uint32_t at;
    uint8_t shift;
    bool little;
    uint64_t mask; // 0: it exceeds 8 bytes
} window;

struct dq_template {
    _Atomic uint32_t refs; // the creator, and each queue that sends it
    dqi_spin lock;         // guards the varying state: several threads may fill bursts at once
    uint8_t *bytes;        // padded to whole lines
    uint32_t len;
    bool checksums;
    uint32_t n_vary;
    uint64_t random; // state of the generator
    dqi_pkt pkt;     // offsets of the headers
    dqi_sums sums;
    struct {
        dq_vary v;
        window place;
        uint64_t width;      // its value mask, where it wraps; 0: it has a max
        uint64_t next, left; // left: packets that still get `last`
        uint64_t last;
    } vary[];
};

uint32_t dqi_template_len(const dq_template *t) { return t->len; }

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014): one addition and three mixing steps.
uint64_t dqi_mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

dqi_sums dqi_template_sums(const dq_template *t) { return t->sums; }

// Reports whether the varied field affects header lengths or checksum coverage.
static bool moves_headers(const dq_template *t, const dq_field *f) {
    uint64_t bit;
    uint32_t width;
    if (!dqi_field_place(t->len, &t->pkt, f, &bit, &width)) return true;
    uint32_t from = (uint32_t)(bit / 8), to = (uint32_t)((bit + width + 7) / 8);
    const uint32_t addresses = 12; // of the Ethernet header
    dqi_csum_change c;
    dqi_csum_before(&c, t->bytes, &t->pkt, from, to);
    return c.recompute || (to > addresses && from < t->pkt.l3);
}

static dqi_sums sums_of(const dq_template *t) {
    const uint8_t has = t->checksums && t->n_vary > 0 ? dqi_csum_plain(t->bytes, &t->pkt) : 0;
    if (has == 0) return (dqi_sums){0};
    for (uint32_t i = 0; i < t->n_vary; i++)
        if (moves_headers(t, &t->vary[i].v.field)) return (dqi_sums){0};
    return (dqi_sums){has, (uint8_t)t->pkt.l3, (uint8_t)(t->pkt.l4 - t->pkt.l3)};
}

static window window_of(const dq_template *t, const dq_field *f) {
    uint64_t bit;
    uint32_t width;
    if (t->len < 8 || !dqi_field_place(t->len, &t->pkt, f, &bit, &width)) return (window){0};
    const uint32_t at = bit / 8 + 8 <= t->len ? (uint32_t)(bit / 8) : t->len - 8;
    const uint32_t from = (uint32_t)(bit - 8ull * at);
    if (from + width > 64) return (window){0};
    const bool little = f->flags & DQ_FIELD_LE;
    const uint8_t shift = (uint8_t)(little ? from : 64 - from - width);
    return (window){at, shift, little, (UINT64_MAX >> (64 - width)) << shift};
}

static int check_vary(dq_template *t, uint32_t i, dq_diag *diag) {
    const dq_vary *v = &t->vary[i].v;
    uint64_t value;
    int err = dqi_field_check(&v->field, diag);
    if (err != DQ_OK) return err;
    if (!dqi_field_get(t->bytes, t->len, &t->pkt, &v->field, &value) ||
        !dqi_field_set(t->bytes, t->len, &t->pkt, &v->field, v->start))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "template: varied field %u lies outside the packet of %u bytes", i + 1, t->len);
    uint64_t top = v->field.bit_width >= 64 ? UINT64_MAX : (1ull << v->field.bit_width) - 1;
    if (v->max == UINT64_MAX) t->vary[i].width = top;
    if (v->max > top) t->vary[i].v.max = top;
    if (v->start > t->vary[i].v.max)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "template: varied field %u starts above its largest value", i + 1);
    if (v->kind == DQ_VARY_TOGGLE && v->step > top)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "template: varied field %u toggles bits that it lacks",
                        i + 1);
    t->vary[i].next = v->start;
    t->vary[i].place = window_of(t, &v->field);
    return DQ_OK;
}

int dq_template_new(const uint8_t *bytes, uint32_t len, const dq_vary *vary, uint32_t n_vary, int checksums,
                    uint64_t seed, dq_template **out, dq_diag *diag) {
    dq_template *t = calloc(1, sizeof *t + n_vary * sizeof t->vary[0]);
    if (!t || !(t->bytes = calloc(len / LINE + 1, LINE))) {
        free(t);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "template: no memory for %u bytes", len);
    }
    atomic_init(&t->refs, 1);
    memcpy(t->bytes, bytes, len);
    t->len = len;
    t->checksums = checksums != 0;
    t->random = seed;
    t->n_vary = n_vary;
    if (checksums)
        dqi_parse(t->bytes, len, &t->pkt);
    else
        dqi_parse_payload(len, &t->pkt);
    int err = DQ_OK;
    for (uint32_t i = 0; i < n_vary && err == DQ_OK; i++) {
        t->vary[i].v = vary[i];
        err = check_vary(t, i, diag);
    }
    if (err != DQ_OK) {
        dq_template_unref(t);
        return err;
    }
    if (t->checksums) dqi_csum_fill(t->bytes, &t->pkt);
    t->sums = sums_of(t);
    *out = t;
    return DQ_OK;
}

void dqi_template_ref(dq_template *t) {
    if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
}

void dq_template_unref(dq_template *t) {
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    free(t->bytes);
    free(t);
}

static uint64_t new_value(dq_template *t, uint32_t i) {
    const dq_vary *v = &t->vary[i].v;
    if (v->kind == DQ_VARY_TOGGLE) {
        uint64_t now = t->vary[i].next;
        t->vary[i].next = now ^ v->step;
        return now;
    }
    if (v->kind == DQ_VARY_RANDOM) {
        t->random += 0x9e3779b97f4a7c15u;
        uint64_t range = v->max - v->start + 1;
        uint64_t r = dqi_mix64(t->random);
        return v->start + (range == 0 ? r : r % range);
    }
    uint64_t now = t->vary[i].next, room = v->max - now;
    if (t->vary[i].width)
        t->vary[i].next = (now + v->step) & t->vary[i].width;
    else if (v->step <= room)
        t->vary[i].next = now + v->step;
    else
        t->vary[i].next = v->start + (v->step - room - 1) % (v->max - v->start + 1);
    return now;
}

static inline uint64_t next_value(dq_template *t, uint32_t i) {
    uint64_t every = t->vary[i].v.every;
    if (every < 2) return new_value(t, i);
    if (t->vary[i].left == 0) {
        t->vary[i].left = every;
        t->vary[i].last = new_value(t, i);
    }
    t->vary[i].left--;
    return t->vary[i].last;
}

// Writes the next value of varied field i into the packet at p.
static inline void put_next(dq_template *t, uint32_t i, uint8_t *p) {
    const window *x = &t->vary[i].place;
    const uint64_t v = next_value(t, i);
    if (x->mask == 0) {
        dqi_field_set(p, t->len, &t->pkt, &t->vary[i].v.field, v);
        return;
    }
    uint64_t w;
    memcpy(&w, p + x->at, sizeof w);
    w = x->little ? le64toh(w) : be64toh(w);
    w = (w & ~x->mask) | v << x->shift;
    w = x->little ? htole64(w) : htobe64(w);
    memcpy(p + x->at, &w, sizeof w);
}

int dq_template_fill(dq_template *t, dq_burst *b) {
    if (b->nseg != 1) return DQ_INVALID_PARAMETER;
    int err = dq_burst_set_len(b, 0, -1, t->len);
    if (err != DQ_OK) return err;
    dqi_template_write(t, b, NULL);
    return DQ_OK;
}

// Returns the writable bytes before packet i.
static uint32_t room_before(const dq_burst *b, uint32_t i, const dq_region **region) {
    uint64_t off = b->off[0][i];
    if (!*region || !dqi_region_has(*region, off)) *region = dqi_off_region(b->session, off);
    const dq_region *r = *region;
    if (!r) return 0;
    uint64_t start = dqi_buf_off(r, b->bufs[0][i]) - r->headroom;
    return off > start ? (uint32_t)(off - start) : 0;
}

static int check_prepend(const dq_template *t, const dq_burst *b, dq_diag *diag) {
    const dq_region *region = NULL;
    if (t->n_vary > 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "template: its fields vary, as headers they must not");
    if (b->nseg != 1 || b->parent || b->slices || b->heads || !dqi_burst_writable(b))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "template: headers need a burst of one segment, with its own buffers and no other readers");
    if (b->device_only) return dqi_fail(diag, DQ_NOT_SUPPORTED, "template: the packets lie in device memory");
    for (uint32_t i = 0; i < b->n; i++) {
        if (dqi_burst_hole(b, 0, i)) continue;
        if (room_before(b, i, &region) < t->len)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "template: %u bytes do not fit before packet %u",
                            t->len, i + 1);
        if (t->checksums && b->len[0][i] > UINT16_MAX - t->len)
            return dqi_fail(diag, DQ_INVALID_PARAMETER,
                            "template: packet %u of %u bytes is too long for an IP packet", i + 1,
                            b->len[0][i]);
    }
    return DQ_OK;
}

// Sets the lengths of the headers at p, which pkt describes, for a frame of len bytes, and its checksums.
static void set_lengths(uint8_t *p, uint32_t len, const dqi_pkt *pkt) {
    if (pkt->has & DQ_HAS_IPV4) dqi_put_be16(p + pkt->l3 + 2, (uint16_t)(len - pkt->l3));
    if (pkt->has & DQ_HAS_IPV6) dqi_put_be16(p + pkt->l3 + 4, (uint16_t)(len - pkt->l3 - DQI_IPV6_LEN));
    if (pkt->has & DQ_HAS_UDP) dqi_put_be16(p + pkt->l4 + 4, (uint16_t)(len - pkt->l4));
    dqi_pkt whole;
    dqi_parse(p, len, &whole);
    dqi_csum_fill(p, &whole);
}

int dq_template_prepend(const dq_template *t, dq_burst *b, dq_diag *diag) {
    dqi_burst_columns(b);
    int err = check_prepend(t, b, diag);
    if (err != DQ_OK) return err;
    for (uint32_t i = 0; i < b->n; i++) {
        if (dqi_burst_hole(b, 0, i)) continue;
        b->off[0][i] -= t->len;
        b->len[0][i] += t->len;
        uint8_t *p = dqi_bytes(b, 0, i);
        memcpy(p, t->bytes, t->len);
        if (t->checksums) set_lengths(p, b->len[0][i], &t->pkt);
        b->grown |= b->len[0][i] > dqi_off_region(b->session, b->off[0][i])->conf.buf_size;
    }
    b->bytes = dqi_burst_sum(b, 0, b->n);
    return DQ_OK;
}

// Places b's packets of len bytes without gaps where their buffers are adjacent, so that many packets can be
// copied as one piece. Their buffers are longer than they are.
static void pack(dq_burst *b, uint32_t len) {
    const uint32_t *ids = b->bufs[0];
    uint64_t *off = b->off[0];
    b->slices = true;
    for (uint32_t i = 1; i < b->n; i++)
        if (ids[i] == ids[i - 1] + 1) off[i] = off[i - 1] + len;
}

// Copies a frame of one line, with its size known to the compiler. Buffers are whole lines, and the bytes
// after a packet are unused, or written next.
static void write_line(const dq_template *t, dq_burst *b) {
    struct {
        uint8_t bytes[LINE];
    } line;
    memcpy(&line, t->bytes, LINE);
    uint8_t *base = dqi_core_of(b->session)->base;
    for (uint32_t i = 0; i < b->n; i++)
        memcpy(base + b->off[0][i], &line, LINE);
}

// Marks packet i of b as written with `stamp`; true: it was already, and so was every packet before it in its
// run of adjacent buffers (*run: the first of them, *had: true up to packet i - 1).
static bool mark(const dq_burst *b, uint32_t i, const dqi_stamped *s, uint32_t *run, bool *had) {
    uint32_t id = b->bufs[0][i];
    if (!s->packs || i == 0 || id != b->bufs[0][i - 1] + 1) {
        *run = id;
        *had = true;
    }
    uint64_t now = (uint64_t)s->stamp << 32 | *run, *place = &s->places[id - s->first];
    *had = *had && *place == now;
    *place = now;
    return *had;
}

void dqi_template_write(dq_template *t, dq_burst *b, const dqi_stamped *s) {
    uint32_t run = 0;
    bool had = false;
    if (s && s->packs) pack(b, t->len);
    for (uint32_t i = 0; i < b->n; i++)
        b->len[0][i] = t->len;
    b->bytes = (uint64_t)b->n * t->len;
    if (t->len <= LINE && t->n_vary == 0) {
        write_line(t, b);
        return;
    }
    if (t->n_vary > 0) dqi_lock(&t->lock);
    for (uint32_t i = 0; i < b->n; i++) {
        uint8_t *p = dqi_bytes(b, 0, i);
        if (!s || !mark(b, i, s, &run, &had)) memcpy(p, t->bytes, t->len);
        for (uint32_t k = 0; k < t->n_vary; k++)
            put_next(t, k, p);
        if (t->checksums && t->n_vary > 0 && !b->sums.has) dqi_csum_fill(p, &t->pkt);
    }
    if (t->n_vary > 0) dqi_unlock(&t->lock);
}
