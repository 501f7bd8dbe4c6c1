// values_test.c: values and codes of samples against numbers computed by hand, and sizes of incomplete units.
#include "dqtest.h"
#include "kernels/dq_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t bytes_of[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x0f, 0x1e, 0x2d, 0x3c};

static dq_sample type_of(const char *name) {
    dq_sample t;
    DQ_EQ(dq_sample_parse(name, &t, NULL), DQ_OK);
    return t;
}

// Computes n values from a copy that ends with the last byte.
static void compute(const char *name, double scale, double offset, const double *levels, const void *src,
                    uint64_t n, double *out) {
    const dq_sample t = type_of(name);
    uint64_t bytes = dq_sample_bytes(&t, n);
    uint8_t *copy = malloc(bytes);
    if (!copy) abort();
    memcpy(copy, src, bytes);
    dq_sample_values(&t, scale, offset, levels, copy, n, out);
    free(copy);
}

static const struct {
    const char *type;
    uint64_t n;
    double scale, offset, values[6];
} vectors[] = {
    {"o4", 5, 1, 0, {-7, -6, -5, -4, -3}},     {"i12", 3, 1, 0, {291, 1110, 1929}},
    {"u10.gev", 4, 1, 0, {72, 347, 482, 753}}, {"i12.w32le", 2, 1, 0, {1925, 1588}},
    {"o16be", 2, 0.5, 2, {-14053, -5315}},     {"qi4", 4, 1, 0, {2, 1, 4, 3}},
    {"u32be", 1, 1, 0, {305419896}},
};

static void the_vectors(void) {
    for (uint32_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
        double got[6];
        compute(vectors[k].type, vectors[k].scale, vectors[k].offset, NULL, bytes_of, vectors[k].n, got);
        for (uint32_t i = 0; i < vectors[k].n; i++)
            if (got[i] != vectors[k].values[i]) {
                fprintf(stderr, "%s [%u]: %g\n", vectors[k].type, i, got[i]);
                DQ_CHECK(got[i] == vectors[k].values[i]);
            }
    }
    double got[24], levels[] = {-3, -1, 1, 3};
    compute("o2.lsb", 2, 1, levels, "\x1b", 4, got); // codes 3 2 1 0
    DQ_CHECK(got[0] == 8 && got[1] == 4 && got[2] == 0 && got[3] == -4);
    uint8_t group[28] = {3};
    memcpy(group + 1, bytes_of, sizeof bytes_of);
    compute("bfp9", 1, 0, NULL, group, 24, got);
    DQ_CHECK(got[0] == 288 && got[1] == 1672 && got[9] == 1440);
}

static void floats(void) {
    double got[4];
    compute("f32be", 2, 1, NULL, "\x3f\xc0\0\0", 1, got);
    DQ_CHECK(got[0] == 5); // (1.5 + 1) * 2
    compute("qf32le", 1, 0, NULL, "\0\0\x80\x3f\0\0\0\xc0", 2, got);
    DQ_CHECK(got[0] == -2 && got[1] == 1);
    compute("f64be", 1, 0, NULL, "\x40\x09\x21\xfb\x54\x44\x2d\x18", 1, got);
    DQ_CHECK(got[0] == 3.141592653589793);
    compute("bf16le", 1, 0, NULL, "\x20\xc0", 1, got);
    DQ_CHECK(got[0] == -2.5);
    compute("f16be", 1, 0, NULL, "\x3e\x00\xbb\xf0\x00\x03\x7c\x00", 4, got);
    DQ_CHECK(got[0] == 1.5 && got[1] == -127.0 / 128 && got[2] == ldexp(3, -24) && isinf(got[3]));
}

static void counts(void) {
    uint64_t n[4096] = {0};
    dq_sample t = type_of("o4");
    DQ_EQ(dq_sample_count(&t, bytes_of, 7, n), DQ_OK);
    for (uint32_t c = 0; c < 16; c++)
        DQ_EQ(n[c], c >= 1 && c <= 7);
    t = type_of("i12");
    static uint8_t many[1500 * 3];
    for (uint32_t i = 0; i < 1500; i++)
        memcpy(many + 3 * i, "\xff\xf8\x00", 3); // -1 and -2048
    DQ_EQ(dq_sample_count(&t, many, 3000, n), DQ_OK);
    DQ_EQ(n[0xfff], 1500);
    DQ_EQ(n[0x800], 1500);
    t = type_of("i24be");
    DQ_EQ(dq_sample_count(&t, many, 1, n), DQ_INVALID_PARAMETER);
    t = type_of("bfp9");
    DQ_EQ(dq_sample_count(&t, many, 24, n), DQ_INVALID_PARAMETER);
    t = type_of("f16le");
    DQ_EQ(dq_sample_count(&t, many, 1, n), DQ_INVALID_PARAMETER);
}

static void sizes(void) {
    static const struct {
        const char *type;
        uint64_t bytes, elements, of_elements; // elements in bytes; bytes of 3 elements
    } all[] = {
        {"i10", 9, 7, 4},       {"ci10", 9, 6, 4},     {"o2.lsb", 3, 12, 1},  {"i12.w32le", 13, 8, 12},
        {"i12.pad32", 7, 2, 8}, {"u12.gev", 5, 2, 6},  {"i16le", 5, 2, 6},    {"ci8", 5, 4, 3},
        {"bfp9", 57, 48, 28},   {"i12/16le", 5, 2, 6}, {"cf32le", 17, 4, 16},
    };
    for (uint32_t k = 0; k < sizeof all / sizeof *all; k++) {
        const dq_sample t = type_of(all[k].type);
        DQ_EQ(dq_sample_elements(&t, all[k].bytes), all[k].elements);
        DQ_EQ(dq_sample_bytes(&t, 3), all[k].of_elements);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(the_vectors);
    DQ_RUN(floats);
    DQ_RUN(counts);
    DQ_RUN(sizes);
    return dq_done();
}
