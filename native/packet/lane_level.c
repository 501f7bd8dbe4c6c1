// lane_level.c: instantiates the loops over lanes for each instruction set, and selects one.
//
// The portable level is two lanes wide, which suits every 64-bit processor; x86-64 also has AVX2 if
// supported. AVX-512 was measured and is no faster: most of the time is spent moving packets' words into
// columns.
#include "core/cpu_target.h"
#include "packet/lane_ops.h"
#include "packet/lanes.h"

static uint64_t floor_div(int64_t a, int64_t b) {
    if (b == -1) return 0 - (uint64_t)a; // INT64_MIN / -1 overflows
    int64_t q = a / b;
    return (uint64_t)(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
}

static uint64_t floor_mod(int64_t a, int64_t b) {
    if (b == -1) return 0;
    int64_t r = a % b;
    return (uint64_t)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
}

enum { PLAIN_L4 = 34, PLAIN_IP_CSUM = 24, PLAIN_UDP_CSUM = 40, PLAIN_TCP_CSUM = 50 };

// A number whose bytes, from the highest down, are in memory order; and the shift of byte k of a word.
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define DQI_BYTES(v)      __builtin_bswap64(v)
#define DQI_BYTE_SHIFT(k) (8 * (k))
#define DQI_UNUSED_SHIFT  24
#define DQI_JOIN(x, y, n) ((x) >> (n) | (y) << (64 - (n)))
#else
#define DQI_BYTES(v)      (v)
#define DQI_BYTE_SHIFT(k) (56 - 8 * (k))
#define DQI_UNUSED_SHIFT  0
#define DQI_JOIN(x, y, n) ((x) << (n) | (y) >> (64 - (n)))
#endif

static inline uint64_t little64(uint64_t v) {
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

static inline void store16(uint8_t *p, uint64_t v) {
    uint16_t low = (uint16_t)v;
    memcpy(p, &low, 2);
}

// Bits of bytes 12 to 43 that determine that a frame is plain UDP, and its lengths: ethertype, version and
// header length, total length, fragment, protocol, UDP length.
enum { PLAIN_SHAPE = 12 };
static const uint8_t plain_shape[32] = {[0] = 0xff, 0xff,       0xff, 0, 0xff, 0xff,        0,
                                        0,          [8] = 0x3f, 0xff, 0, 0xff, [26] = 0xff, 0xff};

// The word at an address.
#define DQI_AT(a) dqi_word((const uint8_t *)(uintptr_t)(a))

#define LEVEL       portable
#define LEVEL_TEXT  "portable"
#define WIDTH       2
#define BITS(v)     (uint32_t)((v)[0] >> 63 | ((v)[1] >> 63) << 1)
#define EQUAL(a, b) (VU)((a) == (b))
// SSE2 has no 64-bit comparison: the sign of a difference is replicated instead.
#define SPREAD(a)       (0 - ((a) >> 63))
#define LESS(a, b)      SPREAD((a) - (b))
#define LOW_TIMES(v, k) (((v)&UINT32_MAX) * (uint64_t)(k))
#define WIRE(v)         ((VU){dqi_wire64((v)[0]), dqi_wire64((v)[1])})
#define LITTLE(v)       ((VU){little64((v)[0]), little64((v)[1])})
#define LANE_BITS       ((VU){1, 2})
#define NEXT(a, b)      __builtin_shufflevector(a, b, 1, 2)
#define WORDS(p, at)    ((VU){DQI_AT((p)[0] + (at)), DQI_AT((p)[1] + (at))})
#define GATHER(f)                                                                                            \
    ((f)->w12 = WORDS((f)->p, 12), (f)->w20 = WORDS((f)->p, 20), (f)->w28 = WORDS((f)->p, 28),               \
     (f)->w36 = WORDS((f)->p, 36))
#include "packet/lane_body.h"

#ifdef __x86_64__
#include <immintrin.h>

typedef uint64_t quad __attribute__((vector_size(32), may_alias));
typedef uint64_t row __attribute__((vector_size(32), may_alias, aligned(1)));

DQI_TARGET("avx2,bmi,bmi2")

static inline __m256i wire_avx2(__m256i v) {
    const __m256i order =
        _mm256_setr_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f, 0x0001020304050607, 0x08090a0b0c0d0e0f);
    return _mm256_shuffle_epi8(v, order);
}

#define LEVEL           avx2
#define LEVEL_TEXT      "avx2"
#define WIDTH           4
#define BITS(v)         (uint32_t) _mm256_movemask_pd((__m256d)(v))
#define EQUAL(a, b)     (VU)((a) == (b))
#define SPREAD(a)       (VU)((VS)(a) < 0)
#define LESS(a, b)      (VU)((VS)(a) < (VS)ALL(b))
#define LOW_TIMES(v, k) (VU) _mm256_mul_epu32((__m256i)(v), (__m256i)ALL((uint64_t)(k)))
#define WIRE(v)         (VU) wire_avx2((__m256i)(v))
#define LITTLE(v)       (v)
#define LANE_BITS       ((VU){1, 2, 4, 8})
#define NEXT(a, b)      __builtin_shufflevector(a, b, 3, 4, 5, 6)
#define WORDS(p, at)                                                                                         \
    ((VU){DQI_AT((p)[0] + (at)), DQI_AT((p)[1] + (at)), DQI_AT((p)[2] + (at)), DQI_AT((p)[3] + (at))})
// Transposes four rows of four words to columns.
#define ROW(f, j)      (*(const row *)(uintptr_t)((f)->p[j] + 12))
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define GATHER(f)                                                                                            \
    do {                                                                                                     \
        quad even01 = MIX(ROW(f, 0), ROW(f, 1), 0, 4, 2, 6), odd01 = MIX(ROW(f, 0), ROW(f, 1), 1, 5, 3, 7);  \
        quad even23 = MIX(ROW(f, 2), ROW(f, 3), 0, 4, 2, 6), odd23 = MIX(ROW(f, 2), ROW(f, 3), 1, 5, 3, 7);  \
        (f)->w12 = (VU)MIX(even01, even23, 0, 1, 4, 5);                                                      \
        (f)->w20 = (VU)MIX(odd01, odd23, 0, 1, 4, 5);                                                        \
        (f)->w28 = (VU)MIX(even01, even23, 2, 3, 6, 7);                                                      \
        (f)->w36 = (VU)MIX(odd01, odd23, 2, 3, 6, 7);                                                        \
    } while (0)
#include "packet/lane_body.h"
DQI_TARGET_END

static uint32_t n_levels(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? 2 : 1;
}

static const dqi_level *const levels[] = {&level_portable, &level_avx2};
#else
static uint32_t n_levels(void) { return 1; }

static const dqi_level *const levels[] = {&level_portable};
#endif

const dqi_level *dqi_level_at(uint32_t i) { return i < n_levels() ? levels[i] : NULL; }

const dqi_level *dqi_level_best(void) { return levels[n_levels() - 1]; }
