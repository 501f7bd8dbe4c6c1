// text_header.c: keys as PSRDADA ("KEY value" lines, zero-padded) and GUPPI RAW (FITS cards) have them.
#include "writer/recording/text_header.h"
#include "core/dq_burst.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CARD      80
#define CARDS     (DQI_TEXT_HEADER / CARD) // with END; readers skip zeros up to a multiple of 512 bytes
#define SECOND    INT64_C(1000000000)
#define DAY       (86400 * SECOND)
#define EPOCH_MJD 40587 // 1970-01-01

// A time as a day and the nanoseconds in it.
typedef struct instant {
    int64_t mjd, ns;
} instant;

static instant instant_of(int64_t ns) {
    int64_t in = ns % DAY;
    if (in < 0) in += DAY;
    return (instant){EPOCH_MJD + (ns - in) / DAY, in};
}

// Appends a line at *n.
__attribute__((format(printf, 3, 4))) static void line(char *to, size_t *n, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int k = vsnprintf(to + *n, DQI_TEXT_HEADER - *n, format, args);
    va_end(args);
    if (k > 0 && (size_t)k < DQI_TEXT_HEADER - *n) *n += (size_t)k;
}

void dqi_dada_header(char *to, const char *text, const dqi_text_facts *f) {
    size_t n = 0;
    memset(to, 0, DQI_TEXT_HEADER);
    line(to, &n, "HEADER DADA\nHDR_VERSION 1.0\nHDR_SIZE %d\n%s", DQI_TEXT_HEADER, text);
    line(to, &n, "OBS_OFFSET %" PRIu64 "\nFILE_NUMBER %" PRIu64 "\nRESOLUTION %" PRIu64 "\n",
         f->blocks * f->bytes, f->number, f->bytes);
    if (f->start_ns != DQ_NO_TIME) {
        instant at = instant_of(f->start_ns);
        time_t seconds = (time_t)((at.mjd - EPOCH_MJD) * 86400 + at.ns / SECOND);
        struct tm tm;
        char utc[32] = "";
        if (gmtime_r(&seconds, &tm)) strftime(utc, sizeof utc, "%Y-%m-%d-%H:%M:%S", &tm);
        line(to, &n, "UTC_START %s\nPICOSECONDS %" PRId64 "\n", utc, at.ns % SECOND * 1000);
        line(to, &n, "MJD_START %" PRId64 ".%012" PRId64 "\n", at.mjd,
             at.ns * 10 / 864); // 1e-12 days are 86.4 ns
    }
    memset(to + n, 0, DQI_TEXT_HEADER - n);
}

// Appends a card with a number.
__attribute__((format(printf, 4, 5))) static void card(char *to, size_t *n, const char *key,
                                                       const char *format, ...) {
    char value[40];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    line(to, n, "%-8s= %20s%50s", key, value, "");
}

void dqi_guppi_header(char *to, const char *text, const dqi_text_facts *f) {
    size_t n = 0;
    line(to, &n, "%s", text);
    card(to, &n, "BLOCSIZE", "%" PRIu64, f->bytes);
    card(to, &n, "DIRECTIO", "1");
    card(to, &n, "PKTIDX", "%" PRIu64, f->blocks * f->slots);
    card(to, &n, "DROPBLK", "%.6f", f->cells ? (double)f->missing / f->cells : 0.0);
    if (f->start_ns != DQ_NO_TIME) {
        instant at = instant_of(f->start_ns);
        card(to, &n, "STT_IMJD", "%" PRId64, at.mjd);
        card(to, &n, "STT_SMJD", "%" PRId64, at.ns / SECOND);
        card(to, &n, "STT_OFFS", "%.9f", (double)(at.ns % SECOND) / SECOND);
    }
    while (n < (CARDS - 1) * CARD)
        line(to, &n, "%-80s", "COMMENT");
    line(to, &n, "%-80s", "END");
    memset(to + n, 0, DQI_TEXT_HEADER - n);
}
