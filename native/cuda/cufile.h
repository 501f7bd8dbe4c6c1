// cufile.h: cuFile (GPUDirect Storage), which writes files directly from GPU memory, opened at run time.
//
// Names, types and numbers are those of NVIDIA's cuFile API reference guide.
#ifndef DQI_CUDA_CUFILE_H
#define DQI_CUDA_CUFILE_H

#include "cuda/gpu.h"

#include <sys/types.h>

typedef void *cu_file;

typedef struct cu_file_error {
    int err, cuda; // CUfileOpError, 0: success; the driver's error, with CU_FILE_CUDA_DRIVER_ERROR
} cu_file_error;

enum {
    CU_FILE_SUCCESS = 0,
    CU_FILE_BASE = 5000, // first error number minus 1
    CU_FILE_NOT_SUPPORTED = 5008,
    CU_FILE_CUDA_DRIVER_ERROR = 5011,
    CU_FILE_POINTER_INVALID = 5012,
    CU_FILE_DIO_NOT_SET = 5020,
    CU_FILE_INVALID_VALUE = 5022,
    CU_FILE_ALREADY_REGISTERED = 5023,
    CU_FILE_NOT_REGISTERED = 5024,
};

typedef struct cu_file_descr {
    int type; // 1: a file descriptor
    union {
        int fd;
        void *handle;
    } handle;
    const void *fs_ops;
} cu_file_descr;

typedef struct cu_file_properties {
    struct {
        unsigned major, minor; // of nvidia-fs; 0: not loaded
        size_t poll_threshold, most_direct;
        unsigned status, control;
    } nvfs;
    unsigned more[64]; // members of newer versions
} cu_file_properties;

// X(member, symbol, return type, parameters).
#define DQI_CUFILE_CALLS(X)                                                                                  \
    X(driver_open, "cuFileDriverOpen", cu_file_error, (void))                                                \
    X(properties, "cuFileDriverGetProperties", cu_file_error, (cu_file_properties * out))                    \
    X(file_register, "cuFileHandleRegister", cu_file_error, (cu_file * out, cu_file_descr * descr))          \
    X(file_deregister, "cuFileHandleDeregister", void, (cu_file file))                                       \
    X(memory_register, "cuFileBufRegister", cu_file_error, (const void *at, size_t bytes, int flags))        \
    X(memory_deregister, "cuFileBufDeregister", cu_file_error, (const void *at))                             \
    X(write, "cuFileWrite", ssize_t,                                                                         \
      (cu_file file, const void *base, size_t bytes, off_t file_offset, off_t memory_offset))

typedef struct dqi_cufile {
#define X(name, symbol, returns, args) returns(*name) args;
    DQI_CUFILE_CALLS(X)
#undef X
    unsigned major, minor; // of nvidia-fs; 0: not loaded: cuFile copies through the host
} dqi_cufile;

// Returns cuFile, opened at the first call; NULL: not available or turned off, with the reason in why.
// DAQIRI_CUFILE names another library; "off", or an empty value, turns it off. Any thread.
const dqi_cufile *dqi_cufile_open(char *why, size_t len);
// Formats an error: "cuFileHandleRegister: error 5008 (the file system is not supported)".
void dqi_cufile_words(const char *call, int err, char *buf, size_t len);

#endif
