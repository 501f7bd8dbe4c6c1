// populate.h: memory that is there before its first use.
#ifndef DQI_POPULATE_H
#define DQI_POPULATE_H

#include <stdint.h>

// Has the kernel find the pages of p, bytes long, both multiples of the page size: the packets of the first
// lap through a region then find none missing, which takes a page's first user 1 to 3 us and loses datagrams.
// Large memory is shared among threads, which have ended at the return. 0, or -errno: -EFAULT where the pages
// have gone to somebody else (huge pages). May block for long: 0.1 to 0.7 s a GiB and thread.
int dqi_populate(uint8_t *p, uint64_t bytes);

#endif
