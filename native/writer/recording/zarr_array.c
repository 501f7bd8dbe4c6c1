// zarr_array.c: zarr.json, the keys of chunks, and the index of a shard.
//
// Codec sharding_indexed: an inner chunk is the data of one block, and the index behind the last block has
// the offset and the length of each. Zarr permits unused bytes between inner chunks, such as headers of
// blocks.
#include "writer/recording/zarr_array.h"
#include "core/byteorder.h"
#include "reorder/dq_reorder.h"
#include "writer/recording/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRY    16 // bytes of an entry of the index
#define CHECKSUM 4
#define SUFFIX   ".dqb"

// Data types of elements by dtype. 4-bit integers stay bytes, and bf16 stays 16-bit integers: Zarr has
// neither.
static const char *const elements[] = {
    [DQ_DTYPE_BYTES] = "uint8", [DQ_DTYPE_INT4] = "uint8",   [DQ_DTYPE_INT8] = "int8",
    [DQ_DTYPE_INT16] = "int16", [DQ_DTYPE_INT32] = "int32",  [DQ_DTYPE_FP16] = "float16",
    [DQ_DTYPE_BF16] = "uint16", [DQ_DTYPE_FP32] = "float32", [DQ_DTYPE_FP64] = "float64",
};

static const char *element_of(const dqi_zarr_array *z) {
    return z->conf->element[0] ? z->conf->element : elements[z->shape.dtype];
}

static uint32_t element_bytes(const char *element) {
    return (uint32_t)atoi(element + strcspn(element, "0123456789")) / 8;
}

uint32_t dqi_zarr_each(const dq_writer_conf *c, const dqi_block_shape *s) {
    uint64_t n = (s->block_bytes - CHECKSUM - 1) / ENTRY;
    if (n > DQI_ZARR_BLOCKS) n = DQI_ZARR_BLOCKS;
    if (c->rotate_packets && c->rotate_packets < n) n = c->rotate_packets;
    if (c->rotate_bytes) {
        uint64_t around = DQI_BLOCK_PAGE + CHECKSUM;
        uint64_t fit = c->rotate_bytes > around ? (c->rotate_bytes - around) / (s->block_bytes + ENTRY) : 0;
        if (fit < n) n = fit > 0 ? fit : 1;
    }
    return (uint32_t)n;
}

uint64_t dqi_zarr_index_bytes(uint32_t each) { return (uint64_t)each * ENTRY + CHECKSUM; }

void dqi_zarr_put_index(uint8_t *dst, const dqi_zarr_array *z, const dqi_zarr_block *blocks, uint32_t n) {
    for (uint32_t i = 0; i < n; i++, dst += ENTRY) {
        bool there = blocks[i].at != DQI_ZARR_NONE;
        dqi_put_le64(dst, there ? blocks[i].at + z->shape.header_bytes : DQI_ZARR_NONE);
        dqi_put_le64(dst + 8, there ? z->shape.data_bytes : DQI_ZARR_NONE);
    }
}

void dqi_zarr_path(const char *file, char *buf, size_t len) {
    snprintf(buf, len, "%.*s.zarr", (int)(strlen(file) - strlen(SUFFIX)), file);
}

// ---- zarr.json --------------------------------------------------------------------------------------------

// Writes the extents of an array or chunk of this many blocks.
static void put_extents(FILE *f, const dqi_zarr_array *z, const char *key, uint64_t blocks) {
    uint32_t parts = z->conf->two_parts ? 2 : 1;
    fprintf(f, "\"%s\":[%" PRIu64 ",%" PRIu32 ",%" PRIu32 "%s]", key, blocks, z->shape.slots,
            z->shape.slot_bytes / element_bytes(element_of(z)) / parts, parts == 2 ? ",2" : "");
}

// Returns the value of elements of missing blocks: that of missing cells if it is an integer, otherwise 0.
static int64_t fill_value(const dqi_zarr_array *z) {
    const char *element = element_of(z);
    uint32_t bits = 8 * element_bytes(element);
    if (z->fill < 0 || element[0] == 'f' || bits > 32) return 0;
    uint64_t v = (uint64_t)z->fill * 0x01010101 & ((UINT64_C(1) << bits) - 1);
    bool negative = element[0] == 'i' && v >> (bits - 1);
    return negative ? (int64_t)v - (INT64_C(1) << bits) : (int64_t)v;
}

static void put_gaps(FILE *f, const char *key, const dqi_zarr_gap *gaps, uint32_t n) {
    fprintf(f, ",\n\"%s\":[", key);
    for (uint32_t i = 0; i < n; i++)
        fprintf(f, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", gaps[i].first, gaps[i].n);
    fputc(']', f);
}

static void put_attributes(FILE *f, const dqi_zarr_array *z) {
    fprintf(f, "\"attributes\":{\"first_ordinal\":%" PRIu64, z->origin);
    if (z->start_ns != DQ_NO_TIME) {
        fputs(",\"start_time\":\"", f);
        dqi_recording_put_time(f, z->start_ns);
        fprintf(f, "\",\"start_ns\":%" PRId64, z->start_ns);
    }
    fprintf(f, "%s%s", z->conf->attributes[0] ? "," : "", z->conf->attributes);
    put_gaps(f, "missing_blocks", z->missing, z->n_missing);
    put_gaps(f, "incomplete_blocks", z->cut, z->n_cut);
    fprintf(f, ",\n\"unlisted_gaps\":%" PRIu64 "}", z->unlisted);
}

static void put_document(FILE *f, const void *object) {
    const dqi_zarr_array *z = object;
    const char *order = z->conf->big_endian ? "big" : "little";
    fputs("{\"zarr_format\":3,\"node_type\":\"array\",", f);
    put_extents(f, z, "shape", z->count);
    fprintf(f, ",\"data_type\":\"%s\",\"fill_value\":%" PRId64 ",\n", element_of(z), fill_value(z));
    fputs("\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{", f);
    put_extents(f, z, "chunk_shape", z->each);
    fputs("}},\n\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\".\"}},\n"
          "\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{",
          f);
    put_extents(f, z, "chunk_shape", 1);
    fprintf(f,
            ",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"%s\"}}],"
            "\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},{\"name\":"
            "\"crc32c\"}],"
            "\"index_location\":\"end\"}}],\n\"dimension_names\":[\"block\",\"slot\",\"sample\"%s],\n",
            order, z->conf->two_parts ? ",\"re_im\"" : "");
    put_attributes(f, z);
    fputs("}\n", f);
}

static int put_metadata(const dqi_zarr_array *z) {
    char path[sizeof z->path + sizeof "/zarr.json"];
    snprintf(path, sizeof path, "%s/zarr.json", z->path);
    return dqi_recording_replace(path, put_document, z);
}

// ---- folder -----------------------------------------------------------------------------------------------

int dqi_zarr_create(const dqi_zarr_array *z) {
    if (mkdir(z->path, 0777) != 0) return -errno;
    int err = put_metadata(z);
    if (err != 0) rmdir(z->path);
    return err;
}

static void list_gap(dqi_zarr_array *z, dqi_zarr_gap *gaps, uint32_t *n, uint64_t first, uint64_t count) {
    if (count == 0) return;
    if (*n == DQI_ZARR_LISTED)
        z->unlisted++;
    else
        gaps[(*n)++] = (dqi_zarr_gap){first, count};
}

// Adds the shard's blocks to the array's extent and lists.
static void note_blocks(dqi_zarr_array *z, uint64_t shard, const dqi_zarr_block *blocks) {
    for (uint32_t i = 0; i < z->each; i++) {
        uint64_t at = shard * z->each + i;
        if (blocks[i].at == DQI_ZARR_NONE) continue;
        list_gap(z, z->missing, &z->n_missing, z->count, at - z->count);
        list_gap(z, z->cut, &z->n_cut, at, blocks[i].missing);
        z->count = at + 1;
    }
}

int dqi_zarr_add_shard(dqi_zarr_array *z, uint64_t shard, const char *file, const dqi_zarr_block *blocks) {
    char key[sizeof z->path + 40], target[sizeof z->path + 3];
    const char *slash = strrchr(file, '/');
    snprintf(target, sizeof target, "../%s", slash ? slash + 1 : file);
    snprintf(key, sizeof key, "%s/c.%" PRIu64 ".0.0%s", z->path, shard, z->conf->two_parts ? ".0" : "");
    if (symlink(target, key) != 0) return -errno;
    note_blocks(z, shard, blocks);
    return put_metadata(z);
}
