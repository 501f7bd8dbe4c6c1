// fake_list.c: lists of moves, as the shipped kernels take them.
#include "fake.h"

#include <stdlib.h>

bool fake_translate(const dqk_list *in, dqk_list *out) {
    const dqk_move *moves = fake_reach(in->moves, in->n * sizeof *moves);
    *out = *in;
    dqk_move *m = malloc(in->n * sizeof *m + 1);
    out->moves = (uintptr_t)m;
    bool ok = moves != NULL;
    for (uint32_t i = 0; ok && i < in->n; i++) {
        m[i] = moves[i];
        if (m[i].len == 0) continue;
        uint64_t dst = m[i].dst;
        m[i].dst = (uintptr_t)fake_reach(dst, 1); // conversions write another size
        uint64_t written = m[i].what == DQK_SUM ? 4 : m[i].len;
        if (moves[i].what != DQK_CONVERT && !fake_reach(dst, written)) ok = false;
        if (m[i].what != DQK_FILL) m[i].src = (uintptr_t)fake_reach(m[i].src, m[i].len);
        ok = ok && m[i].dst && (m[i].what == DQK_FILL || m[i].src);
    }
    if (in->ticket) out->ticket = (uintptr_t)fake_reach(in->ticket, 8);
    if (in->packing.levels) out->packing.levels = (uintptr_t)fake_reach(in->packing.levels, 4);
    if (in->done) out->done = (uintptr_t)fake_reach(in->done, 4);
    ok = ok && (!in->packing.levels || out->packing.levels);
    return ok && (!in->ticket || (out->ticket && out->done));
}
