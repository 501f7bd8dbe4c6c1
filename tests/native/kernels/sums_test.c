// sums_test.c: checksums of pages: the kernel's body, warp after warp, and the host's way, against the
// engine's own CRC-32C, which has RFC 3720's answers.
#include "dqtest.h"
#include "kernels/kernels.h"
#include "kernels_bodies.h"
#include "writer/crc32c.h"

enum { PAGES = 37 };

static uint8_t *bytes;

static void fill(void) {
    uint64_t state = 5;
    bytes = aligned_alloc(16, PAGES * DQK_PAGE);
    if (!bytes) abort();
    for (uint32_t i = 0; i < PAGES * DQK_PAGE; i++)
        bytes[i] = (uint8_t)dq_rand(&state);
    memset(bytes + DQK_PAGE, 0, DQK_PAGE);
    memset(bytes + 2 * DQK_PAGE, 0xff, DQK_PAGE);
}

// Appendix B.4: 32 bytes of zeros, and of ones.
static void the_reference(void) {
    uint8_t zeros[32] = {0}, ones[32];
    memset(ones, 0xff, sizeof ones);
    DQ_EQ(dqi_crc32c(0, zeros, 32), 0x8a9136aa);
    DQ_EQ(dqi_crc32c(0, ones, 32), 0x62a8ab43);
}

static void check(void (*how)(const dqk_list *l)) {
    static dqk_move moves[PAGES];
    uint32_t got[PAGES + 1], crc = 0;
    uint64_t ticket = 0;
    memset(got, 0xa5, sizeof got);
    for (uint32_t i = 0; i < PAGES; i++)
        moves[i] =
            (dqk_move){(uintptr_t)bytes + (uint64_t)i * DQK_PAGE, (uintptr_t)&got[i], DQK_PAGE, DQK_SUM};
    dqk_list l = {.moves = (uintptr_t)moves,
                  .ticket = (uintptr_t)&ticket,
                  .value = 9,
                  .n = PAGES,
                  .parts = 1,
                  .conversion = DQK_SUMS};
    how(&l);
    for (uint32_t i = 0; i < PAGES; i++) {
        DQ_EQ(got[i], dqi_crc32c(0, bytes + (size_t)i * DQK_PAGE, DQK_PAGE));
        crc = dqk_sum_join(crc, got[i]);
    }
    DQ_EQ(crc, dqi_crc32c(0, bytes, PAGES * DQK_PAGE));
    DQ_EQ(dqk_sum_join(dqi_crc32c(0, "123456789", 9), got[3]),
          dqi_crc32c(dqi_crc32c(0, "123456789", 9), bytes + 3 * DQK_PAGE, DQK_PAGE));
    DQ_EQ(got[PAGES], 0xa5a5a5a5); // nothing behind it
}

static void one_warp(const dqk_list *l) { bodies_run(l, 1); }
static void many_warps(const dqk_list *l) { bodies_run(l, 40); }

static void kernel(void) {
    check(one_warp);
    check(many_warps);
}

static void host(void) { check(dqk_host_kernel("dqk_sums")); }

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    fill();
    DQ_RUN(the_reference);
    DQ_RUN(kernel);
    DQ_RUN(host);
    free(bytes);
    return dq_done();
}
