// staging.h: how a writer reads what lies in a GPU's memory: the GPU copies it into two pinned buffers, which
// the disk, or who uploads, reads as any other memory. One a folder, or a writer of objects.
//
// Files of records have the two as their own buffers (buffered_file.h): a packet is copied once, to where it
// belongs in the file. Others walk over bursts (staged.h). No thread: whoever needs the bytes looks at
// tickets.
#ifndef DQI_STAGING_H
#define DQI_STAGING_H

#include "core/dq_burst.h"
#include "cuda/cufile.h"

typedef struct dqi_staging dqi_staging;

#define DQI_STAGING_BYTES (4u << 20) // of each of its buffers

// The staging memory of who reads bursts that lie in these regions, made where one of them is a GPU's and *s
// is NULL. cufile: may write from them; NULL: it can't. NOT_SUPPORTED: they are another GPU's. Under a lock
// of the caller's. `what` names it.
int dqi_staging_reach(_Atomic(dqi_staging *) *s, dq_region *const *regions, uint32_t n,
                      const dqi_cufile *cufile, const char *what, dq_diag *diag);
// The regions of b's segments that the CPU can't read; how many. -1: no GPU has one of them.
int dqi_staging_regions(const dq_burst *b, dq_region **regions);
// Waits for what is under way. NULL is fine.
void dqi_staging_free(dqi_staging *s);
dqi_gpu *dqi_staging_gpu(const dqi_staging *s);
// Buffer 0 or 1.
uint8_t *dqi_staging_buffer(const dqi_staging *s, uint32_t k);

// ---- past the host ----

#define DQI_SUMMED_BYTES (64u << 20) // of one sum, at most

// Writes from the regions that were reached; NULL: nothing does.
const dqi_cufile *dqi_staging_cufile(const dqi_staging *s);
// Begins the CRC-32C of n bytes of the GPU's memory, whole pages.
void dqi_staging_sum(dqi_staging *s, uint64_t at, uint32_t n);
// Takes these bytes into *crc, that of all before them. False: the GPU is lost. Waits.
bool dqi_staging_add_sum(dqi_staging *s, uint32_t *crc);

// ---- through the buffers ----

// Has n bytes of segment seg of packet i, from byte `from` on, copied to `to`, which lies in a buffer; until
// that is done b is held. *latch, NULL: none, counts the lists that are to do it. Waits for room in the
// lists. One thread at a time, as for all that follow.
void dqi_staging_copy(dqi_staging *s, dq_burst *b, uint32_t seg, uint32_t i, uint32_t from, uint8_t *to,
                      uint32_t n, _Atomic uint32_t *latch);
// Sends out what was asked for.
void dqi_staging_push(dqi_staging *s);
// Waits until all is there; with a latch: what that counts. False: the GPU is lost, and nothing can be told
// of what was under way.
bool dqi_staging_land(dqi_staging *s, const _Atomic uint32_t *latch);
// Lets go of bursts that were copied; true while some are not.
bool dqi_staging_busy(dqi_staging *s);

#endif
