// compiler.c: supervisor process of a compiler: this program, restarted under its own name
// (runtime/kernel/compile.go). It restricts the compiler to its folder and to the files that compilers read,
// and kills it, with all its children, at the program's request or when the program ends.
#include "compute/confine.h"
#include "compute/dq_compute.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// argv: name, the compiler's folder, the folders it may read, the compiler and its arguments.
enum { FOLDER = 1, ROOTS, COMPILER };

#define NOT_RUN 127 // exit code of sh(1) for a command that can't be run

_Noreturn static void compile(char **argv, const sigset_t *none) {
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, none, NULL);
    close(DQ_COMPILER_SOCKET);
    if (!dqi_confine_files(argv[FOLDER], argv[ROOTS]) && errno != ENOSYS && errno != EOPNOTSUPP) {
        fprintf(stderr, "error: landlock: %s\n", strerror(errno));
        _exit(NOT_RUN);
    }
    execv(argv[COMPILER], argv + COMPILER);
    fprintf(stderr, "error: %s: %s\n", argv[COMPILER], strerror(errno));
    _exit(NOT_RUN);
}

// Waits until the compiler has ended, or until the program ends or closes its end of the socket.
static void watch(int ended) {
    struct pollfd p[] = {{.fd = ended, .events = POLLIN}, {.fd = DQ_COMPILER_SOCKET, .events = POLLIN}};
    while (poll(p, 2, -1) < 0 && errno == EINTR)
        ;
}

_Noreturn static void be_compiler(char **argv) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &all, NULL); // signals of the terminal are for the program
#ifdef SYS_close_range
    syscall(SYS_close_range, DQ_COMPILER_SOCKET + 1u, ~0u, 0u);
#endif
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int ended = signalfd(-1, &child, SFD_CLOEXEC), status = 0;
    pid_t pid = ended < 0 ? -1 : fork();
    if (pid < 0) {
        fprintf(stderr, "error: no process for the compiler: %s\n", strerror(errno));
        _exit(NOT_RUN);
    }
    if (pid == 0) compile(argv, &none);
    setpgid(pid, pid);
    watch(ended);
    kill(-pid, SIGKILL); // and its remaining children
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

// Runs before the Go runtime.
__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
    (void)envp;
    if (argc > COMPILER && strcmp(argv[0], DQ_COMPILER_NAME) == 0) be_compiler(argv);
}
