// unpack.c: the constants of a packing, its elements byte by byte, and eight at a time.
#include "kernels/unpack.h"
#include "core/cpu_target.h"
#include "kernels/k_packed.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { TILE = 960 }; // elements per pass, whole periods of every type

// ---- places -----------------------------------------------------------------------------------------------

// Where an element is: `n` bytes from the highest one, `address` of which is the k-th, and the bits before
// its first one.
typedef struct place {
    uint64_t first;
    uint32_t n, left;
    uint32_t word; // bytes of a word that is reversed; 1: none
    bool down;     // addresses descend from first
} place;

static uint64_t address(const place *p, uint32_t k) {
    uint64_t at = p->down ? p->first - k : p->first + k;
    return at / p->word * p->word + (p->word - 1 - at % p->word);
}

// Returns the place of element i. With gev it is its highest byte.
static place place_of(const dq_sample *t, uint64_t i) {
    const uint32_t bits = t->bits;
    uint64_t start = i * bits;
    place p = {.word = 1};
    if (t->complex == 2) start = (i ^ 1) * bits;
    switch (t->order) {
    case DQ_ORDER_GEV:
        return (place){.first = i / 2 * 3 + i % 2 * 2, .n = 1, .word = 1};
    case DQ_ORDER_LSB:
        p.down = true;
        break;
    case DQ_ORDER_PAD32: {
        uint64_t each = 32 / bits, e = t->complex == 2 ? i ^ 1 : i;
        start = e / each * 32 + e % each * bits;
        break;
    }
    case DQ_ORDER_LE:
        p.word = t->container / 8u; // fallthrough
    case DQ_ORDER_BE:
        start = start / bits * t->container + (t->high ? 0u : (uint32_t)t->container - bits);
        break;
    case DQ_ORDER_W16LE:
    case DQ_ORDER_W32LE:
    case DQ_ORDER_W64LE:
        p.word = 2u << (t->order - DQ_ORDER_W16LE);
        break;
    default:
        break;
    }
    uint64_t first = start / 8, last = (start + bits - 1) / 8;
    p.n = (uint32_t)(last - first + 1);
    p.first = p.down ? last : first;
    p.left = p.down ? (uint32_t)((last + 1) * 8 - (start + bits)) : (uint32_t)(start % 8);
    return p;
}

// Returns the code of element i.
static uint32_t code_of(const dq_sample *t, const uint8_t *src, uint64_t i) {
    const place p = place_of(t, i);
    uint64_t v = 0;
    if (t->order == DQ_ORDER_GEV) {
        uint32_t low = t->bits - 8u, both = src[i / 2 * 3 + 1];
        return (uint32_t)src[p.first] << low | (both >> i % 2 * 4 & ((1u << low) - 1));
    }
    for (uint32_t k = 0; k < p.n; k++)
        v = v << 8 | src[address(&p, k)];
    return (uint32_t)(v >> (p.n * 8 - p.left - t->bits) & ((UINT64_C(1) << t->bits) - 1));
}

// ---- constants --------------------------------------------------------------------------------------------

// Fills in the constants of one element of a step; returns false if it is in no 4 bytes of its window.
static bool lane(const dqk_unpack *u, dqk_step *s, uint64_t i, uint32_t k) {
    const place p = place_of(&u->type, i);
    const uint32_t half = k / 4;
    uint8_t *pick = s->pick + 4 * k;
    if (p.n > 4) return false;
    for (uint32_t b = 0; b < p.n; b++) {
        uint64_t at = address(&p, b) - s->at[half];
        if (at > 15) return false;
        pick[3 - b] = (uint8_t)at;
    }
    s->left[k] = p.left;
    if (u->type.order == DQ_ORDER_GEV) {
        pick[2] = (uint8_t)(i / 2 * 3 + 1 - s->at[half]);
        s->low[k] = 16u - u->type.bits - i % 2 * 4;
    }
    return true;
}

// Returns the lowest address of four elements.
static uint32_t lowest(const dq_sample *t, uint64_t first) {
    uint64_t least = UINT64_MAX;
    for (uint64_t i = first; i < first + 4; i++) {
        const place p = place_of(t, i);
        for (uint32_t b = 0; b < p.n; b++)
            if (address(&p, b) < least) least = address(&p, b);
        if (t->order == DQ_ORDER_GEV && i / 2 * 3 < least) least = i / 2 * 3;
    }
    return (uint32_t)least;
}

static bool plan(dqk_unpack *u) {
    uint32_t bytes, elements, steps;
    dq_sample_unit(&u->type, &bytes, &elements);
    for (steps = 1; steps * DQK_LANES % elements != 0;)
        if (++steps > DQK_STEPS) return false;
    u->period = steps * DQK_LANES;
    u->period_bytes = u->period / elements * bytes;
    for (uint32_t s = 0; s < steps; s++) {
        dqk_step *step = &u->step[s];
        memset(step->pick, 0x80, sizeof step->pick);
        for (uint32_t half = 0; half < 2; half++) {
            step->at[half] = lowest(&u->type, s * DQK_LANES + half * 4);
            if (step->at[half] + 16 > u->window) u->window = step->at[half] + 16;
        }
        for (uint32_t k = 0; k < DQK_LANES; k++)
            if (!lane(u, step, s * DQK_LANES + k, k)) return false;
    }
    u->steps = steps;
    return true;
}

bool dqk_unpack_init(dqk_unpack *u, const dq_sample *type, int output) {
    const bool group = type->kind == DQ_SAMPLE_BLOCK,
               whole = output == K_TYPE_int32 || output == K_TYPE_int16 || output == K_TYPE_int8;
    const bool wide = type->kind == DQ_SAMPLE_UNSIGNED && type->bits == 32;
    if (wide && whole) return false;
    if (!whole && (output < K_TYPE_fp16 || output > K_TYPE_fp64)) return false;
    *u = (dqk_unpack){.type = *type, .output = output, .scale = 1, .scaled = wide};
    if (dqk_is_float(type)) return true;
    if (group) {
        u->type =
            (dq_sample){.kind = DQ_SAMPLE_SIGNED, .bits = type->bits, .order = DQ_ORDER_MSB, .complex = 1};
        if (type->bits == 16) u->type.order = DQ_ORDER_BE, u->type.container = 16;
    }
    u->right = 32u - type->bits;
    u->flip = type->kind == DQ_SAMPLE_OFFSET ? UINT32_C(1) << 31 : 0;
    if (type->order == DQ_ORDER_GEV) u->low_mask = type->bits == 10 ? 0x00c00000 : 0x00f00000;
    if (!plan(u)) u->steps = 0;
    u->type.kind = type->kind;
    if (output != K_TYPE_int32 && output != K_TYPE_int16)
        u->finish = dqk_loop(dqk_conversion(K_TYPE_int32, output, false));
    return true;
}

void dqk_unpack_scale(dqk_unpack *u, double scale, double offset) {
    u->scale = scale;
    u->offset = offset;
    u->scaled = scale != 1 || offset != 0 || (u->type.kind == DQ_SAMPLE_UNSIGNED && u->type.bits == 32);
}

void dqk_unpack_levels(dqk_unpack *u, const double *levels) {
    u->levelled = true;
    for (uint32_t c = 0; c < 1u << u->type.bits; c++)
        u->levels[c] = (float)levels[c];
    u->type.kind = DQ_SAMPLE_UNSIGNED; // levels are by code
    u->flip = 0;
}

dqk_packing dqk_unpack_packing(const dqk_unpack *u) {
    const dq_sample *t = &u->type;
    const bool whole = t->order == DQ_ORDER_BE || t->order == DQ_ORDER_LE;
    dqk_packing p = {.bits = t->bits,
                     .stride = whole ? t->container : t->bits,
                     .flip = u->flip,
                     .low_first = t->order == DQ_ORDER_LSB || t->order == DQ_ORDER_LE,
                     .groups = t->kind == DQ_SAMPLE_BLOCK,
                     .gev = t->order == DQ_ORDER_GEV,
                     .swapped = t->complex == 2,
                     .positive = t->kind == DQ_SAMPLE_UNSIGNED,
                     .scaled = u->scaled,
                     .scale = u->scale,
                     .offset = u->offset};
    // The value is in the container's low end: the last bits with BE, the first ones where the lowest is
    // first.
    if (whole && (t->order == DQ_ORDER_BE) != t->high) p.skip = p.stride - p.bits;
    if (t->order >= DQ_ORDER_W16LE && t->order <= DQ_ORDER_W64LE)
        p.mirror = (uint8_t)((2u << (t->order - DQ_ORDER_W16LE)) - 1);
    if (t->order == DQ_ORDER_PAD32) p.padded = 32 / p.bits;
    dq_sample_unit(t, &p.unit_bytes, &p.unit_elements);
    return p;
}

// ---- integers ---------------------------------------------------------------------------------------------

static int32_t integer(const dqk_unpack *u, uint32_t code) {
    uint32_t top = (code << u->right) ^ u->flip;
    return u->type.kind == DQ_SAMPLE_UNSIGNED ? (int32_t)(top >> u->right) : (int32_t)top >> u->right;
}

static float scaled(const dqk_unpack *u, int32_t v) {
    float f = u->type.kind == DQ_SAMPLE_UNSIGNED ? (float)(uint32_t)v : (float)v;
    return (f + (float)u->offset) * (float)u->scale;
}

// Converts elements first to n of src, byte by byte: to floats, or to int32.
static void singly(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t first, uint64_t n,
                   bool floats) {
    for (uint64_t i = first; i < n; i++) {
        int32_t v = integer(u, code_of(&u->type, src, i));
        float f = scaled(u, v);
        memcpy(dst + 4 * i, floats ? (void *)&f : (void *)&v, 4);
    }
}

#ifdef __x86_64__
DQI_TARGET("avx2")
// Converts up to n elements by whole periods that read at most `bytes` of src; returns how many. With
// `one`, a period is one step.
static inline __attribute__((always_inline)) uint64_t lanes(const dqk_unpack *u, uint8_t *dst,
                                                            const uint8_t *src, uint64_t n, uint64_t bytes,
                                                            const bool one, const bool floats,
                                                            const bool scales) {
    const uint32_t period = u->period, period_bytes = u->period_bytes, window = u->window;
    const uint32_t steps = one ? 1 : u->steps, low_mask = u->low_mask;
    const __m128i right = _mm_cvtsi32_si128((int)u->right);
    const __m256i flip = _mm256_set1_epi32((int)u->flip), low = _mm256_set1_epi32((int)low_mask),
                  high = _mm256_set1_epi32((int)0xff000000);
    const __m256 scale = _mm256_set1_ps((float)u->scale), offset = _mm256_set1_ps((float)u->offset);
    const bool positive = u->type.kind == DQ_SAMPLE_UNSIGNED;
    const dqk_step first = u->step[0];
    uint64_t done = 0;
    for (uint64_t at = 0; done + period <= n && at + window <= bytes; done += period, at += period_bytes) {
        for (uint32_t k = 0; k < steps; k++) {
            const dqk_step *s = one ? &first : &u->step[k];
            __m256i v = _mm256_loadu2_m128i((const __m128i *)(src + at + s->at[1]),
                                            (const __m128i *)(src + at + s->at[0]));
            v = _mm256_shuffle_epi8(v, _mm256_loadu_si256((const __m256i *)s->pick));
            if (low_mask)
                v = _mm256_or_si256(
                    _mm256_and_si256(v, high),
                    _mm256_and_si256(_mm256_sllv_epi32(v, _mm256_loadu_si256((const __m256i *)s->low)), low));
            else
                v = _mm256_sllv_epi32(v, _mm256_loadu_si256((const __m256i *)s->left));
            v = _mm256_xor_si256(v, flip);
            v = positive ? _mm256_srl_epi32(v, right) : _mm256_sra_epi32(v, right);
            if (floats) {
                __m256 f = _mm256_cvtepi32_ps(v);
                if (scales) f = _mm256_mul_ps(_mm256_add_ps(f, offset), scale);
                v = _mm256_castps_si256(f);
            }
            _mm256_storeu_si256((__m256i *)(dst + 4 * (done + 8 * k)), v);
        }
    }
    return done;
}

static uint64_t lanes_avx2(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t n, uint64_t bytes,
                           bool floats) {
    const bool one = u->steps == 1;
    if (u->steps == 0 || (floats && u->right == 0 && u->type.kind == DQ_SAMPLE_UNSIGNED)) return 0;
    if (!floats)
        return one ? lanes(u, dst, src, n, bytes, true, false, false)
                   : lanes(u, dst, src, n, bytes, false, false, false);
    if (!u->scaled)
        return one ? lanes(u, dst, src, n, bytes, true, true, false)
                   : lanes(u, dst, src, n, bytes, false, true, false);
    return one ? lanes(u, dst, src, n, bytes, true, true, true)
               : lanes(u, dst, src, n, bytes, false, true, true);
}
DQI_TARGET_END

static bool has_lanes(void) { return __builtin_cpu_supports("avx2"); }
#else
static uint64_t lanes_avx2(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t n, uint64_t bytes,
                           bool floats) {
    (void)u, (void)dst, (void)src, (void)n, (void)bytes, (void)floats;
    return 0;
}

static bool has_lanes(void) { return false; }
#endif

// Converts n elements of src, which has `bytes`, to int32 or to scaled floats.
static void words(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t n, uint64_t bytes,
                  uint32_t level, bool floats) {
    uint64_t done = level == 0 ? 0 : lanes_avx2(u, dst, src, n, bytes, floats);
    singly(u, dst, src, done, n, floats);
}

// ---- outputs ----------------------------------------------------------------------------------------------

static void put(int output, uint8_t *dst, uint64_t i, float f) {
    const uint32_t bits = k_float_as((uint32_t)output, f), size = k_bits_of((uint32_t)output) / 8;
    memcpy(dst + size * i, &bits, size);
}

// Converts a tile of integers to doubles, whose scale is not rounded to fp32.
static void doubles(const dqk_unpack *u, uint8_t *dst, const int32_t *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        double d = u->type.kind == DQ_SAMPLE_UNSIGNED ? (double)(uint32_t)v[i] : (double)v[i];
        if (u->levelled) d = u->levels[v[i] & (DQK_CODES - 1)];
        d = (d + u->offset) * u->scale;
        memcpy(dst + 8 * i, &d, 8);
    }
}

static void halves(uint8_t *dst, const int32_t *v, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        int16_t h = (int16_t)(v[i] < -32768 ? -32768 : v[i] > 32767 ? 32767 : v[i]);
        memcpy(dst + 2 * i, &h, 2);
    }
}

// Converts up to TILE integers, which have no scale yet.
static void finish(const dqk_unpack *u, uint8_t *dst, const int32_t *v, uint64_t n) {
    if (!u->scaled && !u->levelled) {
        if (u->finish)
            u->finish(dst, (const uint8_t *)v, n);
        else if (u->output == K_TYPE_int16)
            halves(dst, v, n);
        else
            memcpy(dst, v, n * sizeof *v);
    } else if (u->output == K_TYPE_fp64) {
        doubles(u, dst, v, n);
    } else {
        for (uint64_t i = 0; i < n; i++) {
            float f = u->levelled ? (u->levels[v[i] & (DQK_CODES - 1)] + (float)u->offset) * (float)u->scale
                                  : scaled(u, v[i]);
            put(u->output, dst, i, f);
        }
    }
}

// ---- runs -------------------------------------------------------------------------------------------------

// Converts whole groups of mantissas, each behind its exponent.
static void groups(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t n, uint32_t level) {
    const uint32_t bytes = DQ_SAMPLE_GROUP * u->type.bits / 8, out = k_bits_of((uint32_t)u->output) / 8;
    for (uint64_t g = 0; g < n / DQ_SAMPLE_GROUP; g++) {
        const uint8_t *p = src + g * (bytes + 1);
        int32_t v[DQ_SAMPLE_GROUP];
        words(u, (uint8_t *)v, p + 1, DQ_SAMPLE_GROUP, bytes, level, false);
        for (uint32_t i = 0; i < DQ_SAMPLE_GROUP; i++)
            v[i] = (int32_t)((uint32_t)v[i] << (p[0] & 15));
        finish(u, dst + g * DQ_SAMPLE_GROUP * out, v, DQ_SAMPLE_GROUP);
    }
}

static void run(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t n, uint32_t level) {
    const uint32_t out = k_bits_of((uint32_t)u->output) / 8;
    uint32_t unit, elements;
    if (u->type.kind == DQ_SAMPLE_BLOCK) {
        groups(u, dst, src, n, level);
        return;
    }
    if (dqk_is_float(&u->type)) {
        dqk_floats_run(u, dst, src, n);
        return;
    }
    dq_sample_unit(&u->type, &unit, &elements);
    uint64_t bytes = n / elements * unit, tile = TILE / elements * unit;
    if (!u->levelled && (u->output == K_TYPE_fp32 || (u->output == K_TYPE_int32 && !u->scaled))) {
        words(u, dst, src, n, bytes, level, u->output == K_TYPE_fp32);
        return;
    }
    int32_t v[TILE];
    for (uint64_t i = 0; i < n; i += TILE) {
        uint64_t some = n - i < TILE ? n - i : TILE, at = i / TILE * tile;
        words(u, (uint8_t *)v, src + at, some, bytes - (at < bytes ? at : bytes), level, false);
        finish(u, dst + i * out, v, some);
    }
}

bool dqk_unpack_at(uint32_t level, const dqk_unpack *u, uint8_t *restrict dst, const uint8_t *restrict src,
                   uint64_t n) {
    if (level > has_lanes()) return false;
    run(u, dst, src, n, level);
    return true;
}

void dqk_unpack_run(const dqk_unpack *u, uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n) {
    run(u, dst, src, n, has_lanes());
}
