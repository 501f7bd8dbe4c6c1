// crc32c.h: CRC-32C (Castagnoli), as used by S3, iSCSI and ext4.
#ifndef DQI_CRC32C_H
#define DQI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// Returns the checksum of the data with checksum crc (0: no data) followed by these n bytes.
uint32_t dqi_crc32c(uint32_t crc, const void *p, size_t n);

#endif
