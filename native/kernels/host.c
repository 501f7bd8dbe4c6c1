// host.c: executes lists on the CPU, with host addresses.
#include "kernels/k_packed.h"
#include "kernels/k_sum.h"
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <string.h>

static uint8_t *at(uint64_t address) { return (uint8_t *)(uintptr_t)address; }

static void end(uint64_t ticket, uint64_t value) {
    if (ticket) atomic_store_explicit((_Atomic uint64_t *)at(ticket), value, memory_order_release);
}

// Returns the bits of an element of a conversion's input: conversions are ordered by input.
static uint32_t bits_of(uint32_t conversion) {
    static const uint8_t bits[] = {4, 8, 16, 32, 16, 32};
    return bits[(conversion - 1) / (DQK_CONVERSIONS / sizeof bits)];
}

uint32_t dqk_sum_join(uint32_t crc, uint32_t page) { return k_sum_join(crc, page); }

static void sum_page(const dqk_move *m) {
    uint32_t crc = ~0u;
    for (uint32_t i = 0; i < DQK_PAGE; i += DQK_PAGE / 32)
        crc = k_sum_bytes(crc, m->src + i);
    crc = ~crc;
    memcpy(at(m->dst), &crc, sizeof crc);
}

// Converts as one warp of the kernel does.
static void convert_packed(const dqk_list *l, const dqk_move *m) {
    static const uint8_t outputs[] = {
#define OUTPUT(input, output, more) K_TYPE_##output,
        K_PACKED_OUTPUTS(OUTPUT, )};
    k_packed(*m, &l->packing, outputs[l->conversion - DQK_PACKED], 0, 1);
}

void dqk_list_host(const dqk_list *l) {
    dqk_convert_fn *convert = dqk_loop(l->conversion);
    const dqk_move *moves = (const dqk_move *)at(l->moves);
    for (const dqk_move *m = moves; m < moves + l->n; m++) {
        if (m->what == DQK_FILL)
            memset(at(m->dst), (int)(m->src & 255), m->len);
        else if (m->what == DQK_SUM)
            sum_page(m);
        else if (m->what == DQK_CONVERT && l->conversion >= DQK_PACKED)
            convert_packed(l, m);
        else if (m->what == DQK_CONVERT && convert)
            convert(at(m->dst), at(m->src), (uint64_t)m->len * 8 / bits_of(l->conversion));
        else
            memcpy(at(m->dst), at(m->src), m->len);
    }
    end(l->ticket, l->value);
}
