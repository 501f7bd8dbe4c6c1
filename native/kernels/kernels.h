// kernels.h: the shipped kernels by what they do, as PTX that a driver compiles.
#ifndef DQK_KERNELS_H
#define DQK_KERNELS_H

#include "kernels/k_move.h"

#include <stdbool.h>

// The number of a conversion of elements by their types (dq_dtype's numbers); swapped: the input's bytes are
// in the other order than the host's. 0: there is none.
uint32_t dqk_conversion(int input, int output, bool swapped);

// ---- on a GPU ---------------------------------------------------------------------------------------------

// The kernel for lists of a conversion, of 0: none, or of DQK_SUMS: its name, and the module that has it:
// PTX, zero at its end. Kernels of the same input have the same module. NULL: there is no such conversion.
const char *dqk_kernel(uint32_t conversion);
const char *dqk_ptx(uint32_t conversion);

// ---- on the host: addresses are the host's ----------------------------------------------------------------

// Writes n elements of src to dst. Neither has to be aligned; they don't overlap.
typedef void dqk_convert_fn(uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n);

// The loop of a conversion for this processor, and for the level-th instruction set that it has, from 0,
// plain C. NULL: there is none.
dqk_convert_fn *dqk_loop(uint32_t conversion);
dqk_convert_fn *dqk_loop_at(uint32_t level, uint32_t conversion);

// The CRC-32C of bytes of which crc is that of all before the last page, and page that of it.
uint32_t dqk_sum_join(uint32_t crc, uint32_t page);

// Does what the kernels do, ticket included.
void dqk_list_host(const dqk_list *list);

// What does a list as the kernel of that name would; NULL: there is no such kernel of lists.
typedef void dqk_host_fn(const dqk_list *list);
dqk_host_fn *dqk_host_kernel(const char *name);

#endif
