// packed_model.h: lists of moves of packed elements from a seed, and what they have to write, by the host's
// loops.
#ifndef PACKED_MODEL_H
#define PACKED_MODEL_H

#include "kernels/unpack.h"
#include "kernels_model.h"

#define PACKED_MOVES 40        // of a list, at most
#define PACKED_SRC   (1 << 14) // bytes of source, random

static const int packed_outputs[] = {K_TYPE_fp16,  K_TYPE_bf16, K_TYPE_fp32, K_TYPE_fp64,
                                     K_TYPE_int32, K_TYPE_int8, K_TYPE_int16};
enum { PACKED_OUTPUTS = sizeof packed_outputs / sizeof *packed_outputs };

// Makes moves of about len bytes, of whole units, as offsets into src and dst. Writes what they give to want,
// which has `room` bytes and is poisoned first.
static inline uint32_t packed_list(const dqk_unpack *u, uint32_t len, uint64_t seed, const uint8_t *src,
                                   uint8_t *want, uint32_t room, dqk_move *m) {
    uint64_t state = seed, at = 0;
    uint32_t bytes, elements, n = 0;
    dq_sample_unit(&u->type, &bytes, &elements);
    memset(want, MODEL_POISON, room);
    for (; n < PACKED_MOVES; n++) {
        uint32_t r = model_random(&state), units = len / bytes + r % 3, take = units * bytes, made = take;
        uint64_t from = model_random(&state) % 4096;
        at += r % 4 ? (8 - at % 8) % 8 : r / 4 % 16;
        m[n] = (dqk_move){from, at, take, r % 16 == 1 ? DQK_COPY : r % 16 == 2 ? DQK_FILL : DQK_CONVERT};
        if (m[n].what == DQK_CONVERT) made = units * elements * (k_bits_of((uint32_t)u->output) / 8);
        if (at + made + 32 > room) break;
        if (m[n].what == DQK_CONVERT)
            dqk_unpack_run(u, want + at, src + from, (uint64_t)units * elements);
        else if (m[n].what == DQK_COPY)
            memcpy(want + at, src + from, take);
        else
            memset(want + at, (int)(from & 255), take);
        at += made + (r & 256 ? 0 : 16);
    }
    return n;
}

#endif
