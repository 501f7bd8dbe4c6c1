// ptp_test.c: the offset of a PTP clock from readings, and what is given where there is no clock.
#include "bed.h"
#include "core/ptp.h"

#include <errno.h>

#define S INT64_C(1000000000)

static struct ptp_clock_time at(int64_t ns) {
    return (struct ptp_clock_time){.sec = ns / S, .nsec = (uint32_t)(ns % S)};
}

// The reading that took least is the best; one across a step of the system's clock is worth nothing.
static void offset(void) {
    const int64_t t0 = 1700000000 * S, tai = 37 * S;
    struct ptp_clock_time r[4][3] = {
        {at(t0), at(t0 + tai + 9000), at(t0 + 10000)},
        {at(t0 + S), at(t0 + S + tai + 100), at(t0 + S + 200)},
        {at(t0 + 2 * S), at(t0 + 2 * S + tai + 500), at(t0 + 2 * S + 600)},
        {at(t0 + 3 * S), at(t0 + 3 * S + tai), at(t0 - S)},
    };
    int64_t within;
    DQ_EQ(dqi_ptp_offset((const struct ptp_clock_time(*)[3])r, 4, &within), tai);
    DQ_EQ(within, 100);
    DQ_EQ(dqi_ptp_offset((const struct ptp_clock_time(*)[3])r, 1, &within), tai + 4000);
    DQ_EQ(within, 5000);
    for (int i = 0; i < 4; i++) // the clock may be behind
        r[i][1] = at(t0 + i * S - tai + 100);
    DQ_EQ(dqi_ptp_offset((const struct ptp_clock_time(*)[3])r, 4, &within), -tai);
}

static void no_clock(void) {
    dq_ptp p;
    DQ_EQ(dqi_ptp_of("lo"), -1);
    DQ_EQ(dqi_ptp_of("no-such-device"), -1);
    DQ_EQ(dqi_ptp_of("a-name-that-no-device-can-have"), -1);
    DQ_EQ(dq_ptp_read(4711, &p), DQ_ESYS - ENOENT);
    DQ_EQ(p.index, 4711);
    DQ_EQ_STR(p.name, "");
}

// Every clock that is listed is known by its index; whether it may be read is another matter.
static void clocks(void) {
    int index[64];
    uint32_t n = dq_ptp_list(index, 64);
    DQ_EQ(dq_ptp_list(NULL, 0), n);
    for (uint32_t k = 0; k < n && k < 64; k++) {
        dq_ptp p;
        int err = dq_ptp_read(index[k], &p);
        DQ_EQ(p.index, index[k]);
        DQ_CHECK(p.name[0] != 0);
        if (err == DQ_OK) DQ_CHECK(p.uncertainty_ns >= 0 && p.uncertainty_ns < S);
    }
}

static void in_the_report(void) {
    bed b;
    char text[256];
    uint32_t n = 0;
    bed_open(&b, (bed_conf){.mode = BED_VIRTUAL});
    dqi_ptp_note(b.s, "port0", "lo");
    while (dq_session_report(b.s, n, text, sizeof text))
        n++;
    DQ_EQ_STR(text, "interface port0: no PTP clock");
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(offset);
    DQ_RUN(no_clock);
    DQ_RUN(clocks);
    DQ_RUN(in_the_report);
    return dq_done();
}
