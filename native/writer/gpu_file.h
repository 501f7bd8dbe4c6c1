// gpu_file.h: a file as cuFile knows it: it is written straight from a GPU's memory.
#ifndef DQI_GPU_FILE_H
#define DQI_GPU_FILE_H

#include "cuda/cufile.h"

#include <stdbool.h>
#include <stdint.h>

#define DQI_GPU_PAGE    4096 // bytes: places in file and memory, and lengths, are multiples of it
#define DQI_GPU_NO_PAGE "it begins within a page; hint: make buf_size of its memory region a multiple of 4096"

typedef struct dqi_gpu_file {
    const dqi_cufile *lib; // NULL: closed
    dqi_gpu *gpu;
    int fd; // of its own: direct writes
    cu_file file;
} dqi_gpu_file;

// Makes the open regular file fd known to cuFile. False: that can't be, and why.
bool dqi_gpu_file_open(dqi_gpu_file *f, int fd, dqi_gpu *gpu, const dqi_cufile *lib, char *why, size_t len);
// Writes n bytes of the GPU's memory. Bytes written, -errno, or -DQI_EDEVICE where the GPU is lost. Blocks.
int64_t dqi_gpu_file_write(const dqi_gpu_file *f, uint64_t from, uint64_t n, uint64_t at);
// Fine on a closed one.
void dqi_gpu_file_close(dqi_gpu_file *f);

#endif
