// nvrtc.c: opens NVRTC once per process, and compiles with it. A failed search is repeated by the next call.
#include "cuda/nvrtc.h"
#include "core/err.h"
#include "cuda/dq_cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Search order: the names of known versions, then the location of NVIDIA's toolkit.
static const char *const libraries[] = {"libnvrtc.so",
                                        "libnvrtc.so.13",
                                        "libnvrtc.so.12",
                                        "libnvrtc.so.11.2",
                                        "/usr/local/cuda/lib64/libnvrtc.so",
                                        NULL};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened; // rt is complete
static struct {
#define X(result, name, symbol, args) result(*name) args;
    DQI_NVRTC_CALLS(X)
#undef X
} rt;

// Opens the library; *name: its name for messages.
static void *find_library(const char **name) {
    const char *named = getenv("DAQIRI_NVRTC");
    *name = named && *named ? named : "libnvrtc.so";
    if (named && *named) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
    void *lib = NULL;
    for (int k = 0; !lib && libraries[k]; k++)
        lib = dlopen(libraries[k], RTLD_NOW | RTLD_LOCAL);
    return lib;
}

static int missing(const char *what, const char *why, dq_diag *diag) {
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "%s: its source needs NVRTC: %s; hint: install NVIDIA's NVRTC (package cuda-nvrtc of CUDA's "
        "repository, libnvrtc12 of Debian), or name its library in DAQIRI_NVRTC; a kernel with "
        "ptx = ... needs none",
        what, why);
}

static int open_library(const char *what, dq_diag *diag) {
    const char *name;
    char why[256];
    void *lib = find_library(&name);
    if (!lib) {
        snprintf(why, sizeof why, "%.200s was not found", name);
        return missing(what, why, diag);
    }
#define X(result, name_here, symbol, args)                                                                   \
    *(void **)&rt.name_here = dlsym(lib, symbol);                                                            \
    if (!rt.name_here) {                                                                                     \
        snprintf(why, sizeof why, "%.150s has no %s: version 11.2 or later is needed", name, symbol);        \
        return missing(what, why, diag);                                                                     \
    }
    DQI_NVRTC_CALLS(X)
#undef X
    opened = true;
    return DQ_OK;
}

static int open_once(const char *what, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    int err = opened ? DQ_OK : open_library(what, diag);
    pthread_mutex_unlock(&lock);
    return err;
}

static int check(nvrtc_result err, const char *what, const char *call, dq_diag *diag) {
    if (err == NVRTC_SUCCESS) return DQ_OK;
    return dqi_fail(diag, DQ_GENERIC_FAILURE, "%s: %s: %s", what, call, rt.error_string(err));
}

int dq_nvrtc_version(const char *what, int32_t *major, int32_t *minor, dq_diag *diag) {
    int err = open_once(what, diag);
    return err == DQ_OK ? check(rt.version(major, minor), what, "nvrtcVersion", diag) : err;
}

int dq_nvrtc_arch(const char *what, int32_t wanted, int32_t *arch, dq_diag *diag) {
    int archs[64], n = 0, err = open_once(what, diag);
    if (err == DQ_OK) err = check(rt.n_archs(&n), what, "nvrtcGetNumSupportedArchs", diag);
    if (err == DQ_OK && (n < 1 || n > 64))
        err = dqi_fail(diag, DQ_INTERNAL_ERROR, "%s: NVRTC: %d GPUs", what, n);
    if (err == DQ_OK) err = check(rt.archs(archs), what, "nvrtcGetSupportedArchs", diag);
    *arch = 0;
    for (int k = 0; err == DQ_OK && k < n; k++)
        if (archs[k] <= wanted && archs[k] > *arch) *arch = archs[k];
    if (err == DQ_OK && *arch == 0)
        err =
            dqi_fail(diag, DQ_NOT_SUPPORTED,
                     "%s: this NVRTC makes nothing for a GPU of compute capability %d.%d; hint: an older one",
                     what, wanted / 10, wanted % 10);
    return err;
}

// Returns the compiler's messages, or NULL.
static char *log_of(nvrtc_program p) {
    size_t n = 0;
    if (rt.log_bytes(p, &n) != NVRTC_SUCCESS) return NULL;
    char *log = calloc(1, n + 1);
    if (log) rt.log(p, log);
    return log;
}

static int take_ptx(nvrtc_program p, const dq_nvrtc_source *src, dq_nvrtc_output *out, dq_diag *diag) {
    size_t n = 0;
    const char *lowered = NULL;
    int err = check(rt.lowered_name(p, src->entry, &lowered), src->what, "nvrtcGetLoweredName", diag);
    if (err == DQ_OK) err = check(rt.ptx_bytes(p, &n), src->what, "nvrtcGetPTXSize", diag);
    if (err != DQ_OK) return err;
    out->ptx = calloc(1, n + 1);
    out->name = strdup(lowered);
    if (!out->ptx || !out->name)
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory for its code", src->what);
    return check(rt.ptx(p, out->ptx), src->what, "nvrtcGetPTX", diag);
}

static int compile(nvrtc_program p, const dq_nvrtc_source *src, dq_nvrtc_output *out, dq_diag *diag) {
    int err = check(rt.add_name(p, src->entry), src->what, "nvrtcAddNameExpression", diag);
    if (err != DQ_OK) return err;
    nvrtc_result is = rt.compile(p, (int)src->n_options, src->options);
    out->log = log_of(p);
    if (is == NVRTC_ERROR_COMPILATION)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: its source doesn't compile", src->what);
    err = check(is, src->what, "nvrtcCompileProgram", diag);
    return err == DQ_OK ? take_ptx(p, src, out, diag) : err;
}

int dq_nvrtc_compile(const dq_nvrtc_source *src, dq_nvrtc_output *out, dq_diag *diag) {
    *out = (dq_nvrtc_output){0};
    nvrtc_program p;
    int err = open_once(src->what, diag);
    if (err == DQ_OK)
        err = check(rt.create(&p, src->text, src->name, (int)src->n_headers, src->headers, src->header_names),
                    src->what, "nvrtcCreateProgram", diag);
    if (err != DQ_OK) return err;
    err = compile(p, src, out, diag);
    rt.destroy(&p);
    return err;
}

void dq_nvrtc_free(dq_nvrtc_output *out) {
    free(out->ptx);
    free(out->name);
    free(out->log);
    *out = (dq_nvrtc_output){0};
}
