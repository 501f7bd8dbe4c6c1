// populate.h: prefaulting of memory.
#ifndef DQI_POPULATE_H
#define DQI_POPULATE_H

#include <stdint.h>

// Populates the pages of [p, p + bytes), both multiples of the page size: else the first packets in each page
// take a page fault of 1 to 3 us each, which loses datagrams. Large ranges are split among threads, which are
// joined before the return. Returns 0 or -errno; -EFAULT: the pages (huge pages) were taken by another
// process. May block for long: 0.1 to 0.7 s per GiB and thread.
int dqi_populate(uint8_t *p, uint64_t bytes);

#endif
