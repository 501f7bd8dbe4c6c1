// zarr_array.h: the metadata of a Zarr array (version 3) whose shards are block files. The array is a folder
// with zarr.json and a link per shard, named as the key of its chunk.
#ifndef DQI_ZARR_ARRAY_H
#define DQI_ZARR_ARRAY_H

#include "writer/block_format.h"
#include "writer/dq_writer.h"

// Maximum gaps of an array that are listed one by one; further ones are counted.
#define DQI_ZARR_LISTED 2048
// Maximum blocks of a shard.
#define DQI_ZARR_BLOCKS 32767
// A block that many blocks after the last one starts another array.
#define DQI_ZARR_JUMP (UINT64_C(1) << 20)
#define DQI_ZARR_NONE UINT64_MAX // offset of a block that a shard does not have

// A block in a shard: its offset in the file, and its missing cells.
typedef struct dqi_zarr_block {
    uint64_t at; // DQI_ZARR_NONE: the shard does not have the block
    uint32_t missing;
} dqi_zarr_block;

// n items of the array from block `first` on: missing blocks, or missing cells of one block.
typedef struct dqi_zarr_gap {
    uint64_t first, n;
} dqi_zarr_gap;

typedef struct dqi_zarr_array {
    char path[1024 + 256 + 64]; // of the folder
    const dq_writer_conf *conf;
    dqi_block_shape shape;
    int32_t fill;              // of missing cells, as in dq_aggregate
    int64_t start_ns;          // receive time of the first packet; DQ_NO_TIME: none
    uint64_t origin;           // ordinal of block 0
    uint64_t count;            // blocks, missing ones included
    uint32_t each;             // blocks per shard
    uint32_t n_missing, n_cut; // gaps in the lists
    uint64_t unlisted;         // gaps that are not listed
    dqi_zarr_gap missing[DQI_ZARR_LISTED], cut[DQI_ZARR_LISTED];
} dqi_zarr_array;

// Returns the number of blocks per shard for these limits of a file and blocks of this shape. The index of a
// shard is smaller than a block, so that readers of block files do not take it for one.
uint32_t dqi_zarr_each(const dq_writer_conf *c, const dqi_block_shape *s);
// Returns the bytes of a shard's index.
uint64_t dqi_zarr_index_bytes(uint32_t each);
// Writes entries first .. first + n - 1 of a shard's index to dst, 16 bytes each.
void dqi_zarr_put_index(uint8_t *dst, const dqi_zarr_array *z, const dqi_zarr_block *blocks, uint32_t n);
// Writes the path of the array that begins with this block file.
void dqi_zarr_path(const char *file, char *buf, size_t len);
// Creates the folder and zarr.json of an array without blocks. 0, or -errno (-EEXIST: there is one). Blocks.
int dqi_zarr_create(const dqi_zarr_array *z);
// Adds a complete shard, whose file is closed or no longer written: links it, and replaces zarr.json. 0, or
// -errno.
int dqi_zarr_add_shard(dqi_zarr_array *z, uint64_t shard, const char *file, const dqi_zarr_block *blocks);

#endif
