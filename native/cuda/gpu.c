// gpu.c: GPUs, their contexts and the shipped kernels.
//
// Contexts are the primary ones, shared with the CUDA libraries of user kernels. They are created once and
// kept: creating one takes a tenth of a second.
#include "core/err.h"
#include "cuda/resident.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LEAST_MAJOR 8 // of the compute capability: the target of kernels/build.sh

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dqi_gpu gpus[DQI_MAX_GPUS];

static int attribute(const dqi_cuda_driver *cu, cu_device dev, int which) {
    int v = 0;
    return cu->device_attribute(&v, which, dev) == CU_SUCCESS ? v : 0;
}

// Returns the NUMA node of a PCI device; -1: unknown to the kernel.
static int32_t node_of(const char *bus) {
    char path[96];
    int node = -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", bus);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%d", &node) != 1) node = -1;
    if (f) fclose(f);
    return node;
}

static int describe(const dqi_cuda_driver *cu, int32_t number, cu_device *dev, dq_gpu_info *out,
                    const char *what, dq_diag *diag) {
    if (number < 0 || number >= cu->n_devices || number >= DQI_MAX_GPUS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: there is no GPU %d: this host has %d, numbered from 0", what, number,
                        cu->n_devices);
    *out = (dq_gpu_info){.number = number};
    size_t bytes = 0;
    cu_result err = cu->device_get(dev, number);
    if (err == CU_SUCCESS) err = cu->device_name(out->name, sizeof out->name, *dev);
    if (err == CU_SUCCESS) err = cu->device_bus_id(out->bus, sizeof out->bus, *dev);
    if (err == CU_SUCCESS) err = cu->device_bytes(&bytes, *dev);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuDeviceGet", diag);
    for (char *c = out->bus; *c; c++)
        *c = (char)tolower((unsigned char)*c); // as in sysfs
    out->bytes = bytes;
    out->major = attribute(cu, *dev, CU_ATTR_MAJOR);
    out->minor = attribute(cu, *dev, CU_ATTR_MINOR);
    out->multiprocessors = attribute(cu, *dev, CU_ATTR_MULTIPROCESSORS);
    out->integrated = attribute(cu, *dev, CU_ATTR_INTEGRATED);
    out->exports = attribute(cu, *dev, CU_ATTR_EXPORTS_DESCRIPTORS);
    out->gpudirect = attribute(cu, *dev, CU_ATTR_GPUDIRECT_RDMA);
    out->dma_buf = attribute(cu, *dev, CU_ATTR_DMA_BUF);
    out->writes = attribute(cu, *dev, CU_ATTR_WRITES_64_BITS);
    out->numa_node = node_of(out->bus);
    return DQ_OK;
}

int dq_gpu_count(int32_t *driver_version, uint32_t *n, dq_diag *diag) {
    const dqi_cuda_driver *cu = dqi_cuda_open("memory for GPUs", diag);
    if (!cu) return DQ_NOT_SUPPORTED;
    *driver_version = cu->driver_version;
    *n = (uint32_t)cu->n_devices;
    return DQ_OK;
}

int dq_gpu_read(int32_t number, dq_gpu_info *out, dq_diag *diag) {
    cu_device dev;
    const dqi_cuda_driver *cu = dqi_cuda_open("GPUs", diag);
    return cu ? describe(cu, number, &dev, out, "GPUs", diag) : DQ_NOT_SUPPORTED;
}

// Checks the capabilities that the engine requires of every GPU.
static int check_abilities(const dqi_gpu *g, const char *what, dq_diag *diag) {
    if (g->info.major < LEAST_MAJOR)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "%s: GPU %d (%s) has compute capability %d.%d: the program's kernels need %d.0 or later", what,
            g->info.number, g->info.name, g->info.major, g->info.minor, LEAST_MAJOR);
    if (attribute(g->cu, g->device, CU_ATTR_UNIFIED_ADDRESSING) &&
        attribute(g->cu, g->device, CU_ATTR_HOST_POINTERS) &&
        attribute(g->cu, g->device, CU_ATTR_VIRTUAL_MEMORY))
        return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "%s: GPU %d (%s) can't reach the host's memory at the host's addresses, or lacks virtual "
                    "memory management: a discrete GPU is needed",
                    what, g->info.number, g->info.name);
}

static int open_first(dqi_gpu *g, int32_t number, const char *what, dq_diag *diag) {
    dqi_gpu made = {.cu = dqi_cuda_open(what, diag)};
    if (!made.cu) return DQ_NOT_SUPPORTED;
    int err = describe(made.cu, number, &made.device, &made.info, what, diag);
    if (err == DQ_OK) err = check_abilities(&made, what, diag);
    if (err != DQ_OK) return err;
    char who[160];
    snprintf(who, sizeof who, "%.100s: GPU %d", what, number);
    err = dqi_cuda_check(made.cu->context_retain(&made.context, made.device), who, "cuDevicePrimaryCtxRetain",
                         diag);
    if (err == DQ_OK) *g = made;
    return err;
}

dqi_gpu *dqi_gpu_open(int32_t number, const char *what, dq_diag *diag) {
    static dqi_gpu none;
    dqi_gpu *g = number >= 0 && number < DQI_MAX_GPUS ? &gpus[number] : &none;
    pthread_mutex_lock(&lock);
    int err = g->context ? DQ_OK : open_first(g, number, what, diag);
    pthread_mutex_unlock(&lock);
    char words[256];
    if (err == DQ_OK && dqi_gpu_lost(g, words, sizeof words))
        err = dqi_fail(diag, DQ_GENERIC_FAILURE,
                       "%s: %s: it was lost earlier in this process; hint: start the program again", what,
                       words);
    return err == DQ_OK ? g : NULL;
}

cu_result dqi_gpu_enter(dqi_gpu *g) {
    static _Thread_local cu_context current;
    if (current == g->context) return CU_SUCCESS;
    cu_result err = g->cu->context_set(g->context);
    if (err == CU_SUCCESS) current = g->context;
    return err;
}

// Compiles a module for this GPU; the driver caches the result on disk.
static int load(dqi_gpu *g, dqi_gpu_module *m, const char *ptx, const char *what, dq_diag *diag) {
    char who[100];
    snprintf(who, sizeof who, "%.60s: the program's kernels", what);
    int err = dqi_gpu_load(g, ptx, who, &m->module, diag);
    if (err == DQ_OK) m->ptx = ptx;
    return err;
}

// Returns the module, which it loads if needed. Called with the lock.
static int find_module(dqi_gpu *g, const char *ptx, cu_module *out, const char *what, dq_diag *diag) {
    int k = 0;
    while (k < DQI_MAX_MODULES - 1 && g->modules[k].ptx && g->modules[k].ptx != ptx)
        k++;
    int err = g->modules[k].ptx ? DQ_OK : load(g, &g->modules[k], ptx, what, diag);
    *out = g->modules[k].module;
    return err;
}

int dqi_gpu_kernel(dqi_gpu *g, const char *ptx, const char *name, cu_function *out, const char *what,
                   dq_diag *diag) {
    cu_module module;
    pthread_mutex_lock(&lock);
    int err = find_module(g, ptx, &module, what, diag);
    pthread_mutex_unlock(&lock);
    if (err != DQ_OK) return err;
    char who[200];
    snprintf(who, sizeof who, "%.80s: GPU %d: kernel %.80s", what, g->info.number, name);
    return dqi_cuda_check(dqi_gpu_function(g, module, name, out), who, "cuModuleGetFunction", diag);
}

bool dqi_gpu_idle(dqi_gpu *g, cu_stream stream) {
    for (int ms = 0; ms < 1000; ms++) {
        cu_result err = dqi_gpu_enter(g);
        if (err == CU_SUCCESS) err = g->cu->stream_query(stream);
        if (err != CU_ERROR_NOT_READY) return true; // also an error: nothing runs in a failed context
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

void dqi_gpu_count(dqi_gpu *g, int more) { atomic_fetch_add(&g->users, (uint32_t)more); }

uint32_t dqi_gpu_users(const dqi_gpu *g) { return atomic_load(&g->users); }

void dqi_gpu_lose(dqi_gpu *g, cu_result err) {
    cu_result none = CU_SUCCESS;
    atomic_compare_exchange_strong(&g->lost, &none, err);
}

void dqi_gpu_note(dqi_gpu *g, cu_result err) {
    if (err != CU_SUCCESS && err != CU_ERROR_NOT_READY && err != CU_ERROR_OUT_OF_MEMORY) dqi_gpu_lose(g, err);
}

bool dqi_gpu_lost(dqi_gpu *g, char *buf, size_t len) {
    cu_result err = atomic_load_explicit(&g->lost, memory_order_relaxed);
    char words[160];
    if (err == CU_SUCCESS || len == 0) return err != CU_SUCCESS;
    dqi_cuda_words(err, words, sizeof words);
    snprintf(buf, len, "GPU %d (%s): %s", g->info.number, g->info.name, words);
    return true;
}
