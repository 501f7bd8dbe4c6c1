// guard.c: protection against files that become shorter while they are mapped.
//
// Access to a page behind the end of its file raises SIGBUS. The handler maps private memory there, as any
// thread may be accessing it, and marks the range; the session then ends with an explanation.
#include "binding/binding.h"
#include "core/core.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define GUARDS (2 * DQI_MAX_REGIONS) // of all sessions of the process

// bytes and page are valid while `at` is not 0.
typedef struct guard {
    _Atomic uintptr_t at;
    _Atomic bool hit;
    uint64_t bytes, page;
} guard;

static guard guards[GUARDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static bool installed;

// Calls system calls and atomics only: it runs in the signal handler.
static bool replace(guard *g, uintptr_t at, uint64_t from) {
    from = from / g->page * g->page;
    void *to = (void *)(at + from);
    if (mmap(to, g->bytes - from, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        return false;
    atomic_store(&g->hit, true);
    return true;
}

static bool handled(uintptr_t address) {
    for (uint32_t k = 0; k < GUARDS; k++) {
        uintptr_t at = atomic_load(&guards[k].at);
        if (at != 0 && address - at < guards[k].bytes) return replace(&guards[k], at, address - at);
    }
    return false;
}

// Passes other errors on to the handler that was there before: that of the Go runtime.
static void on_bus(int sig, siginfo_t *info, void *context) {
    int error = errno;
    bool done = info->si_code == BUS_ADRERR && handled((uintptr_t)info->si_addr);
    errno = error;
    if (done) return;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(sig, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(sig);
    else
        sigaction(SIGBUS, &before, NULL); // the access is repeated and ends the process
}

static void install(void) {
    if (installed) return;
    struct sigaction with = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigfillset(&with.sa_mask);
    installed = sigaction(SIGBUS, &with, &before) == 0;
}

uint32_t dqi_guard_add(uint8_t *at, uint64_t bytes, uint64_t page) {
    pthread_mutex_lock(&lock);
    install();
    uint32_t k = 0;
    while (k < GUARDS && atomic_load(&guards[k].at) != 0)
        k++;
    if (k < GUARDS && installed) {
        guards[k].bytes = bytes;
        guards[k].page = page;
        atomic_store(&guards[k].hit, false);
        atomic_store(&guards[k].at, (uintptr_t)at);
    } else {
        k = DQI_NO_GUARD;
    }
    pthread_mutex_unlock(&lock);
    return k;
}

void dqi_guard_remove(uint32_t k) {
    if (k != DQI_NO_GUARD) atomic_store(&guards[k].at, 0);
}

void dqi_guard_replace(uint32_t k, uint64_t from) {
    from = dqi_round_up(from, guards[k].page);
    if (from < guards[k].bytes) replace(&guards[k], atomic_load(&guards[k].at), from);
}

bool dqi_guard_hit(uint32_t k) { return atomic_load(&guards[k].hit); }
