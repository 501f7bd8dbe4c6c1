// kernels.c: the modules that clang compiles from kernels.cu (make ptx), and the table of their kernels.
#include "kernels/kernels.h"
#include "kernels/k_convert.h"

#include <stddef.h>
#include <string.h>

// The assembler searches the compiler's include folders. A 0 terminates the text.
#define MODULE(name)                                                                                         \
    __asm__(".section .rodata\n"                                                                             \
            ".global dqk_ptx_" #name "\n"                                                                    \
            "dqk_ptx_" #name ": .incbin \"kernels/" #name ".ptx\"\n"                                         \
            ".byte 0\n"                                                                                      \
            ".previous\n");                                                                                  \
    extern const char dqk_ptx_##name[]

MODULE(moves);
MODULE(int4);
MODULE(int8);
MODULE(int16);
MODULE(int32);
MODULE(packed);
MODULE(sums);

static const struct {
    const char *name, *module;
} kernels[] = {
#define ROW(input, output, module) {"dqk_" #input "_" #output, dqk_ptx_##module},
    {"dqk_moves", dqk_ptx_moves},
    K_OUTPUTS(ROW, int4, int4)   //
    K_OUTPUTS(ROW, int8, int8)   //
    K_OUTPUTS(ROW, int16, int16) //
    K_OUTPUTS(ROW, int32, int32) //
    K_OUTPUTS(ROW, int16, int16) // swapped, as the list indicates
    K_OUTPUTS(ROW, int32, int32) //
    K_PACKED_OUTPUTS(ROW, packed){"dqk_sums", dqk_ptx_sums}};

_Static_assert(sizeof kernels / sizeof *kernels == DQK_SUMS + 1, "a kernel for each conversion, and sums");

static const uint8_t columns[K_TYPES] = {
    [K_TYPE_fp16] = 1,  [K_TYPE_bf16] = 2, [K_TYPE_fp32] = 3, [K_TYPE_fp64] = 4,
    [K_TYPE_int32] = 5, [K_TYPE_int8] = 6, [K_TYPE_int16] = 7};

uint32_t dqk_conversion(int input, int output, bool swapped) {
    enum { OUTPUTS = 6 };
    if (input < K_TYPE_int4 || input > K_TYPE_int32 || output < 0 || output >= K_TYPES || !columns[output] ||
        columns[output] > OUTPUTS)
        return 0;
    uint32_t number = (uint32_t)(input - K_TYPE_int4) * OUTPUTS + columns[output];
    return swapped && input >= K_TYPE_int16 ? number + 2 * OUTPUTS : number;
}

uint32_t dqk_packed(int output) {
    return output >= 0 && output < K_TYPES && columns[output] ? DQK_PACKED + columns[output] - 1u : 0;
}

const char *dqk_kernel(uint32_t conversion) {
    return conversion <= DQK_SUMS ? kernels[conversion].name : NULL;
}

const char *dqk_ptx(uint32_t conversion) {
    return conversion <= DQK_SUMS ? kernels[conversion].module : NULL;
}

dqk_host_fn *dqk_host_kernel(const char *name) {
    for (uint32_t i = 0; i <= DQK_SUMS; i++)
        if (strcmp(kernels[i].name, name) == 0) return dqk_list_host;
    return NULL;
}
