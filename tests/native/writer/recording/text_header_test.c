// text_header_test.c: headers of PSRDADA files and GUPPI RAW blocks.
#include "dqtest.h"

#include "core/dq_burst.h"
#include "writer/recording/text_header.h"

#include <string.h>

static void dada_has_the_place_in_the_stream(void) {
    char h[DQI_TEXT_HEADER + 1] = {0};
    const dqi_text_facts f = {
        .start_ns = INT64_C(1700000000123456789), .blocks = 3, .bytes = UINT64_C(1) << 33, .number = 2};
    dqi_dada_header(h, "NBIT 8\n", &f);
    static const char want[] =
        "HEADER DADA\nHDR_VERSION 1.0\nHDR_SIZE 4096\nNBIT 8\nOBS_OFFSET 25769803776\nFILE_NUMBER 2\n"
        "RESOLUTION 8589934592\nUTC_START 2023-11-14-22:13:20\nPICOSECONDS 123456789000\n"
        "MJD_START 60262.925927354823\n";
    DQ_EQ_BYTES(h, want, sizeof want);
    for (size_t i = strlen(h); i < DQI_TEXT_HEADER; i++)
        DQ_CHECK(h[i] == 0);
    dqi_dada_header(h, "", &(dqi_text_facts){.start_ns = DQ_NO_TIME});
    DQ_CHECK(!strstr(h, "START"));
}

static void guppi_is_51_cards(void) {
    char h[DQI_TEXT_HEADER];
    const dqi_text_facts f = {
        .start_ns = -1, .blocks = 3, .bytes = 640, .slots = 5, .missing = 1, .cells = 8};
    char text[81];
    snprintf(text, sizeof text, "%-80s", "NBITS   =                    8");
    dqi_guppi_header(h, text, &f);
    static const char *const keys[] = {
        "NBITS   =                    8", "BLOCSIZE=                  640", "DIRECTIO=                    1",
        "PKTIDX  =                   15", "DROPBLK =             0.125000", "STT_IMJD=                40586",
        "STT_SMJD=                86399", "STT_OFFS=          0.999999999", "COMMENT "};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        DQ_EQ_BYTES(h + 80 * i, keys[i], strlen(keys[i]));
    DQ_EQ_BYTES(h + 80 * 50, "END     ", 8);
    for (int i = 0; i < DQI_TEXT_HEADER; i++)
        DQ_CHECK(i < 4080 ? h[i] >= ' ' && h[i] <= '~' : h[i] == 0);
    dqi_guppi_header(h, "", &(dqi_text_facts){.start_ns = DQ_NO_TIME});
    DQ_EQ_BYTES(h + 80 * 4, "COMMENT", 7);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(dada_has_the_place_in_the_stream);
    DQ_RUN(guppi_is_51_cards);
    return dq_done();
}
