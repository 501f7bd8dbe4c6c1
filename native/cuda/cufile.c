// cufile.c: opens libcufile once per process. Like the driver it is never closed.
#include "cuda/cufile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcufile.so.0"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dqi_cufile cufile;
static bool tried, there;
static char missing[256]; // reason if not available

void dqi_cufile_words(const char *call, int err, char *buf, size_t len) {
    static const struct {
        int err;
        const char *words;
    } known[] = {{5001, "nvidia-fs is not loaded"},
                 {5004, "nvidia-fs is of another version"},
                 {5007, "this platform is not supported"},
                 {CU_FILE_NOT_SUPPORTED, "this file system is not supported"},
                 {5009, "this GPU is not supported"},
                 {5010, "nvidia-fs reports an error"},
                 {CU_FILE_CUDA_DRIVER_ERROR, "the CUDA driver reports an error"},
                 {CU_FILE_POINTER_INVALID, "it is not memory of a GPU"},
                 {5013, "this kind of memory is not supported"},
                 {5018, "it is not a regular file"},
                 {CU_FILE_DIO_NOT_SET, "the file was not opened for direct writes"},
                 {CU_FILE_INVALID_VALUE, "a wrong value"},
                 {5025, "permission denied"}};
    const char *words = "see cufile.log";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].err == err) words = known[i].words;
    snprintf(buf, len, "%s: error %d (%s)", call, err, words);
}

// Returns the library's name; NULL: cuFile is turned off. A fake driver does not work with cuFile's memory.
static const char *library(void) {
    const char *named = getenv("DAQIRI_CUFILE"), *driver = getenv("DAQIRI_CUDA");
    if (named) return *named && strcmp(named, "off") != 0 ? named : NULL;
    if (!driver || !*driver) return LIBRARY;
    const char *name = strrchr(driver, '/');
    return strncmp(name ? name + 1 : driver, "libcuda.so", 10) == 0 ? LIBRARY : NULL;
}

static bool resolve(void *lib, const char *name) {
#define X(to, symbol, returns, args)                                                                         \
    *(void **)&cufile.to = dlsym(lib, symbol);                                                               \
    if (!cufile.to) snprintf(missing, sizeof missing, "%.100s has no %s", name, symbol);
    DQI_CUFILE_CALLS(X)
#undef X
    return missing[0] == 0;
}

// Opens cuFile with signals blocked, so that its threads never handle the process's signals.
static int open_quietly(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int err = cufile.driver_open().err;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

static bool begin(void) {
    int err = open_quietly();
    if (err != CU_FILE_SUCCESS) {
        dqi_cufile_words("cuFileDriverOpen", err, missing, sizeof missing);
        return false;
    }
    cu_file_properties p = {0};
    if (cufile.properties(&p).err == CU_FILE_SUCCESS) {
        cufile.major = p.nvfs.major;
        cufile.minor = p.nvfs.minor;
    }
    return true;
}

static bool open_library(void) {
    const char *name = library();
    if (!name) {
        snprintf(missing, sizeof missing, "cuFile is turned off (%s)",
                 getenv("DAQIRI_CUFILE") ? "DAQIRI_CUFILE" : "DAQIRI_CUDA names another driver");
        return false;
    }
    // If the process already has the calls, for example by LD_PRELOAD, they are used.
    if (dlsym(RTLD_DEFAULT, "cuFileDriverOpen")) return resolve(RTLD_DEFAULT, name) && begin();
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib) return resolve(lib, name) && begin();
    const char *why = dlerror();
    snprintf(missing, sizeof missing, "there is no cuFile: %.200s", why ? why : name);
    return false;
}

const dqi_cufile *dqi_cufile_open(char *why, size_t len) {
    pthread_mutex_lock(&lock);
    if (!tried) there = open_library();
    tried = true;
    pthread_mutex_unlock(&lock);
    if (there) return &cufile;
    snprintf(why, len, "%s", missing);
    return NULL;
}
