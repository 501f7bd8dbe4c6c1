// cpu_target.h: compiles the functions between DQI_TARGET(features) and DQI_TARGET_END for these processor
// features, with gcc and clang; callers check at run time that the processor has them.
#ifndef DQI_CPU_TARGET_H
#define DQI_CPU_TARGET_H

#define DQI_PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define DQI_AVX512 "avx512f,avx512bw,avx512vl,avx512dq"
#define DQI_TARGET(features)                                                                                 \
    DQI_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define DQI_TARGET_END _Pragma("clang attribute pop")
#else
#define DQI_AVX512           "avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512"
#define DQI_TARGET(features) _Pragma("GCC push_options") DQI_PRAGMA(GCC target(features))
#define DQI_TARGET_END       _Pragma("GCC pop_options")
#endif

// Precedes a loop with independent iterations: unrolls it by four.
#ifdef __clang__
#define DQI_UNROLL _Pragma("unroll 4")
#else
#define DQI_UNROLL _Pragma("GCC unroll 4")
#endif

#endif
