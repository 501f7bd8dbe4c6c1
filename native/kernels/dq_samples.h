// dq_samples.h: types of samples by name, such as "ci12.w32le": how elements are packed into bytes.
//
// A name is [c|q] KIND BITS [/CONTAINER [h]] [le|be] [.ORDER]; docs/samples.md describes its parts.
#ifndef DQ_SAMPLES_H
#define DQ_SAMPLES_H

#include "core/dq_core.h"

typedef enum dq_sample_kind {
    DQ_SAMPLE_SIGNED, // two's complement
    DQ_SAMPLE_UNSIGNED,
    DQ_SAMPLE_OFFSET, // code - 2^(bits-1)
    DQ_SAMPLE_FLOAT,
    DQ_SAMPLE_BRAIN, // bfloat
    DQ_SAMPLE_BLOCK, // block floating point: an exponent, then 24 mantissas
    DQ_SAMPLE_KINDS
} dq_sample_kind;

typedef enum dq_sample_order {
    DQ_ORDER_MSB,   // one stream of bits, from the highest bit of each byte
    DQ_ORDER_LSB,   // one stream of bits, from the lowest bit of each byte
    DQ_ORDER_BE,    // containers of whole bytes, the highest first
    DQ_ORDER_LE,    // containers of whole bytes, the lowest first
    DQ_ORDER_W16LE, // from the highest bit of words of 16, 32 or 64 bits, whose lowest byte is first
    DQ_ORDER_W32LE,
    DQ_ORDER_W64LE,
    DQ_ORDER_PAD32, // as MSB, but no element crosses a word of 32 bits
    DQ_ORDER_GEV,   // the packed pixels of GigE Vision 1: two elements in 3 bytes
    DQ_ORDERS
} dq_sample_order;

// A type of samples. All zero: none.
typedef struct dq_sample {
    uint8_t kind, bits, order; // dq_sample_kind; bits of an element, of one part if complex; dq_sample_order
    uint8_t container, high;   // with BE and LE: bits of a container; 1: the value is in its high end
    uint8_t complex;           // 1: pairs of real and imaginary part; 2: the imaginary part is first
} dq_sample;

#define DQ_SAMPLE_NAME  16 // bytes of a name with its end
#define DQ_SAMPLE_GROUP 24 // mantissas that share an exponent

// Sets *out to the type of that name or alias. INVALID_PARAMETER: not a type; the text has the nearest one.
int dq_sample_parse(const char *name, dq_sample *out, dq_diag *diag);
// Writes the name of a type to name.
void dq_sample_write(const dq_sample *t, char name[DQ_SAMPLE_NAME]);
// Computes the smallest whole unit of a type: its bytes, and the elements in it.
void dq_sample_unit(const dq_sample *t, uint32_t *bytes, uint32_t *elements);

// Computes the number of whole elements in n bytes, of both parts if complex.
uint64_t dq_sample_elements(const dq_sample *t, uint64_t n);
// Computes the number of bytes that n elements take.
uint64_t dq_sample_bytes(const dq_sample *t, uint64_t n);

// Computes the values of n elements of src, which holds them: (v + offset) * scale, where v is the number of
// an element, or levels[code], 2^bits of them; NULL: none, and none for types of more than 8 bits. The real
// part of complex samples is first.
void dq_sample_values(const dq_sample *t, double scale, double offset, const double *levels,
                      const uint8_t *src, uint64_t n, double *out);
// Counts the codes of n elements of src: counts[code], of 2^bits codes. INVALID_PARAMETER: floating-point
// types, and types of more than 16 bits.
int dq_sample_count(const dq_sample *t, const uint8_t *src, uint64_t n, uint64_t *counts);

// A row of the tables that documents list: a part of names and its meaning, or an alias and its type.
typedef struct dq_sample_row {
    const char *text, *words;
} dq_sample_row;

// Return the i-th kind, order (one without text first) and alias. NULL: past the last.
const dq_sample_row *dq_sample_kind_row(uint32_t i);
const dq_sample_row *dq_sample_order_row(uint32_t i);
const dq_sample_row *dq_sample_alias_row(uint32_t i);

#endif
