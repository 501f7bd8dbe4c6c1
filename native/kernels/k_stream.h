// k_stream.h: one warp's part of a move: unchanged bytes, converted elements, or a fill. Packed elements are
// in k_packed.h.
//
// The middle of a move is processed in units: as many elements as fill 16 bytes of the larger of input and
// output. Units are written aligned to their size, adjacent lanes side by side; elements before the first and
// after the last are processed by one lane each. The input is read in aligned words of up to 16 bytes, the
// i-th by lane i, starting at a multiple of 128 bytes, so that no line is requested twice; a lane combines
// its own word with the one before, obtained from the preceding lane.
#ifndef K_STREAM_H
#define K_STREAM_H

#include "kernels/k_convert.h"
#include "kernels/k_packed.h"

// A conversion as constants, so that dependent branches are resolved at compile time.
typedef struct k_types {
    uint32_t from, to;
    uint32_t swapped; // the input has the byte order that is not the host's
} k_types;

// ---- elements ---------------------------------------------------------------------------------------------

K_FN int32_t k_value(uint32_t type, uint32_t bits) {
    return type == K_TYPE_int4    ? k_from_int4(bits)
           : type == K_TYPE_int8  ? k_from_int8(bits)
           : type == K_TYPE_int16 ? k_from_int16(bits)
                                  : k_from_int32(bits);
}

// Processes the i-th element of a move, byte by byte.
K_FN void k_element(const dqk_move *m, const k_types t, uint64_t i) {
    const uint32_t in = k_bits_of(t.from) / 8, out = k_bits_of(t.to) / 8;
    uint32_t bits = 0;
    if (t.from == K_TYPE_int4) bits = k_load_byte(m->src + i / 2) >> (i % 2 ? 0 : 4);
    K_UNROLL
    for (uint32_t b = 0; b < in; b++)
        bits |= k_load_byte(m->src + i * in + b) << 8 * (t.swapped ? in - 1 - b : b);
    uint64_t v = t.from == K_TYPE_bytes ? bits : k_bits(t.to, k_value(t.from, bits));
    K_UNROLL
    for (uint32_t b = 0; b < out; b++)
        k_store_byte(m->dst + i * out + b, (uint32_t)(v >> 8 * b) & 255);
}

// ---- units ------------------------------------------------------------------------------------------------

// Returns the e-th element of a unit.
K_FN int32_t k_unit_value(const k_word *in, uint32_t type, uint32_t e) {
    const uint32_t bits = k_bits_of(type);
    uint32_t w = in->w[e * bits / 32];
    return k_value(type, type == K_TYPE_int4 ? w >> (e % 8 / 2 * 8 + (e % 2 ? 0 : 4)) : w >> e * bits % 32);
}

K_FN k_word k_unit(k_word in, const k_types t, uint32_t elements) {
    k_word out = {{0, 0, 0, 0}};
    if (t.from == K_TYPE_bytes) return in;
    if (t.from == K_TYPE_int16 || t.from == K_TYPE_int32) {
        K_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            in.w[i] = k_permute(in.w[i], 0, !t.swapped ? 0x3210 : t.from == K_TYPE_int16 ? 0x2301 : 0x0123);
    }
    K_UNROLL
    for (uint32_t e = 0; e < elements; e++) {
        int32_t v = k_unit_value(&in, t.from, e);
        if (t.to == K_TYPE_fp16 || t.to == K_TYPE_bf16) {
            if (e % 2 == 1) continue;
            int32_t next = k_unit_value(&in, t.from, e + 1);
            out.w[e / 2] = t.to == K_TYPE_fp16 ? k_two_fp16(v, next) : k_two_bf16(v, next);
        } else if (t.to == K_TYPE_fp64) {
            uint64_t d = k_to_fp64(v);
            out.w[2 * e] = (uint32_t)d;
            out.w[2 * e + 1] = (uint32_t)(d >> 32);
        } else if (t.to == K_TYPE_int8) {
            out.w[e / 4] |= (uint32_t)k_to_int8(v) << e % 4 * 8;
        } else {
            out.w[e] = t.to == K_TYPE_fp32 ? k_to_fp32(v) : k_to_int32(v);
        }
    }
    return out;
}

// Selects by value: C++ would select between addresses, and registers have none.
K_FN uint32_t k_either(uint32_t which, uint32_t yes, uint32_t no) { return which ? yes : no; }

// Returns the `bytes` (4, 8 or 16) that begin `shift` bytes, fewer than `bytes`, after the start of low.
K_FN k_word k_realign(k_word low, k_word high, uint32_t shift, uint32_t bytes) {
    const uint32_t pick = 0x3210 + 0x1111 * (shift & 3), half = shift & 4, whole = shift & 8;
    if (bytes == 4) return (k_word){{k_permute(low.w[0], high.w[0], pick), 0, 0, 0}};
    if (bytes == 8) {
        uint32_t a = k_either(half, low.w[1], low.w[0]), b = k_either(half, high.w[0], low.w[1]),
                 c = k_either(half, high.w[1], high.w[0]);
        return (k_word){{k_permute(a, b, pick), k_permute(b, c, pick), 0, 0}};
    }
    uint32_t a = k_either(whole, low.w[2], low.w[0]), b = k_either(whole, low.w[3], low.w[1]),
             c = k_either(whole, high.w[0], low.w[2]), d = k_either(whole, high.w[1], low.w[3]),
             e = k_either(whole, high.w[2], high.w[0]), f = k_either(whole, high.w[3], high.w[1]);
    a = k_either(half, b, a), b = k_either(half, c, b), c = k_either(half, d, c);
    d = k_either(half, e, d), e = k_either(half, f, e);
    return (k_word){
        {k_permute(a, b, pick), k_permute(b, c, pick), k_permute(c, d, pick), k_permute(d, e, pick)}};
}

// ---- a move -----------------------------------------------------------------------------------------------

// The units of a move; `far`: src is host memory.
typedef struct k_middle {
    uint64_t src, dst;
    uint32_t units;
    bool far;
} k_middle;

// Processes one part of `parts`. A step is one word per lane, of which each has `deep` in flight. The first
// step begins before the first word, so that the warp writes whole lines of 128 bytes; or, from host memory,
// reads them, where each line read twice costs more.
K_FN void k_units(const k_middle m, const k_types t, uint32_t part, uint32_t parts) {
    enum { DEEPEST = 8 };
    const uint32_t in_bits = k_bits_of(t.from), out_bits = k_bits_of(t.to);
    const uint32_t in = in_bits >= out_bits ? 16 : 16 * in_bits / out_bits,
                   out = in * out_bits / in_bits; // bytes per unit
    const uint32_t bytes = in < 4 ? 4 : in, several = bytes / in,
                   made = several * out; // output bytes per word
    const uint32_t deep = bytes == 16 ? 3 : 8;
    const uint32_t shift = (uint32_t)m.src & (bytes - 1);
    const uint64_t base = m.src - shift;
    const uint32_t lead = m.far ? (uint32_t)(base / bytes + 1) % 8 : (uint32_t)(m.dst / made) % (128 / made);
    const uint32_t steps = (lead + (m.units + several - 1) / several + 31) / 32,
                   each = (steps + parts - 1) / parts;
    const uint32_t begin = part * each, end = begin + each < steps ? begin + each : steps;
    if (begin >= end) return;
    const uint32_t first = 32 * begin - lead, last = 32 * end - lead; // word indices; first may be below 0
    uint32_t words = (shift + m.units * in + bytes - 1) / bytes, units = m.units;
    words = words < last + 1 ? words : last + 1; // unit i needs words i and i + 1
    units = units < last * several ? units : last * several;
    k_word got[DEEPEST][K_LANES], before[K_LANES], back[K_LANES], line[K_LANES];
    uint32_t word[K_LANES], unit[K_LANES];
    uint64_t from[K_LANES], to[K_LANES];
    K_EACH(k) {
        word[k] = first + k_lane(k) + 1;
        unit[k] = first * several + k_lane(k);
        from[k] = base + (uint64_t)(int32_t)word[k] * bytes;
        to[k] = m.dst + (uint64_t)(int32_t)unit[k] * out;
        before[k] = k_load_if(k_lane(k) == 0 && first < words, from[k] - bytes, bytes);
    }
    K_UNROLL
    for (uint32_t u = 0; u < DEEPEST; u++)
        K_EACH(k)
    got[u][k] = k_load_if(u < deep && word[k] + 32 * u < words, from[k] + 32 * u * bytes, bytes);
    for (uint32_t step = begin; step < end; step += deep) {
        K_UNROLL
        for (uint32_t u = 0; u < DEEPEST; u++) {
            if (u >= deep || step + u >= end) continue;
            K_EACH(k) back[k] = k_shuffle(got[u], k, (k_lane(k) + 31) % 32, bytes);
            K_EACH(k) {
                k_word low = back[k];
                if (k_lane(k) == 0) low = before[k];
                line[k] = k_realign(low, got[u][k], shift, bytes);
                before[k] = back[k];
                got[u][k] =
                    k_load_if(word[k] + 32 * (u + deep) < words, from[k] + 32 * (u + deep) * bytes, bytes);
            }
            K_UNROLL
            for (uint32_t r = 0; r < several; r++)
                K_EACH(k) {
                    uint32_t at = r * 32 + k_lane(k), ahead = u * several * 32 + r * 32;
                    k_word v = several == 1 ? line[k] : k_shuffle(line, k, at / several, 4);
                    if (several > 1) v.w[0] >>= at % several * 8 * in;
                    if ((several == 1 ? word[k] - 1 : unit[k]) + ahead < units)
                        k_store(to[k] + ahead * out, k_unit(v, t, in * 8 / in_bits), out);
                }
        }
        K_EACH(k) {
            word[k] += 32 * deep;
            unit[k] += 32 * deep * several;
            from[k] += 32 * deep * bytes;
            to[k] += 32 * deep * several * out;
        }
    }
}

K_FN void k_copy(dqk_move m, const k_types t, uint32_t part, uint32_t parts, bool far) {
    const uint32_t in_bits = k_bits_of(t.from), out_bits = k_bits_of(t.to), size = out_bits / 8;
    const uint32_t unit = out_bits >= in_bits ? 16 : 16 * out_bits / in_bits, each = unit / size;
    uint32_t n = in_bits == 4 ? m.len * 2 : m.len / (in_bits / 8);
    uint32_t over = (uint32_t)m.dst & (unit - 1), head = over ? (unit - over) / size : 0;
    if ((over & (size - 1)) != 0 || (in_bits == 4 && head % 2 == 1)) { // units would be unaligned
        K_EACH(k)
        for (uint32_t i = part * 32 + k_lane(k); i < n; i += parts * 32)
            k_element(&m, t, i);
        return;
    }
    head = head < n ? head : n;
    uint32_t units = (n - head) / each, rest = n - head - units * each;
    if (part == 0 && head + rest > 0) {
        K_EACH(k) {
            uint32_t i = k_lane(k) < 16 ? k_lane(k) : n - rest + k_lane(k) - 16;
            if (k_lane(k) < 16 ? i < head : i < n) k_element(&m, t, i);
        }
    }
    k_middle middle = {m.src + (uint64_t)head * in_bits / 8, m.dst + (uint64_t)head * size, units, far};
    if (units > 0) k_units(middle, t, part, parts);
}

// Copies bytes in kernels of conversions, which rarely do so: fast if all is a multiple of 8.
K_FN void k_plain(dqk_move m, uint32_t part, uint32_t parts) {
    const bool round = ((m.src | m.dst | m.len) & 7) == 0;
    K_EACH(k)
    for (uint32_t i = part * 32 + k_lane(k); i < (round ? m.len / 8 : m.len); i += parts * 32) {
        if (round)
            k_store(m.dst + (uint64_t)i * 8, k_load(m.src + (uint64_t)i * 8, 8), 8);
        else
            k_store_byte(m.dst + i, k_load_byte(m.src + i));
    }
}

K_FN void k_fill(dqk_move m, uint32_t part, uint32_t parts) {
    uint32_t v = ((uint32_t)m.src & 255) * 0x01010101, over = (uint32_t)m.dst & 15;
    uint32_t head = over ? 16 - over : 0;
    head = head < m.len ? head : m.len;
    uint32_t words = (m.len - head) / 16, rest = m.len - head - words * 16;
    if (part == 0 && head + rest > 0) {
        K_EACH(k) {
            uint32_t i = k_lane(k) < 16 ? k_lane(k) : m.len - rest + k_lane(k) - 16;
            if (k_lane(k) < 16 ? i < head : i < m.len) k_store_byte(m.dst + i, v & 255);
        }
    }
    K_EACH(k)
    for (uint32_t i = part * 32 + k_lane(k); i < words; i += parts * 32)
        k_store(m.dst + head + (uint64_t)i * 16, (k_word){{v, v, v, v}}, 16);
}

// ---- a list -----------------------------------------------------------------------------------------------

// Reads a move: lane i has its i-th 4 bytes, which takes one register.
K_FN void k_fetch(const dqk_list *l, uint32_t i, uint32_t *next) {
    K_EACH(k) {
        uint64_t at = l->moves + (uint64_t)i * sizeof(dqk_move) + k_lane(k) * 4;
        next[k] = i < l->n && k_lane(k) < sizeof(dqk_move) / 4 ? k_load(at, 4).w[0] : 0;
    }
}

K_FN dqk_move k_fetched(const uint32_t *next) {
    uint32_t w[6];
    K_UNROLL
    for (uint32_t i = 0; i < 6; i++)
        w[i] = k_shuffle_one(next, 0, i);
    return (dqk_move){(uint64_t)w[1] << 32 | w[0], (uint64_t)w[3] << 32 | w[2], w[4], w[5]};
}

// Executes one warp's share of a list. The next move is read while one is executed.
K_FN void k_list(const dqk_list *l, const k_types t, uint32_t warp, uint32_t warps) {
    const uint32_t parts = l->parts, hop = warps / parts, rest = warps % parts;
    uint32_t i = warp / parts, part = warp % parts, next[K_LANES];
    k_fetch(l, i, next);
    while (i < l->n) {
        const dqk_move m = k_fetched(next);
        const uint32_t now = part;
        part += rest;
        i += hop + (part >= parts);
        part -= part >= parts ? parts : 0;
        k_fetch(l, i, next);
        if (m.what == DQK_FILL)
            k_fill(m, now, parts);
        else if (t.from == K_TYPE_packed && m.what == DQK_CONVERT)
            k_packed(m, &l->packing, t.to, now, parts);
        else if (t.from == K_TYPE_bytes || (t.from != K_TYPE_packed && m.what == DQK_CONVERT))
            k_copy(m, t, now, parts, l->far);
        else
            k_plain(m, now, parts);
    }
}

#endif
