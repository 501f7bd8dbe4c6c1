// pcap_dl.c: libpcap's filter compiler by dlopen: converts text to a checked program.
//
// Packets never pass through libpcap: without the library only filters in its language are unavailable. The
// first call opens it; host names in a filter are resolved, so a call may block.
//
// The ABI used is libpcap's stable one: opaque handles, and struct bpf_program with instructions laid out as
// dq_cbpf_insn (pcap/bpf.h). The library stays open for the life of the process. Its compiler has global
// state before version 1.8, so a lock serializes it.
#include "core/err.h"
#include "program/cbpf.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct bpf_program {
    unsigned int n;
    dq_cbpf_insn *insns;
} bpf_program;

typedef struct pcap pcap;

typedef struct api {
    pcap *(*open_dead)(int dlt, int snaplen);
    int (*compile)(pcap *p, bpf_program *out, const char *text, int optimize, uint32_t netmask);
    void (*freecode)(bpf_program *prog);
    char *(*geterr)(pcap *p);
    void (*close)(pcap *p);
} api;

_Static_assert(sizeof(dq_cbpf_insn) == 8, "dq_cbpf_insn must be laid out as libpcap's bpf_insn");

// Packets that start with the IP header have link type 101 in files and in this API; libpcap's own number
// depends on the system.
enum { SNAPLEN = 262144, LINKTYPE_RAW = 101, DLT_RAW = 12 };
static const uint32_t netmask_unknown = 0xffffffff;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ISO C has no cast from an object to a function pointer; POSIX guarantees that the copy works.
static bool symbol(void *lib, const char *name, void *fn) {
    void *sym = dlsym(lib, name);
    memcpy(fn, &sym, sizeof sym);
    return sym != NULL;
}

static void *open_any(void) {
    static const char *const names[] = {"libpcap.so.1", "libpcap.so.0.8"};
    void *lib = NULL;
    for (size_t i = 0; lib == NULL && i < sizeof names / sizeof *names; i++)
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return lib;
}

// Opens the library at the first call that finds it. Called with the lock.
static const api *load(dq_diag *diag) {
    static api loaded;
    static bool ready;
    if (ready) return &loaded;
    void *lib = open_any();
    if (lib == NULL) {
        dqi_fail(diag, DQ_NOT_SUPPORTED,
                 "libpcap: neither libpcap.so.1 nor libpcap.so.0.8 is there (Debian package libpcap0.8): a "
                 "filter in "
                 "pcap's language needs it");
        return NULL;
    }
    api a;
    ready = symbol(lib, "pcap_open_dead", &a.open_dead) && symbol(lib, "pcap_compile", &a.compile) &&
            symbol(lib, "pcap_freecode", &a.freecode) && symbol(lib, "pcap_geterr", &a.geterr) &&
            symbol(lib, "pcap_close", &a.close);
    if (!ready) {
        dlclose(lib);
        dqi_fail(diag, DQ_NOT_SUPPORTED, "libpcap: the library found lacks functions of libpcap 0.8");
        return NULL;
    }
    loaded = a;
    return &loaded;
}

static int copy_program(const bpf_program *prog, dq_cbpf_insn **out, uint32_t *n, dq_diag *diag) {
    int err = dqi_cbpf_check(prog->insns, prog->n, diag);
    if (err != DQ_OK) return err;
    dq_cbpf_insn *copy = malloc(prog->n * sizeof *copy);
    if (copy == NULL) return dqi_fail(diag, DQ_GENERIC_FAILURE, "filter: no memory");
    memcpy(copy, prog->insns, prog->n * sizeof *copy);
    *out = copy;
    *n = prog->n;
    return DQ_OK;
}

static int compile_locked(const char *text, int link, dq_cbpf_insn **out, uint32_t *n, dq_diag *diag) {
    const api *a = load(diag);
    if (a == NULL) return DQ_NOT_SUPPORTED;
    pcap *p = a->open_dead(link == LINKTYPE_RAW ? DLT_RAW : link, SNAPLEN);
    if (p == NULL) return dqi_fail(diag, DQ_GENERIC_FAILURE, "libpcap: no memory");
    bpf_program prog = {0};
    int err;
    if (a->compile(p, &prog, text, 1, netmask_unknown) != 0) {
        err = dqi_fail(diag, DQ_INVALID_PARAMETER, "filter '%s': %s", text, a->geterr(p));
    } else {
        err = copy_program(&prog, out, n, diag);
        a->freecode(&prog);
    }
    a->close(p);
    return err;
}

int dq_pcap_compile(const char *text, int link, dq_cbpf_insn **out, uint32_t *n, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    int err = compile_locked(text, link, out, n, diag);
    pthread_mutex_unlock(&lock);
    return err;
}
