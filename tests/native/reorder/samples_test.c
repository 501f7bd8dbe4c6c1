// samples_test.c: every type of samples: its name, what its codes become by each instruction set against a
// model that sets single bits, vectors computed elsewhere, and conversions with scale, offset and levels.
#include "convert_model.h"
#include "dqtest.h"
#include "reorder/convert.h"

#include <math.h>

enum { MOST = 65536, ROOM = 8 * MOST };

static uint8_t packed[ROOM], made[ROOM];
static uint32_t codes[MOST];

// ---- model ------------------------------------------------------------------------------------------------

static void set_bit(uint8_t *dst, uint64_t byte, uint32_t bit) { dst[byte] |= (uint8_t)(1u << bit); }

// Sets bit b of element i, counted from the highest.
static void model_bit(const dq_sample *t, uint8_t *dst, uint64_t i, uint32_t b) {
    const uint32_t bits = t->bits, word = t->order == DQ_ORDER_W16LE ? 2 : t->order == DQ_ORDER_W32LE ? 4 : 8;
    uint64_t s = i * bits + b;
    switch (t->order) {
    case DQ_ORDER_LSB:
        s = i * bits + (bits - 1 - b);
        set_bit(dst, s / 8, s % 8);
        return;
    case DQ_ORDER_BE:
    case DQ_ORDER_LE:
        s = (t->high ? 0u : t->container - bits) + b;
        set_bit(dst, i * t->container / 8 + (t->order == DQ_ORDER_BE ? s / 8 : t->container / 8 - 1 - s / 8),
                7 - s % 8);
        return;
    case DQ_ORDER_PAD32:
        s = i % (32 / bits) * bits + b;
        set_bit(dst, i / (32 / bits) * 4 + s / 8, 7 - s % 8);
        return;
    case DQ_ORDER_GEV: // the upper 8 bits have a byte of their own, the lower ones a half of the middle byte
        if (b < 8)
            set_bit(dst, i / 2 * 3 + i % 2 * 2, 7 - b);
        else
            set_bit(dst, i / 2 * 3 + 1, i % 2 * 4 + bits - 1 - b);
        return;
    case DQ_ORDER_MSB:
        set_bit(dst, s / 8, 7 - s % 8);
        return;
    default: {
        uint64_t in = s % (8u * word), base = s / (8u * word) * word;
        set_bit(dst, base + word - 1 - in / 8, 7 - in % 8);
    }
    }
}

// Writes n codes; with the imaginary part first, pairs are exchanged.
static void model_pack(const dq_sample *t, uint8_t *dst, uint64_t bytes, const uint32_t *c, uint64_t n) {
    memset(dst, 0, bytes);
    for (uint64_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < t->bits; b++)
            if (c[i] >> (t->bits - 1 - b) & 1) model_bit(t, dst, t->complex == 2 ? i ^ 1 : i, b);
}

static int64_t model_value(const dq_sample *t, uint32_t code) {
    int64_t half = INT64_C(1) << (t->bits - 1);
    if (t->kind == DQ_SAMPLE_UNSIGNED) return code;
    if (t->kind == DQ_SAMPLE_OFFSET) return code - half;
    return code >= half ? code - 2 * half : code;
}

// ---- helpers ----------------------------------------------------------------------------------------------

static dq_sample type_of(const char *name) {
    dq_sample t;
    dq_diag d = {{0}};
    DQ_EQ(dq_sample_parse(name, &t, &d), DQ_OK);
    if (d.text[0]) fprintf(stderr, "%s\n", d.text);
    return t;
}

static bool is_type(const char *name, dq_sample *t) { return dq_sample_parse(name, t, NULL) == DQ_OK; }

static dqi_convert find(const dq_data_types *t) {
    dqi_convert c;
    dq_diag d = {{0}};
    DQ_EQ(dqi_convert_find(t, &c, "test", &d), DQ_OK);
    if (d.text[0]) fprintf(stderr, "%s\n", d.text);
    return c;
}

static dqi_convert conversion(const char *name, int output) {
    dq_data_types t = {.sample = type_of(name), .output = output};
    return find(&t);
}

// Converts n elements with an instruction set; returns false past the last.
static bool convert_at(uint32_t level, const dq_sample *t, const dqi_convert *c, int output, uint8_t *dst,
                       const uint8_t *src, uint64_t n) {
    if (c->packed) return dqk_unpack_at(level, &c->unpack, dst, src, n);
    dq_data_types types = {.input = DQ_DTYPE_INT16, .output = output};
    (void)t;
    if (!dqi_convert_at(level, &types)) return false;
    c->fn ? c->fn(dst, src, n) : (void)memcpy(dst, src, n * c->out_bytes);
    return true;
}

static const char *const orders[] = {"",       ".lsb",   "be",     "le",     "/16be",  "/16le",
                                     "/16hbe", "/16hle", "/32be",  "/32le",  "/32hbe", "/32hle",
                                     ".w16le", ".w32le", ".w64le", ".pad32", ".gev"};
enum { ORDERS = sizeof orders / sizeof *orders };

// Calls `each` with every type of integers.
static void every_type(void (*each)(const char *name, const dq_sample *t)) {
    static const char *const kinds[] = {"i", "ci", "qi", "u", "o", "co"};
    uint32_t seen = 0;
    for (uint32_t k = 0; k < 6; k++)
        for (uint32_t bits = 1; bits <= 32; bits++)
            for (uint32_t o = 0; o < ORDERS; o++) {
                char name[32];
                dq_sample t;
                snprintf(name, sizeof name, "%s%u%s", kinds[k], bits, orders[o]);
                if (!is_type(name, &t)) continue;
                each(name, &t);
                seen++;
            }
    DQ_CHECK(seen > 1500);
}

// ---- vectors ----------------------------------------------------------------------------------------------

static const uint8_t short_bytes[] = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x0f, 0x1e, 0x2d, 0x3c};

static const struct {
    const char *type;
    int n, values[16];
} vectors[] = {
    {"i2", 16, {0, 1, 0, -2, 0, -1, 1, 0, 1, 1, 1, -2, 1, -1, -2, 0}},
    {"i2.lsb", 16, {-2, 0, 1, 0, 0, 1, -1, 0, -2, 1, 1, 1, 0, -2, -1, 1}},
    {"o2.lsb", 16, {0, -2, -1, -2, -2, -1, 1, -2, 0, -1, -1, -1, -2, 0, 1, -1}},
    {"i4", 16, {1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1, 0}},
    {"i4.lsb", 16, {2, 1, 4, 3, 6, 5, -8, 7, -6, -7, -4, -5, -2, -3, 0, -1}},
    {"o4", 16, {-7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, -8}},
    {"i10", 9, {72, -187, 414, 154, -269, 495, 3, -226, 180}},
    {"u10.lsb", 9, {18, 397, 901, 617, 700, 55, 255, 120, 45}},
    {"u10.gev", 8, {72, 347, 482, 753, 888, 63, 121, 242}},
    {"i12", 8, {291, 1110, 1929, -1348, -529, 15, 482, -708}},
    {"i12.w32le", 8, {1925, 1588, 303, 222, -1079, -1476, 721, -497}},
    {"i12.pad32", 6, {291, 1110, -1621, -802, 241, -467}},
    {"i12/16hbe", 6, {291, 1383, -1621, -529, 241, 723}},
    {"u12.lsb", 8, {1042, 1379, 2680, 3017, 222, 255, 3358, 962}},
    {"u12.gev", 8, {292, 1379, 1930, 3017, 3552, 255, 493, 962}},
    {"u14", 6, {1165, 1383, 8810, 15582, 15363, 12770}},
    {"i16be", 6, {4660, 22136, -25924, -8464, 3870, 11580}},
    {"i16le", 6, {13330, 30806, -17254, -3874, 7695, 15405}},
    {"o8", 12, {-110, -76, -42, -8, 26, 60, 94, 112, -113, -98, -83, -68}},
    {"o16be", 6, {-28108, -10632, 6844, 24304, -28898, -21188}},
};

static void the_vectors(void) {
    for (uint32_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
        const dqi_convert c = conversion(vectors[k].type, DQ_DTYPE_FP32);
        const dq_sample t = type_of(vectors[k].type);
        for (uint32_t level = 0;
             convert_at(level, &t, &c, DQ_DTYPE_FP32, made, short_bytes, (uint64_t)vectors[k].n); level++)
            for (int i = 0; i < vectors[k].n; i++) {
                float f;
                memcpy(&f, made + 4 * i, 4);
                if (f != (float)vectors[k].values[i]) {
                    fprintf(stderr, "%s [%d]\n", vectors[k].type, i);
                    DQ_EQ((int64_t)f, vectors[k].values[i]);
                }
            }
    }
}

static const struct {
    const char *type;
    uint32_t n;
    int64_t sum;
    uint32_t crc;
} long_vectors[] = {
    {"i2", 16384, -7971, 0x11c36af1},       {"i2.lsb", 16384, -7971, 0xda57037f},
    {"o2.lsb", 16384, -8119, 0x0b65fb04},   {"i4", 8192, -3337, 0x10f568e6},
    {"i4.lsb", 8192, -3337, 0x79cd79e0},    {"o4", 8192, -3945, 0x35710cd9},
    {"i10", 3276, -4190, 0xb9f51b22},       {"u10.lsb", 3276, 1683015, 0xbd76ce70},
    {"i12", 2730, 7703, 0x737b9d04},        {"i12.w32le", 2730, 36178, 0x12096212},
    {"u12.lsb", 2730, 5612748, 0xd58361ed}, {"u14", 2340, 19311816, 0x95c30189},
    {"i16be", 2048, 418915, 0xb4adc4f7},    {"i16le", 2048, 1861488, 0xd1f8fecc},
    {"o8", 4096, -1837, 0x0e5c8e7b},        {"o16be", 2048, 549987, 0x09146d55},
};

// CRC-32 of IEEE 802.3, bit by bit.
static uint32_t crc32_ieee(const uint8_t *p, size_t n) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void the_long_vectors(void) {
    static uint8_t src[4096];
    uint32_t x = 1;
    for (uint32_t i = 0; i < sizeof src; i++) {
        x = (1103515245u * x + 12345) & 0x7fffffff;
        src[i] = (uint8_t)(x / 65536);
    }
    DQ_EQ(crc32_ieee(src, sizeof src), 0x4641a512);
    for (uint32_t k = 0; k < sizeof long_vectors / sizeof *long_vectors; k++) {
        const dqi_convert c = conversion(long_vectors[k].type, DQ_DTYPE_FP32);
        const dq_sample t = type_of(long_vectors[k].type);
        const uint32_t n = long_vectors[k].n;
        for (uint32_t level = 0; convert_at(level, &t, &c, DQ_DTYPE_FP32, made, src, n); level++) {
            double sum = 0;
            for (uint32_t i = 0; i < n; i++) {
                float f;
                memcpy(&f, made + 4 * i, 4);
                sum += (double)f;
            }
            DQ_EQ((int64_t)sum, long_vectors[k].sum);
            DQ_EQ(crc32_ieee(made, 4 * (size_t)n), long_vectors[k].crc);
        }
    }
}

static void groups_and_levels(void) {
    static const int want[] = {288, 1672, 1432, -952, -1352, -1608, -1088, 120, 480, 1440};
    static const double vlbi[] = {-3.316505, -1, 1, 3.316505};
    uint8_t src[28] = {3};
    int16_t v[24];
    memcpy(src + 1, short_bytes, sizeof short_bytes);
    dqi_convert c = conversion("bfp9", DQ_DTYPE_INT16);
    DQ_EQ(c.bytes, 28);
    dqi_convert_bytes(&c, (uint8_t *)v, src, 28);
    for (int i = 0; i < 10; i++)
        DQ_EQ(v[i], want[i]);
    dq_data_types t = {.sample = type_of("o2.lsb"), .output = DQ_DTYPE_FP32, .levels = vlbi};
    float f[8];
    const float levels[] = {-1, -1, 1, 1, 3.316505f, 1, -1, -3.316505f};
    c = find(&t);
    dqi_convert_bytes(&c, (uint8_t *)f, (const uint8_t[]){0xa5, 0x1b}, 2);
    for (int i = 0; i < 8; i++)
        DQ_CHECK(f[i] == levels[i]);
}

// ---- every type -------------------------------------------------------------------------------------------

// Every code, or a sample of them, comes back as its value.
static void codes_of(const char *name, const dq_sample *t) {
    uint32_t bytes, elements, n = t->bits < 16 ? 1u << t->bits : MOST;
    dq_sample_unit(t, &bytes, &elements);
    n = n < 256 ? 256 : n;
    n = n / elements * elements;
    for (uint32_t i = 0; i < n; i++)
        codes[i] = t->bits <= 16 ? i & ((1u << t->bits) - 1) : (i * 2654435761u) >> (32 - t->bits);
    if (t->bits > 16) n = 3840;
    model_pack(t, packed, (uint64_t)n / elements * bytes, codes, n);
    int output = t->kind == DQ_SAMPLE_UNSIGNED && t->bits == 32 ? DQ_DTYPE_FP64 : DQ_DTYPE_INT32;
    const dqi_convert c = conversion(name, output);
    DQ_EQ(c.bytes * 8ull * c.elements % 8, 0);
    for (uint32_t level = 0; convert_at(level, t, &c, output, made, packed, n); level++)
        for (uint32_t i = 0; i < n; i++) {
            int32_t v;
            double d;
            memcpy(&v, made + i * c.out_bytes, 4);
            if (c.out_bytes == 8) memcpy(&d, made + 8 * i, 8);
            int64_t got = c.out_bytes == 8 ? (int64_t)d : v;
            if (got == model_value(t, codes[i])) continue;
            fprintf(stderr, "%s [%u], level %u\n", name, i, level);
            DQ_EQ(got, model_value(t, codes[i]));
            return;
        }
}

static void every_code(void) { every_type(codes_of); }

// Every offset and length up to two periods, from a buffer that ends with the last element: nothing is read
// behind it, nothing is written behind the last output.
static void edges_of(const char *name, const dq_sample *t) {
    if (t->kind != DQ_SAMPLE_SIGNED && t->bits != 12) return;
    const dqi_convert c = conversion(name, DQ_DTYPE_FP32);
    uint32_t most = 2 * (c.elements > 8 ? c.elements : 8) + 8 * c.elements;
    if (most > 96) most = 96;
    for (uint32_t n = 0; n <= most; n += c.elements)
        for (uint32_t offset = 0; offset < 8; offset += n % 3 + 1) {
            uint32_t bytes = n / c.elements * c.bytes;
            for (uint32_t i = 0; i < n; i++)
                codes[i] = (i * 2654435761u + offset) >> (32 - t->bits);
            uint8_t *src = malloc(bytes + offset + 1), *dst = malloc(4 * n + 8);
            if (!src || !dst) abort();
            uint8_t *at = src + 1 + offset; // the buffer ends with the elements
            model_pack(t, at, bytes, codes, n);
            for (uint32_t level = 0; level < 2; level++) {
                memset(dst, 0x5a, 4 * n + 8);
                if (!convert_at(level, t, &c, DQ_DTYPE_FP32, dst, at, n)) break;
                for (uint32_t i = 0; i < n; i++) {
                    float f;
                    memcpy(&f, dst + 4 * i, 4);
                    if (f == (float)model_value(t, codes[i])) continue;
                    fprintf(stderr, "%s [%u of %u], offset %u, level %u\n", name, i, n, offset, level);
                    DQ_EQ((int64_t)f, model_value(t, codes[i]));
                }
                for (uint32_t i = 0; i < 8; i++)
                    DQ_EQ(dst[4 * n + i], 0x5a);
            }
            free(src);
            free(dst);
        }
}

static void every_edge(void) { every_type(edges_of); }

// A tone of positive frequency has its peak at that frequency, not at its mirror.
static void tone_of(const char *name, const dq_sample *t) {
    enum { N = 960, AT = 37 };
    if (!t->complex || t->bits < 3 || t->bits > 24) return;
    const double top = ldexp(1, t->bits - 1) - 1, pi = acos(-1), turn = 2 * pi * AT / N;
    uint32_t bytes, elements;
    for (int i = 0; i < N; i++)
        for (int part = 0; part < 2; part++) {
            double v = rint(top * (part ? sin(turn * i) : cos(turn * i)));
            int64_t code = (int64_t)v + (t->kind == DQ_SAMPLE_OFFSET ? INT64_C(1) << (t->bits - 1) : 0);
            codes[2 * i + part] = (uint32_t)(code & ((INT64_C(1) << t->bits) - 1));
        }
    dq_sample_unit(t, &bytes, &elements);
    model_pack(t, packed, 2ull * N / elements * bytes, codes, 2 * N);
    const dqi_convert c = conversion(name, DQ_DTYPE_FP32);
    dqi_convert_bytes(&c, made, packed, 2 * N / c.elements * c.bytes);
    double ahead_re = 0, ahead_im = 0, mirror_re = 0, mirror_im = 0;
    for (int i = 0; i < N; i++) {
        float re, im;
        memcpy(&re, made + 8 * i, 4);
        memcpy(&im, made + 8 * i + 4, 4);
        double a = cos(turn * i), b = sin(turn * i);
        ahead_re += re * a + im * b, ahead_im += im * a - re * b;
        mirror_re += re * a - im * b, mirror_im += im * a + re * b;
    }
    double ahead = hypot(ahead_re, ahead_im) / N / top, mirror = hypot(mirror_re, mirror_im) / N / top;
    if (ahead > 0.8 && mirror < 0.05) return;
    fprintf(stderr, "%s: %.3f at the frequency, %.3f at its mirror\n", name, ahead, mirror);
    DQ_CHECK(ahead > 0.8 && mirror < 0.05);
}

static void every_tone(void) { every_type(tone_of); }

// ---- values -----------------------------------------------------------------------------------------------

// Every output of a 12-bit input without a scale, against the model of conversions.
static void outputs(void) {
    static const int all[] = {DQ_DTYPE_FP16,  DQ_DTYPE_BF16, DQ_DTYPE_FP32, DQ_DTYPE_FP64,
                              DQ_DTYPE_INT32, DQ_DTYPE_INT8, DQ_DTYPE_INT16};
    const dq_sample t = type_of("i12");
    for (uint32_t i = 0; i < 4096; i++)
        codes[i] = i;
    model_pack(&t, packed, 6144, codes, 4096);
    for (uint32_t k = 0; k < 7; k++) {
        const dqi_convert c = conversion("i12", all[k]);
        dqi_convert_bytes(&c, made, packed, 6144);
        for (uint32_t i = 0; i < 4096; i++) {
            int32_t v = (int32_t)model_value(&t, i);
            uint64_t got = 0, want = all[k] == DQ_DTYPE_INT16 ? (uint16_t)v : model_bits(v, all[k]);
            memcpy(&got, made + i * c.out_bytes, c.out_bytes);
            if (got != want) {
                DQ_EQ(all[k], 0);
                DQ_EQ(got, want);
                return;
            }
        }
    }
}

static double one(const char *type, int output, double scale, double offset, int full, const char *bytes) {
    dq_data_types t = {
        .sample = type_of(type), .output = output, .scale = scale, .offset = offset, .full_scale = full};
    const dqi_convert c = find(&t);
    uint8_t out[256 * 8];
    dqi_convert_bytes(&c, out, (const uint8_t *)bytes, c.bytes);
    float f;
    double d;
    int16_t h;
    uint16_t u;
    memcpy(&f, out, 4), memcpy(&d, out, 8), memcpy(&h, out, 2), memcpy(&u, out, 2);
    switch (output) {
    case DQ_DTYPE_FP32:
        return (double)f;
    case DQ_DTYPE_FP64:
        return d;
    case DQ_DTYPE_INT8:
        return (int8_t)out[0];
    case DQ_DTYPE_INT16:
        return h;
    default:
        return u;
    }
}

#define IS(got, want) DQ_CHECK(fabs((got) - (want)) < 1e-12)

static void scales(void) {
    IS(one("i8", DQ_DTYPE_FP32, 0.5, 0, 0, "\x81"), -63.5);
    IS(one("o8", DQ_DTYPE_FP32, 2, 0.5, 0, "\x80"), 1); // (0 + 0.5) * 2
    IS(one("i10", DQ_DTYPE_FP32, 0, 0, 1, "\x80\0\0\0\0"), -1);
    IS(one("u10", DQ_DTYPE_FP64, 0, 0, 1, "\xff\xc0\0\0\0"), 1023.0 / 1024);
    IS(one("i16be", DQ_DTYPE_INT8, 0.25, 0, 0, "\x00\x06"), 2); // 1.5, and 2.5: ties to even
    IS(one("i16be", DQ_DTYPE_INT8, 0.25, 0, 0, "\x00\x0a"), 2);
    IS(one("i16be", DQ_DTYPE_INT8, 1, 0, 0, "\x7f\xff"), 127);
    IS(one("i16le", DQ_DTYPE_INT16, 100, 0, 0, "\x00\x80"), -32768);
    IS(one("i32be", DQ_DTYPE_INT16, 1, 0, 0, "\x00\x01\x00\x00"), 32767);
    IS(one("u32be", DQ_DTYPE_FP32, 1, 0, 0, "\xff\xff\xff\xff"), 4294967296.0);
    IS(one("u32be", DQ_DTYPE_FP64, 1, 0, 0, "\xff\xff\xff\xff"), 4294967295.0);
    IS(one("i8", DQ_DTYPE_FP16, 1, 0, 1, "\x81"), 0xbbf0);        // -127/128
    IS(one("i8", DQ_DTYPE_FP16, ldexp(1, -24), 0, 0, "\x03"), 3); // subnormal
    IS(one("i8", DQ_DTYPE_FP16, 1e9, 0, 0, "\x01"), 0x7c00);      // infinity
    IS(one("i8", DQ_DTYPE_BF16, 0.5, 0, 0, "\x01"), 0x3f00);
}

// Floating-point elements: NaN stays NaN and is 0 as an integer, infinities stay or end at the limits.
static void floats(void) {
    static const double inf = INFINITY;
    IS(one("f32be", DQ_DTYPE_FP32, 0, 0, 0, "\xc0\x20\0\0"), -2.5);
    IS(one("f32le", DQ_DTYPE_FP64, 0.1, 1, 0, "\0\0\x20\xc0"), -1.5 * 0.1);
    IS(one("f64be", DQ_DTYPE_FP32, 2, 0, 1, "\x40\x09\x21\xfb\x54\x44\x2d\x18"), (float)0x1.921fb54442d18p+1);
    IS(one("f64le", DQ_DTYPE_INT16, 1e4, 0, 0, "\x18\x2d\x44\x54\xfb\x21\x09\x40"), 31416);
    IS(one("f64be", DQ_DTYPE_FP64, 1, 16777216, 0, "\x3f\xf0\0\0\0\0\0\0"), 16777217); // not in fp32
    IS(one("f16be", DQ_DTYPE_FP32, 0, 0, 0, "\x80\x01"), -0x1p-24);
    IS(one("f16le", DQ_DTYPE_FP32, 0, 0, 0, "\xff\x7b"), 65504);
    IS(one("f16be", DQ_DTYPE_FP16, 0, 0, 0, "\x03\xff"), 0x03ff); // subnormal
    IS(one("bf16be", DQ_DTYPE_FP32, 0, 0, 0, "\xbf\x80"), -1);
    IS(one("bf16le", DQ_DTYPE_BF16, 0, 0, 0, "\x80\xbf"), 0xbf80);
    IS(one("qf32be", DQ_DTYPE_INT8, 1, 0, 0, "\x3f\x80\0\0\x40\x20\0\0"), 2); // 2.5 is first: ties to even
    IS(one("f32be", DQ_DTYPE_INT8, 1, 0, 0, "\x43\0\0\0"), 127);
    IS(one("f32be", DQ_DTYPE_INT8, 0, 0, 0, "\x7f\xc0\0\0"), 0);
    IS(one("f16be", DQ_DTYPE_INT16, 0, 0, 0, "\xfc\x00"), -32768);
    IS(one("f64be", DQ_DTYPE_INT16, 0, 0, 0, "\x7f\xf0\0\0\0\0\0\0"), 32767);
    DQ_CHECK(isnan(one("f32be", DQ_DTYPE_FP32, 3, 1, 0, "\x7f\xc0\0\0")));
    DQ_CHECK(isnan(one("f16le", DQ_DTYPE_FP32, 0, 0, 0, "\x01\x7c")));
    DQ_CHECK(one("f32be", DQ_DTYPE_FP32, -1, 0, 0, "\x7f\x80\0\0") == -inf);
    DQ_CHECK(one("f16be", DQ_DTYPE_FP64, 0, 0, 0, "\x7c\x00") == inf);
    DQ_CHECK(one("f64be", DQ_DTYPE_FP32, 0, 0, 0, "\x7e\x37\xe4\x3c\x88\0\x75\x9c") == inf); // 1e300
    IS(one("f32be", DQ_DTYPE_FP16, 0, 0, 0, "\x7f\xc0\0\0"), 0x7e00);
    IS(one("f32be", DQ_DTYPE_BF16, 0, 0, 0, "\xff\x80\0\0"), 0xff80);
}

// Every number of 16 bits, as what it is by definition.
static void halves(void) {
    const dqi_convert c = conversion("f16be", DQ_DTYPE_FP32);
    for (uint32_t code = 0; code < 65536; code++) {
        const uint8_t src[] = {(uint8_t)(code >> 8), (uint8_t)code};
        uint32_t power = code >> 10 & 31, part = code & 1023;
        double want = power == 31  ? (part ? NAN : INFINITY)
                      : power == 0 ? ldexp(part, -24)
                                   : ldexp(part + 1024, (int)power - 25);
        float got;
        dqi_convert_bytes(&c, (uint8_t *)&got, src, 2);
        if (code >> 15) want = -want;
        if ((isnan(got) && isnan(want)) || ((double)got == want && !signbit(got) == !signbit(want))) continue;
        DQ_EQ(code, 0x10000);
        return;
    }
}

static void refused(dq_data_types t, const char *why) {
    dqi_convert c;
    dq_diag d = {{0}};
    DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_INVALID_PARAMETER);
    if (!strstr(d.text, why)) DQ_EQ_STR(d.text, why);
}

static void refusals(void) {
    static const double levels[256];
    refused((dq_data_types){.sample = type_of("f32be"), .output = DQ_DTYPE_BYTES},
            "no conversion of f32be to bytes");
    refused((dq_data_types){.sample = type_of("u32le"), .output = DQ_DTYPE_INT32}, "u32 a float");
    refused((dq_data_types){.sample = type_of("i8"), .output = DQ_DTYPE_BYTES}, "no conversion of");
    refused((dq_data_types){.sample = type_of("i10"), .output = DQ_DTYPE_FP32, .levels = levels},
            "levels are for types of up to 8 bits, not for i10");
    dqi_convert c = conversion("i8", DQ_DTYPE_FP32);
    DQ_EQ(dqi_convert_by_gpu(&c, "test", NULL), DQ_OK);
    c = conversion("o8", DQ_DTYPE_FP32);
    DQ_EQ(dqi_convert_by_gpu(&c, "test", NULL), DQ_OK);
    DQ_EQ(c.conversion, dqk_packed(DQ_DTYPE_FP32));
    c = conversion("f32be", DQ_DTYPE_FP32);
    DQ_EQ(dqi_convert_by_gpu(&c, "test", NULL), DQ_NOT_SUPPORTED);
}

// Payloads that are not whole units are found, whatever the width.
static void sizes(void) {
    static const struct {
        const char *type;
        uint32_t bytes, elements;
    } units[] = {{"i8", 1, 1},      {"ci8", 2, 2},        {"i4", 1, 2},        {"i12", 3, 2},
                 {"i10", 5, 4},     {"i12.w32le", 12, 8}, {"i10.pad32", 4, 3}, {"ci10.pad32", 8, 6},
                 {"u12.gev", 3, 2}, {"i12/16le", 2, 1},   {"bfp9", 28, 24},    {"ci16be", 4, 2},
                 {"i24be", 3, 1}};
    for (uint32_t k = 0; k < sizeof units / sizeof *units; k++) {
        const dqi_convert c = conversion(units[k].type, DQ_DTYPE_INT16);
        uint32_t n = 0, bytes = units[k].bytes;
        DQ_CHECK(dqi_convert_size(&c, 3 * bytes, &n));
        DQ_EQ(n, 3 * units[k].elements * 2);
        DQ_CHECK(bytes == 1 || !dqi_convert_size(&c, 3 * bytes + 1, &n));
        DQ_CHECK(bytes == 1 || !dqi_convert_size(&c, bytes - 1, &n));
    }
}

// ---- names ------------------------------------------------------------------------------------------------

static void same_name(const char *name, const dq_sample *t) {
    char again[DQ_SAMPLE_NAME];
    dq_sample_write(t, again);
    DQ_EQ_STR(again, name);
}

static void names(void) {
    static const char *const wrong[][2] = {
        {"i12le",
         "12 bits have no byte order (expected i12, high bit first; i12.lsb, low bit first; or i12/16le"},
        {"cu20be", "or cu20/32be, one element in 32 bits"},
        {"i16", "its bytes need an order (expected i16be or i16le)"},
        {"ci16", "(expected ci16be or ci16le)"},
        {"uint12", "the nearest one is u12"},
        {"i12lsb", "the nearest one is i12.lsb"},
        {"u8le", "the nearest one is u8"},
        {"u12.gve", "the nearest one is u12.gev"},
        {"", "not a valid sample type"},
        {"i0", "not a valid sample type"},
        {"i33", "not a valid sample type"},
        {"i12/16", "not a valid sample type"},
        {"i016le", "the nearest one is i16le"},
        {"a name that is far longer than any name of a type", "not a valid sample type"},
        {"i8.lsb", "the nearest one is"},
        {"i8.pad32", "the nearest one is"},
        {"i12.gev", "the nearest one is"},
        {"cbfp9", "not a valid sample type"},
    };
    every_type(same_name);
    for (uint32_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        dq_sample t;
        dq_diag d = {{0}};
        DQ_EQ(dq_sample_parse(wrong[k][0], &t, &d), DQ_INVALID_PARAMETER);
        if (!strstr(d.text, wrong[k][1])) DQ_EQ_STR(d.text, wrong[k][1]);
    }
    for (uint32_t i = 0; dq_sample_alias_row(i); i++) {
        const dq_sample t = type_of(dq_sample_alias_row(i)->text);
        same_name(dq_sample_alias_row(i)->words, &t);
    }
    DQ_CHECK(dq_sample_kind_row(DQ_SAMPLE_KINDS) == NULL && dq_sample_order_row(DQ_ORDERS) == NULL);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(names);
    DQ_RUN(the_vectors);
    DQ_RUN(the_long_vectors);
    DQ_RUN(groups_and_levels);
    DQ_RUN(every_code);
    DQ_RUN(every_edge);
    DQ_RUN(every_tone);
    DQ_RUN(outputs);
    DQ_RUN(scales);
    DQ_RUN(floats);
    DQ_RUN(halves);
    DQ_RUN(refusals);
    DQ_RUN(sizes);
    return dq_done();
}
