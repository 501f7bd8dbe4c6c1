// driver.h: the CUDA driver calls used by the engine, opened at run time: no toolkit is needed.
//
// Names, types and numbers are those of the CUDA Driver API reference manual (version 12). A call returns a
// status, 0 for success.
#ifndef DQI_CUDA_DRIVER_H
#define DQI_CUDA_DRIVER_H

#include "core/dq_core.h"

typedef int cu_result;
typedef int cu_device;   // a GPU's handle, not its number
typedef uint64_t cu_ptr; // an address on a GPU
typedef struct cu_context_s *cu_context;
typedef struct cu_module_s *cu_module;
typedef struct cu_function_s *cu_function;
typedef struct cu_stream_s *cu_stream;
typedef uint64_t cu_allocation; // of cuMemCreate

enum {
    CU_SUCCESS = 0,
    CU_ERROR_OUT_OF_MEMORY = 2,
    CU_ERROR_NO_DEVICE = 100,
    CU_ERROR_UNSUPPORTED_PTX = 222,
    CU_ERROR_NOT_FOUND = 500,
    CU_ERROR_NOT_READY = 600,
};

// Attributes of a device.
enum {
    CU_ATTR_MULTIPROCESSORS = 16,
    CU_ATTR_INTEGRATED = 18,
    CU_ATTR_CAN_MAP_HOST_MEMORY = 19,
    CU_ATTR_UNIFIED_ADDRESSING = 41,
    CU_ATTR_MAJOR = 75,
    CU_ATTR_MINOR = 76,
    CU_ATTR_HOST_POINTERS = 91, // registered memory has the same address on the GPU
    CU_ATTR_VIRTUAL_MEMORY = 102,
    CU_ATTR_EXPORTS_DESCRIPTORS = 103,
    CU_ATTR_GPUDIRECT_RDMA = 116,
    CU_ATTR_WRITES_64_BITS = 122, // by a stream, in order with its kernels
    CU_ATTR_DMA_BUF = 124,
};

enum {
    CU_ALLOCATION_PINNED = 1,
    CU_HANDLE_DESCRIPTOR = 1,
    CU_LOCATION_DEVICE = 1,
    CU_ACCESS_READ_WRITE = 3,
    CU_GRANULARITY_LEAST = 0,
    CU_REGISTER_PORTABLE = 1,
    CU_REGISTER_MAPPED = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_RANGE_DMA_BUF = 1,
    CU_IPC_LAZY_PEER_ACCESS = 1,
};

// Attributes of a pointer.
enum {
    CU_POINTER_SYNC_MEMOPS = 6,
    CU_POINTER_DEVICE = 9, // number of its GPU
    CU_POINTER_RANGE_BYTES = 12,
    CU_POINTER_GPUDIRECT_RDMA = 15,
};

// Handle of an allocation for other processes.
typedef struct cu_ipc_handle {
    char bytes[64];
} cu_ipc_handle;

// Options of cuModuleLoadDataEx.
enum { CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6 };

// Attributes of a function.
enum { CU_FN_MAX_THREADS = 0, CU_FN_LOCAL_BYTES = 3 }; // per block, per thread

typedef struct cu_location {
    int type, id;
} cu_location;

typedef struct cu_allocation_prop {
    int type, handle_types;
    cu_location location;
    void *win32;
    struct {
        unsigned char compression, gpudirect_rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} cu_allocation_prop;

typedef struct cu_access_desc {
    cu_location location;
    int flags;
} cu_access_desc;

// X(member, symbol, parameters).
#define DQI_CUDA_CALLS(X)                                                                                    \
    X(init, "cuInit", (unsigned flags))                                                                      \
    X(version, "cuDriverGetVersion", (int *version))                                                         \
    X(error_name, "cuGetErrorName", (cu_result err, const char **name))                                      \
    X(error_string, "cuGetErrorString", (cu_result err, const char **text))                                  \
    X(device_count, "cuDeviceGetCount", (int *n))                                                            \
    X(device_get, "cuDeviceGet", (cu_device * dev, int number))                                              \
    X(device_name, "cuDeviceGetName", (char *name, int len, cu_device dev))                                  \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, cu_device dev))                  \
    X(device_bytes, "cuDeviceTotalMem_v2", (size_t * bytes, cu_device dev))                                  \
    X(device_bus_id, "cuDeviceGetPCIBusId", (char *id, int len, cu_device dev))                              \
    X(device_reaches, "cuDeviceCanAccessPeer", (int *can, cu_device dev, cu_device peer))                    \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cu_context * ctx, cu_device dev))                         \
    X(context_set, "cuCtxSetCurrent", (cu_context ctx))                                                      \
    X(context_synchronize, "cuCtxSynchronize", (void))                                                       \
    X(mem_info, "cuMemGetInfo_v2", (size_t * free, size_t * total))                                          \
    X(mem_alloc, "cuMemAlloc_v2", (cu_ptr * at, size_t bytes))                                               \
    X(mem_free, "cuMemFree_v2", (cu_ptr at))                                                                 \
    X(mem_granularity, "cuMemGetAllocationGranularity",                                                      \
      (size_t * bytes, const cu_allocation_prop *prop, int option))                                          \
    X(mem_create, "cuMemCreate",                                                                             \
      (cu_allocation * handle, size_t bytes, const cu_allocation_prop *prop, unsigned long long flags))      \
    X(mem_release, "cuMemRelease", (cu_allocation handle))                                                   \
    X(mem_reserve, "cuMemAddressReserve",                                                                    \
      (cu_ptr * at, size_t bytes, size_t align, cu_ptr wish, unsigned long long flags))                      \
    X(mem_unreserve, "cuMemAddressFree", (cu_ptr at, size_t bytes))                                          \
    X(mem_map, "cuMemMap",                                                                                   \
      (cu_ptr at, size_t bytes, size_t offset, cu_allocation handle, unsigned long long flags))              \
    X(mem_unmap, "cuMemUnmap", (cu_ptr at, size_t bytes))                                                    \
    X(mem_access, "cuMemSetAccess", (cu_ptr at, size_t bytes, const cu_access_desc *who, size_t n))          \
    X(mem_export, "cuMemExportToShareableHandle",                                                            \
      (void *out, cu_allocation handle, int type, unsigned long long flags))                                 \
    X(mem_import, "cuMemImportFromShareableHandle", (cu_allocation * out, void *handle, int type))           \
    X(ipc_open, "cuIpcOpenMemHandle_v2", (cu_ptr * at, cu_ipc_handle handle, unsigned flags))                \
    X(ipc_close, "cuIpcCloseMemHandle", (cu_ptr at))                                                         \
    X(pointer_get, "cuPointerGetAttribute", (void *out, int attribute, cu_ptr at))                           \
    X(pointer_set, "cuPointerSetAttribute", (const void *value, int attribute, cu_ptr at))                   \
    X(host_register, "cuMemHostRegister_v2", (void *at, size_t bytes, unsigned flags))                       \
    X(host_unregister, "cuMemHostUnregister", (void *at))                                                    \
    X(host_address, "cuMemHostGetDevicePointer_v2", (cu_ptr * out, void *at, unsigned flags))                \
    X(memset_async, "cuMemsetD8Async", (cu_ptr at, unsigned char value, size_t n, cu_stream stream))         \
    X(copy_to_host, "cuMemcpyDtoHAsync_v2", (void *to, cu_ptr from, size_t n, cu_stream stream))             \
    X(copy_to_device, "cuMemcpyHtoDAsync_v2", (cu_ptr to, const void *from, size_t n, cu_stream stream))     \
    X(module_load, "cuModuleLoadDataEx",                                                                     \
      (cu_module * out, const void *image, unsigned n, int *options, void **values))                         \
    X(module_unload, "cuModuleUnload", (cu_module module))                                                   \
    X(module_function, "cuModuleGetFunction", (cu_function * out, cu_module module, const char *name))       \
    X(function_attribute, "cuFuncGetAttribute", (int *value, int attribute, cu_function fn))                 \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                              \
      (int *blocks, cu_function fn, int threads, size_t shared_bytes))                                       \
    X(stream_create, "cuStreamCreate", (cu_stream * out, unsigned flags))                                    \
    X(stream_destroy, "cuStreamDestroy_v2", (cu_stream stream))                                              \
    X(stream_query, "cuStreamQuery", (cu_stream stream))                                                     \
    X(stream_synchronize, "cuStreamSynchronize", (cu_stream stream))                                         \
    X(write_value, "cuStreamWriteValue64_v2", (cu_stream stream, cu_ptr at, uint64_t value, unsigned flags)) \
    X(launch, "cuLaunchKernel",                                                                              \
      (cu_function fn, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,         \
       unsigned shared_bytes, cu_stream stream, void **args, void **extra))

typedef struct dqi_cuda_driver {
#define X(name, symbol, args) cu_result(*name) args;
    DQI_CUDA_CALLS(X)
#undef X
    int driver_version; // 12040: 12.4
    int n_devices;
} dqi_cuda_driver;

#define DQI_CUDA_LEAST 11070 // minimum driver version that has all calls and compiles PTX 7.5

// Returns the driver, opened and initialized at the first call; NULL: diag has the cause and a remedy.
// DAQIRI_CUDA names another library. Any thread.
const dqi_cuda_driver *dqi_cuda_open(const char *what, dq_diag *diag);
// Returns a symbol of the open driver that is not in the table; NULL: the library lacks it.
void *dqi_cuda_symbol(const char *symbol);
// Returns DQ_OK if err is 0; else NO_SPACE_AVAILABLE if memory is short, or GENERIC_FAILURE, with the object,
// the call and CUDA's text in diag.
int dqi_cuda_check(cu_result err, const char *what, const char *call, dq_diag *diag);
// Formats CUDA's text: "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
void dqi_cuda_words(cu_result err, char *buf, size_t len);

#endif
