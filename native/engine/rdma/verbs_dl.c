#include "engine/rdma/verbs_dl.h"
#include "core/err.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

dqi_verbs vb;
dqi_cm cm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Looks up a function; ISO C cannot cast an object to a function pointer, while POSIX guarantees the copy.
static bool symbol(void *lib, const char *name, void *fn, const char **missing) {
    void *sym = dlsym(lib, name);
    memcpy(fn, &sym, sizeof sym);
    if (!sym) *missing = name;
    return sym != NULL;
}

// Sets *missing to the first function that is not found.
static void fill_verbs(void *lib, const char **missing) {
    bool ok = true;
#define X(result, name, params) ok = ok && symbol(lib, "ibv_" #name, &vb.name, missing);
    DQI_VERBS_ROWS(X)
#undef X
    const char *older;
    symbol(lib, "ibv_reg_dmabuf_mr", &vb.reg_dmabuf_mr, &older);
}

static void fill_cm(void *lib, const char **missing) {
    bool ok = true;
#define X(result, name, params) ok = ok && symbol(lib, "rdma_" #name, &cm.name, missing);
    DQI_CM_ROWS(X)
#undef X
}

typedef struct library {
    const char *file, *package;
    void (*fill)(void *lib, const char **missing);
    bool ready;
} library;

static library verbs = {"libibverbs.so.1", "libibverbs1 ibverbs-providers", fill_verbs, false};
static library manager = {"librdmacm.so.1", "librdmacm1", fill_cm, false};

static int load(library *l, const char *file, const char *iface, dq_diag *diag) {
    const char *missing = NULL;
    if (l->ready) return DQ_OK;
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "interface %s: RDMA devices need %s, which is not there: %s; hint: apt-get install %s", iface,
            file, dlerror(), l->package);
    l->fill(lib, &missing);
    l->ready = !missing;
    if (l->ready) return DQ_OK;
    dlclose(lib);
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: %s lacks %s: hint: a newer rdma-core", iface, file,
                    missing);
}

static int load_verbs(const char *iface, dq_diag *diag) {
    const char *named = getenv("DAQIRI_VERBS");
    return load(&verbs, named && *named ? named : verbs.file, iface, diag);
}

int dqi_verbs_load(const char *iface, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    int err = load_verbs(iface, diag);
    pthread_mutex_unlock(&lock);
    return err;
}

int dqi_cm_load(const char *iface, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    int err = load_verbs(iface, diag);
    if (err == DQ_OK) err = load(&manager, manager.file, iface, diag);
    pthread_mutex_unlock(&lock);
    return err;
}

void vb_take_events(vb_comp_channel *channel) {
    vb_cq *cq;
    void *context;
    while (vb.get_cq_event(channel, &cq, &context) == 0)
        vb.ack_cq_events(cq, 1);
}

const char *vb_status_text(int status) {
    static const char *const words[] = {
        [VB_WC_SUCCESS] = "success",
        [VB_WC_LOC_LEN_ERR] = "local length error: the message was longer than its buffer",
        [VB_WC_LOC_QP_OP_ERR] = "local queue pair operation error",
        [VB_WC_LOC_EEC_OP_ERR] = "local end-to-end context operation error",
        [VB_WC_LOC_PROT_ERR] = "local protection error: memory that is not registered",
        [VB_WC_WR_FLUSH_ERR] = "flushed: its connection ended",
        [VB_WC_MW_BIND_ERR] = "memory window bind error",
        [VB_WC_BAD_RESP_ERR] = "bad response",
        [VB_WC_LOC_ACCESS_ERR] = "local access error",
        [VB_WC_REM_INV_REQ_ERR] = ("remote invalid request: the peer's buffer is too short, or the peer does "
                                   "not support the operation"),
        [VB_WC_REM_ACCESS_ERR] =
            "remote access error: a wrong key, outside the peer's memory, or not permitted",
        [VB_WC_REM_OP_ERR] = "remote operation error",
        [VB_WC_RETRY_EXC_ERR] = "transport retries exceeded: the peer does not answer",
        [VB_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded: the peer has posted no buffers",
    };
    return status >= 0 && status < (int)(sizeof words / sizeof *words) && words[status] ? words[status]
                                                                                        : "other error";
}
