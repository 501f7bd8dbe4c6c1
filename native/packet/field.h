// field.h: reading and writing one field of a packet, and the names of the fields that every format knows.
//
// A field is bits at an offset from a header (see dq_field). The table in field.c is the only list of names:
// filters, columns, rewrites and the documentation all read it.
#ifndef DQI_FIELD_H
#define DQI_FIELD_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"
#include "packet/packet.h"

typedef struct dqi_named_field {
    const char *name;
    dq_field field;
    const char *help; // what it is, with its unit
} dqi_named_field;

// The table of names; *n gets its length. Static; any thread.
const dqi_named_field *dqi_field_table(uint32_t *n);

// Refuses a field that dqi_field_get could not read: DQ_INVALID_PARAMETER and the reason in diag (may be
// NULL).
int dqi_field_check(const dq_field *f, dq_diag *diag);

// Reads a checked field of the packet of len bytes at p, parsed into *pkt, into *v: an unsigned value, or a
// signed one sign-extended. False, and *v untouched, where the packet hasn't got the field or ends before it.
// Never blocks.
bool dqi_field_get(const uint8_t *p, uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t *v);

// The width (1..64) bits that start at a bit offset from p, most significant first. The caller has checked
// that they are there. Never blocks.
uint64_t dqi_bits_get(const uint8_t *p, uint64_t bit, uint32_t width);

// The same, counted and valued from the least significant bit of the first byte on.
uint64_t dqi_bits_get_le(const uint8_t *p, uint64_t bit, uint32_t width);

// Where a checked field lies: bits from p, and how many (for metadata other than f->bit_width says). False
// where the packet hasn't got it, or it is not part of the packet.
bool dqi_field_place(uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t *bit, uint32_t *width);

// Writes the low bits of v into a checked field. False where the packet hasn't got it, or it is not part of
// the packet (DQ_META_LEN and the like). Checksums stay as they are; *pkt is not parsed again. Never blocks.
bool dqi_field_set(uint8_t *p, uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t v);

// True when the field can be read without parsing the packet.
static inline bool dqi_field_unparsed(const dq_field *f) {
    return f->need == 0 &&
           (f->base == DQ_BASE_START || (f->base == DQ_BASE_META && f->meta <= DQ_META_INDEX));
}

#endif
