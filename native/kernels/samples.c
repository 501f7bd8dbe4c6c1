// samples.c: the tables of sample types, and the parser of their names.
#include "kernels/dq_samples.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- tables -----------------------------------------------------------------------------------------------

static const struct {
    dq_sample_row row;
    uint8_t least, most; // bits
} kinds[DQ_SAMPLE_KINDS] = {
    [DQ_SAMPLE_SIGNED] = {{"i", "two's complement"}, 1, 32},
    [DQ_SAMPLE_UNSIGNED] = {{"u", "unsigned"}, 1, 32},
    [DQ_SAMPLE_OFFSET] = {{"o", "offset binary: the value is code - 2^(bits-1)"}, 1, 32},
    [DQ_SAMPLE_FLOAT] = {{"f", "IEEE 754, 16, 32 or 64 bits"}, 16, 64},
    [DQ_SAMPLE_BRAIN] = {{"bf", "bfloat, 16 bits"}, 16, 16},
    [DQ_SAMPLE_BLOCK] =
        {{"bfp", "block floating point: a byte whose low half is the exponent, then 24 mantissas"}, 8, 16},
};

static const struct {
    dq_sample_row row;
    uint8_t word; // bits
} orders[DQ_ORDERS] = {
    [DQ_ORDER_MSB] = {{"", "one stream of bits, from the highest bit of each byte"}, 0},
    [DQ_ORDER_LSB] = {{".lsb", "one stream of bits, from the lowest bit of each byte"}, 0},
    [DQ_ORDER_BE] = {{"be", "whole bytes, the highest first"}, 0},
    [DQ_ORDER_LE] = {{"le", "whole bytes, the lowest first"}, 0},
    [DQ_ORDER_W16LE] = {{".w16le", "from the highest bit of 16-bit words, whose lowest byte is first"}, 16},
    [DQ_ORDER_W32LE] = {{".w32le", "from the highest bit of 32-bit words, whose lowest byte is first"}, 32},
    [DQ_ORDER_W64LE] = {{".w64le", "from the highest bit of 64-bit words, whose lowest byte is first"}, 64},
    [DQ_ORDER_PAD32] = {{".pad32", "from the highest bit; an element never crosses a 32-bit word"}, 32},
    [DQ_ORDER_GEV] = {{".gev", "two elements in 3 bytes, as Mono10Packed and Mono12Packed"}, 0},
};

static const dq_sample_row aliases[] = {
    {"int4", "i4"},
    {"int8", "i8"},
    {"int16", "i16le"},
    {"int32", "i32le"},
    {"uint8", "u8"},
    {"uint16", "u16le"},
    {"fp16", "f16le"},
    {"bf16", "bf16le"},
    {"fp32", "f32le"},
    {"fp64", "f64le"},
    {"sc8", "ci8"},
    {"sc16", "ci16le"},
    {"fc32", "cf32le"},
    {"cs8", "ci8"},
    {"cs16", "ci16le"},
    {"ri8", "i8"},
    {"ru8", "u8"},
    {"ri16_le", "i16le"},
    {"ri16_be", "i16be"},
    {"ru16_le", "u16le"},
    {"ru16_be", "u16be"},
    {"rf32_le", "f32le"},
    {"ci16_le", "ci16le"},
    {"ci16_be", "ci16be"},
    {"cu16_le", "cu16le"},
    {"cu16_be", "cu16be"},
    {"ci32_le", "ci32le"},
    {"cf32_le", "cf32le"},
    {"Mono8", "u8"},
    {"Mono10", "u10/16le"},
    {"Mono12", "u12/16le"},
    {"Mono14", "u14/16le"},
    {"Mono16", "u16le"},
    {"Mono10p", "u10.lsb"},
    {"Mono12p", "u12.lsb"},
    {"Mono10Packed", "u10.gev"},
    {"Mono12Packed", "u12.gev"},
};
enum { ALIASES = sizeof aliases / sizeof *aliases };

const dq_sample_row *dq_sample_kind_row(uint32_t i) { return i < DQ_SAMPLE_KINDS ? &kinds[i].row : NULL; }
const dq_sample_row *dq_sample_order_row(uint32_t i) { return i < DQ_ORDERS ? &orders[i].row : NULL; }
const dq_sample_row *dq_sample_alias_row(uint32_t i) { return i < ALIASES ? &aliases[i] : NULL; }

// ---- names ------------------------------------------------------------------------------------------------

// Advances *at past a word if it is there.
static bool take(const char **at, const char *word) {
    size_t n = strlen(word);
    bool there = strncmp(*at, word, n) == 0;
    if (there) *at += n;
    return there;
}

// Reads a number of one or two digits without leading zeros; returns false if there is none.
static bool take_number(const char **at, uint8_t *out) {
    const char *p = *at;
    if (*p < '1' || *p > '9') return false;
    uint32_t v = 0;
    for (; *p >= '0' && *p <= '9' && v < 100; p++)
        v = 10 * v + (uint32_t)(*p - '0');
    *out = (uint8_t)v;
    *at = p;
    return v < 100;
}

// Reads the parts of a name, whether they fit each other or not.
static bool read_parts(const char *name, dq_sample *t) {
    static const uint8_t longest_first[] = {DQ_SAMPLE_BLOCK,    DQ_SAMPLE_BRAIN,  DQ_SAMPLE_FLOAT,
                                            DQ_SAMPLE_UNSIGNED, DQ_SAMPLE_OFFSET, DQ_SAMPLE_SIGNED};
    const char *at = name;
    *t = (dq_sample){.order = DQ_ORDER_MSB};
    if (strlen(name) >= DQ_SAMPLE_NAME) return false;
    t->complex = take(&at, "c") ? 1 : take(&at, "q") ? 2 : 0;
    uint32_t k = 0;
    while (k < DQ_SAMPLE_KINDS && !take(&at, kinds[longest_first[k]].row.text))
        k++;
    if (k == DQ_SAMPLE_KINDS) return false;
    t->kind = longest_first[k];
    if (!take_number(&at, &t->bits)) return false;
    if (take(&at, "/")) {
        if (!take_number(&at, &t->container)) return false;
        t->high = take(&at, "h");
    }
    for (uint8_t o = DQ_ORDER_LSB; o < DQ_ORDERS && *at; o++)
        if (strcmp(at, orders[o].row.text) == 0) {
            t->order = o;
            return true;
        }
    return *at == 0;
}

static bool whole_bytes(const dq_sample *t) { return t->order == DQ_ORDER_BE || t->order == DQ_ORDER_LE; }

// Whether the parts of a name fit each other. Sets the container of whole bytes, and that blocks are complex.
static bool complete(dq_sample *t) {
    const uint32_t bits = t->bits;
    if (bits < kinds[t->kind].least || bits > kinds[t->kind].most) return false;
    if (t->kind == DQ_SAMPLE_BLOCK) {
        bool plain = t->complex == 0 && t->container == 0 && t->order == DQ_ORDER_MSB;
        t->complex = 1;
        return plain;
    }
    const bool sized = bits == 16 || bits == 24 || bits == 32 || bits == 64;
    if (t->kind == DQ_SAMPLE_FLOAT && (!sized || bits == 24)) return false;
    if (t->kind >= DQ_SAMPLE_FLOAT && (t->container || !whole_bytes(t))) return false;
    if (t->container)
        return whole_bytes(t) && bits < t->container && (t->container == 16 || t->container == 32);
    if (whole_bytes(t)) {
        t->container = t->bits;
        return sized;
    }
    switch (t->order) {
    case DQ_ORDER_MSB:
        return !sized;
    case DQ_ORDER_LSB:
        return bits % 8 != 0;
    case DQ_ORDER_PAD32:
        return 32 % bits != 0;
    case DQ_ORDER_GEV:
        return t->kind == DQ_SAMPLE_UNSIGNED && t->complex == 0 && (bits == 10 || bits == 12);
    default:
        return bits <= orders[t->order].word;
    }
}

void dq_sample_write(const dq_sample *t, char name[DQ_SAMPLE_NAME]) {
    static const char *const prefixes[] = {"", "c", "q"};
    char container[8] = "";
    if (whole_bytes(t) && t->container != t->bits)
        snprintf(container, sizeof container, "/%u%s", t->container, t->high ? "h" : "");
    snprintf(name, DQ_SAMPLE_NAME, "%s%s%u%s%s", t->kind == DQ_SAMPLE_BLOCK ? "" : prefixes[t->complex],
             kinds[t->kind].row.text, t->bits, container, orders[t->order].row.text);
}

// ---- errors -----------------------------------------------------------------------------------------------

// Formats an error, which core/err.h would do: this folder is also built without the others.
__attribute__((format(printf, 2, 3))) static int invalid(dq_diag *diag, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(diag->text, sizeof diag->text, fmt, args);
    va_end(args);
    return DQ_INVALID_PARAMETER;
}

static uint32_t cost(char c) { return c >= '0' && c <= '9' ? 3 : 1; }

// Returns how far b, of less than 32 bytes, is from a: the letters to add, remove or change. A digit, and
// another first letter, count three times.
static uint32_t distance(const char *a, const char *b) {
    uint32_t row[32] = {0}, n = (uint32_t)strlen(b);
    for (uint32_t k = 0; k < n; k++)
        row[k + 1] = row[k] + cost(b[k]);
    for (uint32_t i = 0; a[i]; i++) {
        uint32_t corner = row[0];
        row[0] += cost(a[i]);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t least = corner + (a[i] == b[k] ? 0 : cost(a[i]) > cost(b[k]) ? cost(a[i]) : cost(b[k]));
            corner = row[k + 1];
            if (row[k + 1] + cost(a[i]) < least) least = row[k + 1] + cost(a[i]);
            if (row[k] + cost(b[k]) < least) least = row[k] + cost(b[k]);
            row[k + 1] = least;
        }
    }
    return row[n] + (a[0] == b[0] ? 0 : 2);
}

// Writes the valid name that is nearest to a wrong one; of several the first in the order of the tables.
static void nearest(const char *wrong, char name[DQ_SAMPLE_NAME]) {
    static const char *const prefixes[] = {"", "c", "q"};
    static const char *const containers[] = {"", "/16", "/16h", "/32", "/32h"};
    uint32_t best = UINT32_MAX, all = DQ_SAMPLE_KINDS * 64 * 5 * DQ_ORDERS * 3;
    for (uint32_t i = 0; i < all; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s%s%u%s%s", prefixes[i % 3], kinds[i / 3 % DQ_SAMPLE_KINDS].row.text,
                 i / 3 / DQ_SAMPLE_KINDS % 64 + 1, containers[i / 3 / DQ_SAMPLE_KINDS / 64 % 5],
                 orders[i / 3 / DQ_SAMPLE_KINDS / 64 / 5].row.text);
        dq_sample t;
        uint32_t d;
        if (!read_parts(text, &t) || !complete(&t) || (d = distance(wrong, text)) >= best) continue;
        best = d;
        memcpy(name, text, DQ_SAMPLE_NAME);
    }
}

static int not_a_type(const char *name, dq_diag *diag) {
    char near[DQ_SAMPLE_NAME] = "";
    dq_sample t, same;
    bool parts = read_parts(name, &t);
    if (parts && t.kind <= DQ_SAMPLE_OFFSET && t.bits >= 1 && t.bits <= 32 && t.bits % 8 != 0 &&
        whole_bytes(&t) && t.container == 0) {
        const char *k = kinds[t.kind].row.text, *c = t.complex == 2 ? "q" : t.complex ? "c" : "";
        return invalid(diag,
                       "\"%s\" is not a valid sample type: %u bits have no byte order (expected %s%s%u, high "
                       "bit first; %s%s%u.lsb, low bit first; or %s%s%u/%u%s, one element in %u bits)",
                       name, t.bits, c, k, t.bits, c, k, t.bits, c, k, t.bits, t.bits < 16 ? 16 : 32,
                       orders[t.order].row.text, t.bits < 16 ? 16 : 32);
    }
    same = t;
    same.order = DQ_ORDER_BE;
    if (parts && t.order == DQ_ORDER_MSB && complete(&same)) {
        char le[DQ_SAMPLE_NAME];
        dq_sample_write(&same, near);
        same.order = DQ_ORDER_LE;
        dq_sample_write(&same, le);
        return invalid(diag, "\"%s\" is not a valid sample type: its bytes need an order (expected %s or %s)",
                       name, near, le);
    }
    nearest(name, near);
    return invalid(diag,
                   "\"%.40s\" is not a valid sample type (expected [c|q] KIND BITS [/CONTAINER [h]] [le|be] "
                   "[.ORDER], such as i8, ci16le or u12.lsb): hint: the nearest one is %s",
                   name, near);
}

int dq_sample_parse(const char *name, dq_sample *out, dq_diag *diag) {
    for (uint32_t i = 0; i < ALIASES; i++)
        if (strcmp(aliases[i].text, name) == 0) return dq_sample_parse(aliases[i].words, out, diag);
    if (read_parts(name, out) && complete(out)) return DQ_OK;
    *out = (dq_sample){0};
    return diag ? not_a_type(name, diag) : DQ_INVALID_PARAMETER;
}

// ---- units ------------------------------------------------------------------------------------------------

static uint32_t common(uint32_t a, uint32_t b) { return b == 0 ? a : common(b, a % b); }

void dq_sample_unit(const dq_sample *t, uint32_t *bytes, uint32_t *elements) {
    const uint32_t bits = t->bits;
    uint32_t word = 8, each = bits;
    if (t->kind == DQ_SAMPLE_BLOCK) {
        *bytes = 1 + DQ_SAMPLE_GROUP * bits / 8;
        *elements = DQ_SAMPLE_GROUP;
        return;
    }
    if (whole_bytes(t)) each = t->container;
    if (t->order == DQ_ORDER_GEV) each = 12;
    if (orders[t->order].word) word = orders[t->order].word;
    if (t->order == DQ_ORDER_PAD32) {
        *bytes = 4;
        *elements = 32 / bits;
    } else {
        uint32_t g = common(each, word);
        *bytes = each / g * word / 8;
        *elements = word / g;
    }
    if (t->order == DQ_ORDER_GEV) *bytes = 3, *elements = 2;
    if (t->complex && *elements % 2 == 1) *bytes *= 2, *elements *= 2;
}
