// worker_process.c: worker handling in the program: start, messages, end.
#include "compute/worker.h"
#include "core/err.h"
#include "pipeline/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MS   30000 // limit for loading its kernel
#define NOT_LOADED 127   // exit code of ld.so(8) if a library can't be found or mapped

extern char **environ;

// Environment variables passed to workers: those read by loaders, CUDA and the C library. Passwords are not
// passed.
static const char *const kept[] = {
    "LD_",   "CUDA_", "NVIDIA_", "CUBLAS_",         "PATH=",  "HOME=", "TMPDIR=",
    "TZ=",   "LANG=", "LC_",     "MALLOC_",         "GLIBC_", "ASAN_", "UBSAN_",
    "TSAN_", "MSAN_", "LSAN_",   "XDG_CACHE_HOME=", "DAQIRI_"};

static bool is_kept(const char *variable) {
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
        if (strncmp(variable, kept[k], strlen(kept[k])) == 0) return true;
    return false;
}

// Returns NULL without memory. The caller frees the list, not the strings.
static char **worker_environ(void) {
    size_t n = 0, of = 0;
    while (environ[of])
        of++;
    char **list = calloc(of + 1, sizeof *list);
    for (size_t k = 0; list && k < of; k++)
        if (is_kept(environ[k])) list[n++] = environ[k];
    return list;
}

// Spawns in a new process group, so that the terminal's signals go to the program only.
static int spawn(const char *name, int theirs, pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    char *argv[] = {(char *)(uintptr_t)name, NULL}, **envp = worker_environ();
    if (!envp) return ENOMEM;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, theirs, DQI_WORKER_SOCKET);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    int err = posix_spawn(pid, "/proc/self/exe", &files, &attr, argv, envp);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    free(envp);
    return err;
}

bool dqi_worker_send(const dqi_worker *w, const dqi_worker_message *m) {
    size_t bytes = m->n_files * sizeof(int);
    union {
        char bytes[CMSG_SPACE(DQI_WORKER_FILES * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {m->data, m->bytes};
    struct msghdr h = {.msg_iov = &part, .msg_iovlen = 1};
    if (bytes > 0) {
        h.msg_control = &control;
        h.msg_controllen = CMSG_SPACE(bytes);
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(c), m->files, bytes);
    }
    return sendmsg(w->socket, &h, MSG_NOSIGNAL) == (ssize_t)m->bytes;
}

// Terminates and sanitizes text from an untrusted process, for a terminal.
static void clean(dqi_worker_word *word) {
    word->text[sizeof word->text - 1] = 0;
    for (char *c = word->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
}

bool dqi_worker_hear(const dqi_worker *w, int timeout_ms, dqi_worker_word *word, bool *ended) {
    struct pollfd p = {.fd = w->socket, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, timeout_ms);
    while (n < 0 && errno == EINTR);
    bool received = n == 1 && recv(w->socket, word, sizeof *word, MSG_DONTWAIT) == (ssize_t)sizeof *word;
    *ended = n == 1 && !received;
    if (received) clean(word);
    return received;
}

static void how(int status, char *text, size_t len) {
    if (!WIFSIGNALED(status)) {
        int code = WEXITSTATUS(status);
        snprintf(text, len, "its worker ended with exit code %d; hint: %s", code,
                 code == NOT_LOADED ? "Linux could not load the program again; the reason is on stderr, such "
                                      "as a missing library, LD_LIBRARY_PATH or ulimit -v"
                                    : "a kernel ends by return, not by exit");
        return;
    }
    int sig = WTERMSIG(status);
    snprintf(text, len, "its worker died of signal %d (%s)%s", sig, strsignal(sig),
             sig == SIGSEGV || sig == SIGBUS ? "; hint: it touched memory that it was not given"
             : sig == SIGSYS                 ? "; hint: it asked Linux for a file, a process or the network"
                                             : "");
}

void dqi_worker_end(dqi_worker *w, dqi_worker_word *word) {
    int status = 0;
    kill(w->pid, SIGKILL); // not reaped yet: the pid is still its own
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(w->socket);
    if (word) how(status, word->text, sizeof word->text);
}

static int start_one(const char *name, const dqi_worker_message *first, dqi_worker *w,
                     dqi_worker_word *word) {
    int pair[2];
    bool ended = true; // also if the message can't be sent
    *word = (dqi_worker_word){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return DQ_ESYS - errno;
    int err = spawn(name, pair[1], &w->pid);
    close(pair[1]);
    w->socket = pair[0];
    if (err != 0) {
        close(pair[0]);
        return DQ_ESYS - err;
    }
    bool received = dqi_worker_send(w, first) && dqi_worker_hear(w, READY_MS, word, &ended);
    if (received && word->is == DQ_OK) return DQ_OK;
    dqi_worker_end(w, received ? NULL : word);
    if (!received && !ended)
        snprintf(word->text, sizeof word->text, "its worker was not ready after %d s", READY_MS / 1000);
    return received ? word->is : DQ_GENERIC_FAILURE;
}

int dqi_worker_spawn(const char *what, const char *name, const dqi_worker_message *first, dqi_worker *out,
                     dq_diag *diag) {
    dqi_worker_word word;
    int err = DQ_ESYS - EADDRINUSE;
    for (int k = 0; k < DQI_WORKER_TRIES && err == DQ_ESYS - EADDRINUSE; k++)
        err = start_one(name, first, out, &word);
    if (err == DQ_OK) return DQ_OK;
    return dqi_fail(diag, err, "%s: a process of its own can't be started: %s", what,
                    word.text[0] ? word.text : dq_err_name(err));
}

// ---- memory -----------------------------------------------------------------------------------------------

dqi_worker_map dqi_worker_region(const dq_session *s, const dq_region *r, uint64_t file) {
    uint64_t page = r->huge ? DQI_HUGE_PAGE : dqi_page_size(), at;
    dqi_region_file(r, &at);
    return (dqi_worker_map){(uintptr_t)s->core.base + r->offset, dqi_round_up(dqi_region_bytes(r), page), at,
                            file};
}

dqi_worker_map dqi_worker_shared(const void *at, uint64_t bytes, uint64_t file) {
    return (dqi_worker_map){(uintptr_t)at, bytes, (uintptr_t)at, file};
}
