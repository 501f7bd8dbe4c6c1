// block_format.c: fixed offsets, little endian; BLOCKS.md documents the tables.
#include "writer/block_format.h"
#include "core/byteorder.h"
#include "core/dq_burst.h"
#include "reorder/dq_reorder.h"

#include <string.h>

#define VERSION     1
#define PRESENT_AT  128 // in the block header
#define TEXT_AT     512 // in the file header
#define DTYPE_NAME  16
#define WRITER_NAME 64

static uint64_t pages(uint64_t n) { return (n + DQI_BLOCK_PAGE - 1) / DQI_BLOCK_PAGE * DQI_BLOCK_PAGE; }

dqi_block_shape dqi_block_shape_of(const dq_aggregate *a, bool by_slot) {
    dqi_block_shape s = {.slots = a->slots,
                         .slot_bytes = a->slot_bytes,
                         .cells = a->cells,
                         .cell_bytes = a->cell_bytes,
                         .dtype = a->dtype,
                         .extra = a->extra != NULL,
                         .by_slot = by_slot};
    s.present_bits = by_slot ? s.slots : s.cells;
    uint32_t n = PRESENT_AT + (s.present_bits + 63) / 64 * 8;
    s.extra_at = s.extra ? n : 0;
    s.header_bytes = (uint32_t)pages(n + (s.extra ? (uint64_t)s.slots * 8 : 0));
    s.data_bytes = (uint64_t)s.slots * s.slot_bytes;
    s.block_bytes = s.header_bytes + pages(s.data_bytes);
    return s;
}

bool dqi_block_same_shape(const dqi_block_shape *a, const dqi_block_shape *b) {
    return a->slots == b->slots && a->slot_bytes == b->slot_bytes && a->cells == b->cells &&
           a->cell_bytes == b->cell_bytes && a->dtype == b->dtype && a->extra == b->extra &&
           a->by_slot == b->by_slot;
}

static void put_text(uint8_t *dst, const char *text, size_t max) { memcpy(dst, text, strnlen(text, max)); }

void dqi_block_put_file_header(uint8_t *dst, const dqi_block_shape *s, const dqi_block_file_header *h) {
    memset(dst, 0, DQI_BLOCK_PAGE);
    memcpy(dst, "DQBATCH", 8);
    dqi_put_le32(dst + 8, VERSION);
    dqi_put_le32(dst + 12, DQI_BLOCK_PAGE);
    dqi_put_le64(dst + 16, s->block_bytes);
    dqi_put_le32(dst + 24, s->header_bytes);
    dqi_put_le32(dst + 28, s->slots);
    dqi_put_le32(dst + 32, s->slot_bytes);
    dqi_put_le32(dst + 36, s->cells);
    dqi_put_le32(dst + 40, s->cell_bytes);
    dqi_put_le32(dst + 44, (uint32_t)s->dtype);
    put_text(dst + 48, dq_dtype_name(s->dtype), DTYPE_NAME);
    dqi_put_le32(dst + 64, s->present_bits);
    dqi_put_le32(dst + 68, PRESENT_AT);
    dqi_put_le32(dst + 72, s->extra_at);
    dqi_put_le32(dst + 76, (uint32_t)h->clock);
    dqi_put_le64(dst + 80, (uint64_t)h->created_ns);
    dqi_put_le64(dst + 88, h->index);
    put_text(dst + 96, h->writer, WRITER_NAME);
    dqi_put_le32(dst + 160, TEXT_AT);
    dqi_put_le32(dst + 164, (uint32_t)strnlen(h->text, DQI_BLOCK_TEXT));
    put_text(dst + TEXT_AT, h->text, DQI_BLOCK_TEXT);
}

static bool bit(const uint64_t *map, uint32_t i) { return map[i / 64] >> i % 64 & 1; }

// Sets the bits of slots whose cells are all present.
static void put_slots(uint8_t *dst, const dq_aggregate *a) {
    uint32_t each = a->cells / a->slots;
    for (uint32_t slot = 0; slot < a->slots; slot++) {
        bool whole = true;
        for (uint32_t c = slot * each; c < (slot + 1) * each; c++)
            whole &= bit(a->present, c);
        dst[slot / 8] |= (uint8_t)(whole << slot % 8);
    }
}

void dqi_block_put_header(uint8_t *dst, const dqi_block_shape *s, const dq_aggregate *a) {
    memset(dst, 0, s->header_bytes);
    memcpy(dst, "BATCH", 6);
    dqi_put_le64(dst + 8, a->batch_id);
    dqi_put_le64(dst + 16, a->ordinal);
    dqi_put_le64(dst + 24, (uint64_t)a->first_ns);
    dqi_put_le64(dst + 32, (uint64_t)a->last_ns);
    dqi_put_le32(dst + 40, a->packets);
    dqi_put_le32(dst + 44, a->present_cells);
    dqi_put_le32(dst + 48, a->flags);
    dqi_put_le32(dst + 52, (uint32_t)a->fill);
    dqi_put_le64(dst + 56, s->data_bytes);
    if (s->by_slot) put_slots(dst + PRESENT_AT, a);
    for (uint32_t i = 0; !s->by_slot && i < (s->cells + 63) / 64; i++)
        dqi_put_le64(dst + PRESENT_AT + 8 * (size_t)i, a->present[i]);
    for (uint32_t i = 0; s->extra && i < s->slots; i++)
        dqi_put_le64(dst + s->extra_at + 8 * (size_t)i, a->extra[i]);
}
