// crc32c.c: CRC-32C with the processor's instruction if available, else four bits at a time.
#include "writer/crc32c.h"

#include <stdbool.h>
#include <string.h>

// Reflected polynomial 0x82f63b78.
static uint32_t plain(uint32_t crc, const uint8_t *p, size_t n) {
    static const uint32_t half[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = half[crc & 15] ^ crc >> 4;
        crc = half[crc & 15] ^ crc >> 4;
    }
    return crc;
}

#if defined __x86_64__
static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) static uint32_t fast(uint32_t crc, const uint8_t *p, size_t n) {
    uint64_t wide = crc, word;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; n > 0; p++, n--)
        crc = __builtin_ia32_crc32qi(crc, *p);
    return crc;
}
#elif defined __aarch64__
#include <arm_acle.h>
#include <sys/auxv.h>

static bool has_instruction(void) { return (getauxval(AT_HWCAP) & 1 << 7) != 0; } // HWCAP_CRC32

__attribute__((target("+crc"))) static uint32_t fast(uint32_t crc, const uint8_t *p, size_t n) {
    uint64_t word;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&word, p, 8);
        crc = __crc32cd(crc, word);
    }
    for (; n > 0; p++, n--)
        crc = __crc32cb(crc, *p);
    return crc;
}
#else
static bool has_instruction(void) { return false; }

static uint32_t fast(uint32_t crc, const uint8_t *p, size_t n) { return plain(crc, p, n); }
#endif

uint32_t dqi_crc32c(uint32_t crc, const void *p, size_t n) {
    return ~(has_instruction() ? fast : plain)(~crc, p, n);
}
