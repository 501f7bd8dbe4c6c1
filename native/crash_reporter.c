// crash_reporter.c: handles fatal errors and SIGKILL. A fatal error of Go (out of memory, stack overflow, a
// memory fault in C) finally raises SIGABRT: this handler was installed before Go's, so Go forwards the
// signal, and the exit code is DQ_EXIT_FATAL. The output after that, and after SIGKILL, is written by the
// crash reporter: a second process of this program, which only waits here until the other end of its socket
// closes.
#include "crash_reporter.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LAST_WORDS_MS 5000 // limit of the wait for the crash reporter's output before the exit

static atomic_int lifeline = -1;

// Prints a memory fault in C and its stack: Go's handler, which is not called, would take 10 s longer.
static void describe(int sig, const siginfo_t *info) {
    char text[160];
    void *frames[32];
    int n = snprintf(text, sizeof text,
                     "fatal error: %s (signal %d, code %d, address %p) outside of Go, stack:\n",
                     sig == SIGABRT ? "abort" : "fault", sig, info->si_code, info->si_addr);
    if (write(STDERR_FILENO, text, (size_t)n) != n) return;
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
}

static void fatal(int sig, siginfo_t *info, void *context) {
    (void)context;
    if (sig != SIGABRT || info->si_code != SI_TKILL) describe(sig, info); // abort: already explained
    int fd = atomic_exchange(&lifeline, -1);
    if (fd >= 0 && send(fd, "F", 1, MSG_NOSIGNAL) == 1) {
        struct pollfd reply = {.fd = fd, .events = POLLIN};
        poll(&reply, 1, LAST_WORDS_MS);
    }
    _exit(DQ_EXIT_FATAL);
}

static void handle(int sig) {
    struct sigaction act = {.sa_sigaction = fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK}, was;
    if (sigaction(sig, NULL, &was) == 0 &&
        (was.sa_handler == SIG_DFL || sig == SIGABRT)) // keeps a sanitizer's handler
        sigaction(sig, &act, NULL);
}

static bool wants_core(void) {
    const char *dump = getenv("GOTRACEBACK");
    return dump && strcmp(dump, "crash") == 0;
}

void dq_crash_reporter(int fd) {
    static atomic_bool begun;
    if (!atomic_exchange(&begun, true)) {
        void *frame;
        backtrace(&frame, 1); // loads its library now, as a handler must not
        if (!wants_core()) handle(SIGABRT);
    }
    atomic_store(&lifeline, fd);
}

// ---- the crash reporter -----------------------------------------------------------------------------------

static void say(const char *text, size_t n) {
    while (n > 0) {
        ssize_t k = write(STDERR_FILENO, text, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return;
        text += k;
        n -= (size_t)k;
    }
}

// Writes the file, unless it has got content since the run began.
static void save(const char *path, const char *text, size_t n) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    struct stat st;
    if (fd < 0) return;
    if (fstat(fd, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size > 0)) n = 0;
    while (n > 0) {
        ssize_t k = write(fd, text, n);
        if (k <= 0) break;
        text += k;
        n -= (size_t)k;
    }
    close(fd);
}

// Locks a file, retrying for at most *ms milliseconds, and subtracts the time waited from *ms. The last
// thread of a program may close its files slightly after its children have been reparented.
static bool lock(int fd, int *ms) {
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if ((*ms)-- <= 0) return false;
        usleep(1000);
    }
    return true;
}

// Truncates space reserved beyond the end of a file, unless another process is writing to it.
static void truncate_reserve(const char *path, int *ms) {
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0) return;
    if (lock(fd, ms) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_blocks * 512 > st.st_size + (1 << 20) && ftruncate(fd, st.st_size) != 0)
        say("", 0); // the reserved space remains; no other remedy
    close(fd);
}

// Returns the later of the two completed records, or NULL.
static const dq_last_record *last_record(void) {
    const dq_last_record *last = NULL;
    for (int k = 0; k < 2; k++) {
        struct stat st;
        int fd = DQ_REPORTER_RECORDS + k;
        if (fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof *last) continue;
        const dq_last_record *r = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (r == MAP_FAILED || r->number == 0) continue;
        if (!last || r->number > last->number) last = r;
    }
    return last;
}

static void testify(const dq_last_record *r, bool was_fatal, pid_t parent) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double ago = (double)(now.tv_sec * INT64_C(1000000000) + now.tv_nsec - r->mono_ns) / 1e9;
    const char *at = (const char *)(r + 1), *part[DQ_LAST_PARTS];
    for (int k = 0; k < DQ_LAST_PARTS; k++) {
        part[k] = at;
        at += r->len[k];
    }
    char head[256];
    int n = snprintf(head, sizeof head, "\n%s; its last ledger, %.1f s before its end:\n",
                     was_fatal ? "daqiri-run ended by the fatal error above, please report it"
                               : "daqiri-run was killed",
                     ago);
    say(head, (size_t)n);
    say(part[DQ_LAST_TEXT], r->len[DQ_LAST_TEXT]);
    int json = was_fatal ? DQ_LAST_FATAL : DQ_LAST_KILLED;
    if (r->len[DQ_LAST_PATH] > 1) save(part[DQ_LAST_PATH], part[json], r->len[json]);
    if (was_fatal) send(DQ_REPORTER_SOCKET, "F", 1, MSG_NOSIGNAL); // the process waits for this
    // The process keeps its files locked until it has exited.
    int ms = LAST_WORDS_MS;
    for (; ms > 0 && getppid() == parent; ms--)
        usleep(1000);
    const char *file = part[DQ_LAST_FILES], *end = file + r->len[DQ_LAST_FILES];
    for (; file < end; file += strlen(file) + 1)
        truncate_reserve(file, &ms);
}

static void be_reporter(void) {
    pid_t parent = getppid();
    sigset_t all;
    sigfillset(&all); // signals to the process group are not for the reporter
    sigprocmask(SIG_SETMASK, &all, NULL);
    close_range(DQ_REPORTER_RECORDS + 2, ~0u, 0);
    char c = 0;
    ssize_t n;
    do
        n = recv(DQ_REPORTER_SOCKET, &c, 1, 0);
    while (n < 0 && errno == EINTR);
    bool orderly = n == 1 && c == 'D';
    const dq_last_record *r = orderly ? NULL : last_record();
    if (r) testify(r, n == 1, parent);
    _exit(0);
}

// Runs before the Go runtime starts.
__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
    (void)envp;
    if (argc == 1 && strcmp(argv[0], DQ_REPORTER_NAME) == 0) be_reporter();
    if (wants_core()) return;
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        handle(faults[k]);
}
