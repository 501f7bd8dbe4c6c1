// crc32c.h: CRC-32C (Castagnoli), as of S3, iSCSI and ext4.
#ifndef DQI_CRC32C_H
#define DQI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// The checksum of what crc is the checksum of (0: nothing), with n more bytes behind it.
uint32_t dqi_crc32c(uint32_t crc, const void *p, size_t n);

#endif
