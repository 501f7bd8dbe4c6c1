// field.h: reads and writes single fields of packets, and the table of predefined field names.
//
// A field is bits at an offset from a header (see dq_field). The table in field.c is the only list of names:
// filters, columns, rewrites and the documentation use it.
#ifndef DQI_FIELD_H
#define DQI_FIELD_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"
#include "packet/packet.h"

typedef struct dqi_named_field {
    const char *name;
    dq_field field;
    const char *help; // description, with the unit
} dqi_named_field;

// Returns the table of names; *n is set to its length. Static; any thread.
const dqi_named_field *dqi_field_table(uint32_t *n);

// Checks that dqi_field_get can read the field; else returns DQ_INVALID_PARAMETER and the reason in diag (may
// be NULL).
int dqi_field_check(const dq_field *f, dq_diag *diag);

// Reads a checked field of the packet of len bytes at p, parsed into *pkt, into *v: an unsigned value, or a
// sign-extended one. Returns false and leaves *v unchanged if the packet lacks the field or ends before it.
// Never blocks.
bool dqi_field_get(const uint8_t *p, uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t *v);

// Returns the width (1..64) bits at a bit offset from p, most significant first. The caller has checked that
// they are inside the packet. Never blocks.
uint64_t dqi_bits_get(const uint8_t *p, uint64_t bit, uint32_t width);

// Does the same, with bits counted from the least significant bit of the first byte.
uint64_t dqi_bits_get_le(const uint8_t *p, uint64_t bit, uint32_t width);

// Locates a checked field: its first bit from p and its width (which for metadata can differ from
// f->bit_width). Returns false if the packet lacks it, or it is not stored in the packet.
bool dqi_field_place(uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t *bit, uint32_t *width);

// Writes the low bits of v into a checked field. Returns false if the packet lacks it, or it is not stored in
// the packet (as DQ_META_LEN). Does not update checksums or *pkt. Never blocks.
bool dqi_field_set(uint8_t *p, uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t v);

// Reports whether the field can be read without parsing the packet.
static inline bool dqi_field_unparsed(const dq_field *f) {
    return f->need == 0 &&
           (f->base == DQ_BASE_START || (f->base == DQ_BASE_META && f->meta <= DQ_META_INDEX));
}

#endif
