// kernels.h: the shipped kernels by conversion, as PTX that the driver compiles.
#ifndef DQK_KERNELS_H
#define DQK_KERNELS_H

#include "kernels/k_move.h"

#include <stdbool.h>

// Returns the number of a conversion by element types (dq_dtype's numbers); swapped: the input has the byte
// order that is not the host's. 0: not supported.
uint32_t dqk_conversion(int input, int output, bool swapped);

// Returns the number of the conversion of packed elements to an output type. 0: not supported.
uint32_t dqk_packed(int output);

// ---- on a GPU ---------------------------------------------------------------------------------------------

// Return the name of the kernel for lists of a conversion, of 0 (none) or of DQK_SUMS, and its module as
// zero-terminated PTX. Kernels with equal input share a module, and those of packed elements. NULL: not a
// valid conversion.
const char *dqk_kernel(uint32_t conversion);
const char *dqk_ptx(uint32_t conversion);

// ---- on the host, with host addresses ---------------------------------------------------------------------

// Converts n elements of src to dst. Neither needs alignment; they must not overlap.
typedef void dqk_convert_fn(uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n);

// Return the loop of a conversion for this processor, and for its level-th supported instruction set, from 0,
// plain C. NULL: none.
dqk_convert_fn *dqk_loop(uint32_t conversion);
dqk_convert_fn *dqk_loop_at(uint32_t level, uint32_t conversion);

// Returns the checksum of data ending in a page, from crc of the data before and the CRC-32C of the page.
uint32_t dqk_sum_join(uint32_t crc, uint32_t page);

// Executes a list as the kernels do, including the ticket.
void dqk_list_host(const dqk_list *list);

// Executes a list as the kernel of that name does; NULL: not a kernel of lists.
typedef void dqk_host_fn(const dqk_list *list);
dqk_host_fn *dqk_host_kernel(const char *name);

#endif
