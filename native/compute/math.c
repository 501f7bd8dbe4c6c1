// math.c: kernels of cuBLAS and cuFFT. Each library is opened by the first kernel that needs it, with
// declarations defined here, and never closed.
//
// Names, types and numbers follow the cuBLAS and cuFFT API reference guides.
#include "compute/math.h"
#include "core/burst.h"
#include "core/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CU_ERROR_UNKNOWN 999 // driver error: errors of libraries have no number there

enum { FFT_C2C = 0x29, FFT_FORWARD = -1 };

// X(name here, name in the library, arguments). All return a status, 0 on success.
#define CUBLAS_CALLS(X)                                                                                      \
    X(create, "cublasCreate_v2", (void **handle))                                                            \
    X(destroy, "cublasDestroy_v2", (void *handle))                                                           \
    X(set_stream, "cublasSetStream_v2", (void *handle, cu_stream stream))                                    \
    X(sgemm, "cublasSgemm_v2",                                                                               \
      (void *handle, int transpose_a, int transpose_b, int m, int n, int k, const float *alpha,              \
       const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc))
#define CUFFT_CALLS(X)                                                                                       \
    X(plan, "cufftPlan1d", (int *plan, int points, int type, int batch))                                     \
    X(destroy, "cufftDestroy", (int plan))                                                                   \
    X(set_stream, "cufftSetStream", (int plan, cu_stream stream))                                            \
    X(c2c, "cufftExecC2C", (int plan, void *in, void *out, int direction))

#define X(name, symbol, args) int(*name) args;
static struct { CUBLAS_CALLS(X) } cublas;
static struct { CUFFT_CALLS(X) } cufft;
#undef X

// Required symbol of a library, and its destination.
typedef struct symbol {
    const char *name;
    void *to;
} symbol;
#define X(name, symbol, args) {symbol, &cublas.name},
static const symbol cublas_symbols[] = {CUBLAS_CALLS(X){NULL, NULL}};
#undef X
#define X(name, symbol, args) {symbol, &cufft.name},
static const symbol cufft_symbols[] = {CUFFT_CALLS(X){NULL, NULL}};
#undef X

typedef struct library {
    const char *name, *variable, *package; // variable: environment variable with another file
    const symbol *symbols;
    const char *files[6]; // versioned names, then the location in NVIDIA's toolkit
} library;
static const library libraries[] = {
    {"cuBLAS",
     "DAQIRI_CUBLAS",
     "libcublas",
     cublas_symbols,
     {"libcublas.so", "libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
      "/usr/local/cuda/lib64/libcublas.so"}},
    {"cuFFT",
     "DAQIRI_CUFFT",
     "libcufft",
     cufft_symbols,
     {"libcufft.so", "libcufft.so.12", "libcufft.so.11", "libcufft.so.10",
      "/usr/local/cuda/lib64/libcufft.so"}},
};

struct dqi_math {
    uint32_t number;
    int shape[DQ_MATH_SHAPE];
    void *handle; // of cuBLAS
    int plan;     // of cuFFT
    bool planned;
    pthread_mutex_t lock; // handles and plans are not thread-safe
};

// ---- the kernels ------------------------------------------------------------------------------------------

// Returns the GPU address in argument k.
static void *address(void **args, uint32_t k) { return (void *)(uintptr_t) * (const uint64_t *)args[k]; }

static int gemm_make(dqi_math *m, cu_stream stream) {
    int err = cublas.create(&m->handle);
    return err ? err : cublas.set_stream(m->handle, stream);
}

static void gemm_free(dqi_math *m) {
    if (m->handle) cublas.destroy(m->handle);
}

// The library is column-major: the row-major product is that of the transposed matrices, swapped.
static int gemm_run(dqi_math *m, void **args) {
    static const float one = 1, zero = 0;
    const float *a = address(args, 0), *b = address(args, 1);
    int rows = m->shape[0], columns = m->shape[1], inner = m->shape[2];
    return cublas.sgemm(m->handle, 0, 0, columns, rows, inner, &one, b, columns, a, inner, &zero,
                        address(args, 2), columns);
}

static uint64_t gemm_bytes(const dqi_math *m, uint32_t k) {
    uint64_t rows = (uint64_t)m->shape[k == 1 ? 2 : 0], columns = (uint64_t)m->shape[k == 0 ? 2 : 1];
    return rows * columns * sizeof(float);
}

static int fft_make(dqi_math *m, cu_stream stream) {
    int err = cufft.plan(&m->plan, m->shape[0], FFT_C2C, m->shape[1]);
    m->planned = err == 0;
    return err ? err : cufft.set_stream(m->plan, stream);
}

static void fft_free(dqi_math *m) {
    if (m->planned) cufft.destroy(m->plan);
}

static int fft_run(dqi_math *m, void **args) {
    return cufft.c2c(m->plan, address(args, 0), address(args, 1), FFT_FORWARD);
}

static uint64_t fft_bytes(const dqi_math *m, uint32_t k) {
    (void)k;
    return (uint64_t)m->shape[0] * (uint64_t)m->shape[1] * 2 * sizeof(float);
}

static const struct kind {
    dq_math is;
    const library *library;
    const char *made_by, *call;
    int (*make)(dqi_math *m, cu_stream stream);
    void (*free)(dqi_math *m);
    int (*run)(dqi_math *m, void **args);
    uint64_t (*bytes)(const dqi_math *m, uint32_t k); // at its k-th address
} kinds[] = {
    {{"gemm", "cuBLAS", "const float *a, const float *b, float *out", "rows, columns, inner", 3},
     &libraries[0],
     "cublasCreate",
     "cublasSgemm",
     gemm_make,
     gemm_free,
     gemm_run,
     gemm_bytes},
    {{"fft", "cuFFT", "const float *in, float *out", "points, transforms", 2},
     &libraries[1],
     "cufftPlan1d",
     "cufftExecC2C",
     fft_make,
     fft_free,
     fft_run,
     fft_bytes},
};
#define KINDS (sizeof kinds / sizeof *kinds)

const dq_math *dq_math_at(uint32_t number) { return number < KINDS ? &kinds[number].is : NULL; }

// ---- libraries --------------------------------------------------------------------------------------------

static void *find_library(const library *lib, const char **name) {
    const char *named = getenv(lib->variable);
    *name = named && *named ? named : lib->files[0];
    if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    void *handle = NULL;
    for (int k = 0; !handle && lib->files[k]; k++)
        handle = dlopen(lib->files[k], RTLD_NOW | RTLD_LOCAL);
    return handle;
}

int dq_math_open(uint32_t number, const char *what, dq_diag *diag) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool opened[KINDS];
    const library *lib = kinds[number].library;
    const char *name = "", *lacks = NULL;
    pthread_mutex_lock(&lock);
    void *handle = opened[number] ? NULL : find_library(lib, &name);
    for (const symbol *s = lib->symbols; handle && s->name; s++)
        if (!(*(void **)s->to = dlsym(handle, s->name))) lacks = s->name;
    opened[number] = opened[number] || (handle && !lacks);
    bool is = opened[number];
    pthread_mutex_unlock(&lock);
    if (is) return DQ_OK;
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "%s: it needs NVIDIA's %s: %.200s %s%s; hint: install package %s of CUDA's repository, or "
        "name its library in %s",
        what, lib->name, name, lacks ? "has no " : "was not found", lacks ? lacks : "", lib->package,
        lib->variable);
}

// ---- kernels ----------------------------------------------------------------------------------------------

static int check(int status, const struct kind *kind, const char *what, dq_diag *diag) {
    if (status == 0) return DQ_OK;
    return dqi_fail(diag, DQ_GENERIC_FAILURE, "%s: %s: %s: status %d", what, kind->library->name,
                    kind->made_by, status);
}

int dqi_math_new(uint32_t number, const uint32_t *shape, cu_stream stream, const char *what, dqi_math **out,
                 dq_diag *diag) {
    int err = dq_math_open(number, what, diag);
    if (err != DQ_OK) return err;
    dqi_math *m = calloc(1, sizeof *m);
    if (!m) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    m->number = number;
    pthread_mutex_init(&m->lock, NULL);
    for (uint32_t k = 0; k < kinds[number].is.n_shape; k++)
        m->shape[k] = (int)shape[k];
    err = check(kinds[number].make(m, stream), &kinds[number], what, diag);
    if (err == DQ_OK)
        *out = m;
    else
        dqi_math_free(m);
    return err;
}

void dqi_math_free(dqi_math *m) {
    if (!m) return;
    kinds[m->number].free(m);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

cu_result dqi_math_run(dqi_math *m, void **args) {
    pthread_mutex_lock(&m->lock);
    int status = kinds[m->number].run(m, args);
    pthread_mutex_unlock(&m->lock);
    return status == 0 ? CU_SUCCESS : CU_ERROR_UNKNOWN;
}

const char *dqi_math_call(const dqi_math *m) { return kinds[m->number].call; }

// Returns the bytes of an argument's memory; 0: not memory.
static uint64_t bytes_of(const dq_kernel_arg *a, const dq_burst *b) {
    if (a->kind == DQ_ARG_ARRAY) return a->array->bytes;
    if (a->kind == DQ_ARG_DATA) return a->b ? a->b->bytes : b->bytes;
    return 0;
}

int dqi_math_check(const dqi_math *m, const char *what, const dq_kernel_arg *args, uint32_t n,
                   const dq_burst *b, dq_diag *diag) {
    for (uint32_t k = 0; k < n; k++) {
        uint64_t is = bytes_of(&args[k], b), least = kinds[m->number].bytes(m, k);
        if (is < least)
            return dqi_fail(
                diag, DQ_INVALID_PARAMETER,
                "%s: argument %u: it takes %llu bytes of an array or an aggregate's data, and has "
                "%llu",
                what, k + 1, (unsigned long long)least, (unsigned long long)is);
    }
    return DQ_OK;
}
