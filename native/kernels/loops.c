// loops.c: every conversion of k_convert.h as a loop for each instruction set, and their selection. The
// compiler vectorizes the plain loops: all levels have the same source.
#include "core/cpu_target.h"
#include "kernels/k_convert.h"
#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// ---- loops ------------------------------------------------------------------------------------------------

#define LOOP(from, to, level)                                                                                \
    static void from##_##to##_##level(uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n) {      \
        for (uint64_t i = 0; i < n; i++) {                                                                   \
            k_##from in;                                                                                     \
            memcpy(&in, src + i * sizeof in, sizeof in);                                                     \
            k_##to out = k_to_##to(k_from_##from(in));                                                       \
            memcpy(dst + i * sizeof out, &out, sizeof out);                                                  \
        }                                                                                                    \
    }
// One iteration per byte, that is two elements.
#define HALVES_LOOP(from, to, level)                                                                         \
    static void from##_##to##_##level(uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n) {      \
        for (uint64_t i = 0; i < n / 2; i++) {                                                               \
            k_##to first = k_to_##to(k_from_##from(src[i] >> 4)), second = k_to_##to(k_from_##from(src[i])); \
            memcpy(dst + 2 * i * sizeof first, &first, sizeof first);                                        \
            memcpy(dst + (2 * i + 1) * sizeof second, &second, sizeof second);                               \
        }                                                                                                    \
    }
#define LOOPS(level) K_OUTPUTS(HALVES_LOOP, int4, level) K_WHOLE_BYTES(LOOP, level)

LOOPS(plain)

#ifdef __x86_64__
DQI_TARGET("avx2")
LOOPS(avx2)
DQI_TARGET_END
DQI_TARGET(DQI_AVX512)
LOOPS(avx512)
DQI_TARGET_END
#endif

// ---- selection --------------------------------------------------------------------------------------------

#define NAME(from, to, level) from##_##to##_##level,
#define TABLE(level)                                                                                         \
    { K_OUTPUTS(NAME, int4, level) K_WHOLE_BYTES(NAME, level) }

static dqk_convert_fn *const levels[][DQK_CONVERSIONS] = {
    TABLE(plain),
#ifdef __x86_64__
    TABLE(avx2),
    TABLE(avx512),
#endif
};

static uint32_t n_levels(void) {
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2")) return 1;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return wide ? 3 : 2;
#else
    return 1;
#endif
}

dqk_convert_fn *dqk_loop_at(uint32_t level, uint32_t conversion) {
    bool there = level < n_levels() && conversion >= 1 && conversion <= DQK_CONVERSIONS;
    return there ? levels[level][conversion - 1] : NULL;
}

dqk_convert_fn *dqk_loop(uint32_t conversion) { return dqk_loop_at(n_levels() - 1, conversion); }
