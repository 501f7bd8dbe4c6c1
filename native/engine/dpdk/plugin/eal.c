// eal.c: the DPDK environment (EAL): started once, on a thread of its own because it pins the calling thread,
// with fixed arguments and no device. It cannot be restarted, so it lives until the process exits. Log
// messages go into a small buffer for error messages, never to stdout or stderr.
#include "dpdk.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NO_HUGE_MIB "512" // address space, populated on demand

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool tried, huge;
static int outcome; // rte_errno of the start
static pthread_key_t leave;
_Thread_local bool eal_joined;

// ---- log --------------------------------------------------------------------------------------------------

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_text[224]; // first messages since the last clear

// Keeps the first lines, which are closest to the cause; only warnings and errors are logged.
static ssize_t take_log(void *cookie, const char *text, size_t len) {
    (void)cookie;
    size_t n = len;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    pthread_mutex_lock(&log_lock);
    size_t at = strlen(log_text);
    if (n > 0) snprintf(log_text + at, sizeof log_text - at, "%s%.*s", at ? "; " : "", (int)n, text);
    pthread_mutex_unlock(&log_lock);
    return (ssize_t)len;
}

void eal_log_clear(void) {
    pthread_mutex_lock(&log_lock);
    log_text[0] = 0;
    pthread_mutex_unlock(&log_lock);
}

void eal_log_read(char *text, size_t len) {
    pthread_mutex_lock(&log_lock);
    snprintf(text, len, "%s%s", log_text[0] ? ": " : "", log_text);
    pthread_mutex_unlock(&log_lock);
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\t') *c = ' ';
}

// Silences driver libraries that print to stderr unconditionally.
static void hush(const char *library, const char *function) {
    void *lib = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (!lib) return;
    void *(*set_print)(void *);
    *(void **)&set_print = dlsym(lib, function);
    if (set_print) set_print(NULL);
    dlclose(lib);
}

static void catch_log(void) {
    FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take_log});
    if (!f) return;
    setvbuf(f, NULL, _IOLBF, sizeof log_text);
    rte_openlog_stream(f);
}

// ---- start ------------------------------------------------------------------------------------------------

static bool free_huge_pages(void) {
    static const char *const files[] = {
        "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages",
        "/sys/kernel/mm/hugepages/hugepages-524288kB/free_hugepages",
    };
    long n = 0;
    for (size_t i = 0; n == 0 && i < sizeof files / sizeof *files; i++) {
        FILE *f = fopen(files[i], "r");
        if (!f) continue;
        if (fscanf(f, "%ld", &n) != 1) n = 0;
        fclose(f);
    }
    return n > 0;
}

// Returns a core available to this process, to which DPDK's idle main thread is pinned.
static int some_core(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((unsigned)i, &set)) return i;
    return 0;
}

static int init(void) {
    char lcores[32];
    snprintf(lcores, sizeof lcores, "0@%d", some_core());
    // Allowing only an address that no NIC has prevents probing of devices until a session names one.
    char *args[16] = {"daqiri",        "--lcores",   lcores, "--no-telemetry", "--log-level", "warning",
                      "--file-prefix", "daqiri-run", "-a",   "ffff:ff:1f.7"};
    int n = 10;
    huge = free_huge_pages();
    if (huge) {
        args[n++] = "--in-memory";
    } else {
        args[n++] = "--no-shconf";
        args[n++] = "--no-huge";
        args[n++] = "-m";
        args[n++] = NO_HUGE_MIB;
    }
    if (access("/sys/kernel/iommu_groups/0", F_OK) == 0) args[n++] = "--iova-mode=va";
    catch_log();
    int err = rte_eal_init(n, args) < 0 ? (rte_errno ? rte_errno : EINVAL) : 0;
    hush("libbpf.so.1", "libbpf_set_print");
    hush("libxdp.so.1", "libxdp_set_print");
    return err;
}

static pthread_cond_t started = PTHREAD_COND_INITIALIZER;
static bool done;

static void *main_lcore(void *arg) {
    (void)arg;
    int err = init();
    pthread_mutex_lock(&lock);
    outcome = err;
    done = true;
    pthread_cond_signal(&started);
    pthread_mutex_unlock(&lock);
    for (;;)
        pause();
    return NULL;
}

static void thread_leaves(void *arg) {
    (void)arg;
    rte_thread_unregister();
}

// Starts the thread with signals blocked and waits until DPDK is initialized. Requires the lock.
static void start_once(void) {
    sigset_t all, old;
    pthread_t t;
    tried = true;
    pthread_key_create(&leave, thread_leaves);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    outcome = pthread_create(&t, NULL, main_lcore, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (outcome != 0) return;
    pthread_detach(t);
    while (!done)
        pthread_cond_wait(&started, &lock);
}

int eal_start(dq_diag *diag) {
    pthread_mutex_lock(&lock);
    if (!tried) start_once();
    int err = outcome;
    pthread_mutex_unlock(&lock);
    if (err == 0) return DQ_OK;
    char why[256];
    eal_log_read(why, sizeof why);
    return host->fail(diag, DQ_ESYS - err, "DPDK can't start: %s%s", strerror(err), why);
}

bool eal_has_huge_pages(void) { return huge; }

void eal_join_slow(void) {
    eal_joined = true; // unregistered threads work too, but slower
    if (rte_lcore_id() != LCORE_ID_ANY || rte_thread_register() != 0) return;
    pthread_setspecific(leave, &eal_joined);
}
