// gpu_file.h: a file registered with cuFile, written directly from a GPU's memory.
#ifndef DQI_GPU_FILE_H
#define DQI_GPU_FILE_H

#include "cuda/cufile.h"

#include <stdbool.h>
#include <stdint.h>

#define DQI_GPU_PAGE    4096 // alignment of offsets, addresses and lengths
#define DQI_GPU_NO_PAGE "it begins within a page; hint: make buf_size of its memory region a multiple of 4096"

typedef struct dqi_gpu_file {
    const dqi_cufile *lib; // NULL: closed
    dqi_gpu *gpu;
    int fd; // own descriptor: direct writes
    cu_file file;
} dqi_gpu_file;

// Registers the open regular file fd with cuFile. Returns false with the reason in why.
bool dqi_gpu_file_open(dqi_gpu_file *f, int fd, dqi_gpu *gpu, const dqi_cufile *lib, char *why, size_t len);
// Writes n bytes of the GPU's memory. Returns the bytes written, -errno, or -DQI_EDEVICE if the GPU is lost.
// Blocks.
int64_t dqi_gpu_file_write(const dqi_gpu_file *f, uint64_t from, uint64_t n, uint64_t at);
// Deregisters and closes the file, if open.
void dqi_gpu_file_close(dqi_gpu_file *f);

#endif
