// staging.h: how writers read a GPU's memory: the GPU copies it into two pinned buffers, which the disk or
// the uploader reads like any other memory. One per folder, or per writer of objects.
//
// Record files use the two as their buffers (buffered_file.h): a packet is copied once, to its position in
// the file. Others walk over bursts (staged.h). There is no thread: users poll the tickets.
#ifndef DQI_STAGING_H
#define DQI_STAGING_H

#include "core/dq_burst.h"
#include "cuda/cufile.h"

typedef struct dqi_staging dqi_staging;

#define DQI_STAGING_BYTES (4u << 20) // per buffer

// Allocates the staging memory for bursts from these regions, if one of them is on a GPU and *s is NULL.
// cufile: library for direct writes; NULL: none. NOT_SUPPORTED: they are on another GPU. The caller holds a
// lock. `what`: name for errors.
int dqi_staging_reach(_Atomic(dqi_staging *) *s, dq_region *const *regions, uint32_t n,
                      const dqi_cufile *cufile, const char *what, dq_diag *diag);
// Collects the regions of b's device-only segments; returns their number. -1: one of them is not on a GPU.
int dqi_staging_regions(const dq_burst *b, dq_region **regions);
// Waits for pending copies, and frees. NULL is allowed.
void dqi_staging_free(dqi_staging *s);
dqi_gpu *dqi_staging_gpu(const dqi_staging *s);
// Returns buffer 0 or 1.
uint8_t *dqi_staging_buffer(const dqi_staging *s, uint32_t k);

// ---- without the host -------------------------------------------------------------------------------------

#define DQI_SUMMED_BYTES (64u << 20) // maximum of one checksum

// Returns the library for direct writes from these regions; NULL: none.
const dqi_cufile *dqi_staging_cufile(const dqi_staging *s);
// Starts the CRC-32C of n bytes of the GPU's memory, whole pages.
void dqi_staging_sum(dqi_staging *s, uint64_t at, uint32_t n);
// Combines it with *crc, that of all preceding bytes. False: the GPU is lost. Waits.
bool dqi_staging_add_sum(dqi_staging *s, uint32_t *crc);

// ---- through the buffers ----------------------------------------------------------------------------------

// Starts a copy of n bytes of segment seg of packet i, from byte `from` on, to `to`, in a buffer; b is
// referenced until it completes. *latch (may be NULL) counts the pending lists. Waits for space in the lists.
// One thread at a time, as for the following functions.
void dqi_staging_copy(dqi_staging *s, dq_burst *b, uint32_t seg, uint32_t i, uint32_t from, uint8_t *to,
                      uint32_t n, _Atomic uint32_t *latch);
// Launches the pending copies.
void dqi_staging_push(dqi_staging *s);
// Waits for all copies; with a latch, for those it counts. False: the GPU is lost, and the state of pending
// copies is unknown.
bool dqi_staging_land(dqi_staging *s, const _Atomic uint32_t *latch);
// Releases bursts whose copies have completed; returns true while others are pending.
bool dqi_staging_busy(dqi_staging *s);

#endif
