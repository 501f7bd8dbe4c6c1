// driver.c: opens libcuda once per process. It is never closed: its threads and contexts persist.
#include "cuda/driver.h"
#include "core/err.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dqi_cuda_driver driver;
static bool opened; // driver is complete
static void *lib;

static const char *library(void) {
    const char *named = getenv("DAQIRI_CUDA");
    return named && *named ? named : LIBRARY;
}

static int no_driver(dq_diag *diag, const char *what, const char *why) {
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "%s: it needs a GPU's driver: %s; hint: install NVIDIA's driver, or use host memory (memory = "
        "\"host\", --memory host)",
        what, why);
}

static int resolve(dqi_cuda_driver *d, const char *what, dq_diag *diag) {
    char why[256];
#define X(name, symbol, args)                                                                                \
    *(void **)&d->name = dlsym(lib, symbol);                                                                 \
    if (!d->name) {                                                                                          \
        snprintf(why, sizeof why, "%.100s has no %s: a driver of CUDA %d.%d or later is needed", library(),  \
                 symbol, DQI_CUDA_LEAST / 1000, DQI_CUDA_LEAST % 1000 / 10);                                 \
        return no_driver(diag, what, why);                                                                   \
    }
    DQI_CUDA_CALLS(X)
#undef X
    return DQ_OK;
}

void dqi_cuda_words(cu_result err, char *buf, size_t len) {
    const char *name = NULL, *text = NULL;
    if (driver.error_name) driver.error_name(err, &name);
    if (driver.error_string) driver.error_string(err, &text);
    snprintf(buf, len, "%s: %s", name ? name : "CUDA error", text ? text : "unknown");
}

int dqi_cuda_check(cu_result err, const char *what, const char *call, dq_diag *diag) {
    if (err == CU_SUCCESS) return DQ_OK;
    char words[200];
    dqi_cuda_words(err, words, sizeof words);
    return dqi_fail(diag, err == CU_ERROR_OUT_OF_MEMORY ? DQ_NO_SPACE_AVAILABLE : DQ_GENERIC_FAILURE,
                    "%s: %s: %s", what, call, words);
}

// Initializes the driver with signals blocked, so that its threads never handle the process's signals.
static cu_result init_quietly(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    cu_result err = driver.init(0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static int begin(const char *what, dq_diag *diag) {
    cu_result err = init_quietly();
    if (err == CU_SUCCESS) err = driver.version(&driver.driver_version);
    if (err == CU_SUCCESS) err = driver.device_count(&driver.n_devices);
    char words[200], why[300];
    dqi_cuda_words(err, words, sizeof words);
    snprintf(why, sizeof why, "cuInit: %s", words);
    if (err != CU_SUCCESS) return no_driver(diag, what, why);
    snprintf(why, sizeof why, "%.100s is of CUDA %d.%d: %d.%d or later is needed", library(),
             driver.driver_version / 1000, driver.driver_version % 1000 / 10, DQI_CUDA_LEAST / 1000,
             DQI_CUDA_LEAST % 1000 / 10);
    if (driver.driver_version < DQI_CUDA_LEAST) return no_driver(diag, what, why);
    return driver.n_devices > 0 ? DQ_OK : no_driver(diag, what, "it knows of no GPU");
}

// If the process already has the driver's calls, as by LD_PRELOAD, they are used: lib is RTLD_DEFAULT.
static bool find_library(void) {
    lib = RTLD_DEFAULT;
    return dlsym(RTLD_DEFAULT, "cuInit") || (lib = dlopen(library(), RTLD_NOW | RTLD_LOCAL));
}

static bool open_driver(const char *what, dq_diag *diag) {
    if (find_library()) return resolve(&driver, what, diag) == DQ_OK && begin(what, diag) == DQ_OK;
    const char *why = dlerror();
    no_driver(diag, what, why ? why : library());
    return false;
}

const dqi_cuda_driver *dqi_cuda_open(const char *what, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    if (!opened) opened = open_driver(what, diag);
    bool is = opened;
    pthread_mutex_unlock(&lock);
    return is ? &driver : NULL;
}

void *dqi_cuda_symbol(const char *symbol) { return dlsym(lib, symbol); }
