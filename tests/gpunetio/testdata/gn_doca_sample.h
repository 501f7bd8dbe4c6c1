// gn_doca_sample.h: a header of a sample's host and kernel: it declares functions and types of the host,
// which a kernel does not use.
#ifndef GN_DOCA_SAMPLE_H
#define GN_DOCA_SAMPLE_H

#include <arpa/inet.h>
#include <cuda_runtime.h>
#include <doca_error.h>
#include <doca_gpunetio.h>
#include <doca_log.h>
#include <stdlib.h>

#define SAMPLE_WORDS 3

struct sample_config {
    char device[DOCA_DEVINFO_PCI_ADDR_SIZE];
    cudaStream_t stream;
};

/* the braces of a comment do not count: { */
struct sample_header {
    uint8_t kind;
    struct {
        uint32_t low, high;
    } __attribute__((packed)) words;
    uint16_t check;
} __attribute__((__packed__));

typedef struct {
    uint8_t first;
    uint64_t second;
} __attribute__((packed)) sample_pair;

doca_error_t sample_start(struct sample_config *config);
static inline int sample_bytes(void) { return sizeof(struct sample_header) + sizeof(sample_pair); }

#endif
