#include "core/thread.h"
#include "core/dq_core.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

// Blocks signals, which the host handles, except synchronous ones: blocked, those would kill the process.
int dqi_thread_start(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) {
    sigset_t all, old;
    sigfillset(&all);
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        sigdelset(&all, faults[k]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(t, attr, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return err ? DQ_ESYS - err : DQ_OK;
}

void dqi_thread_name(const char *does, const char *name) {
    char text[16]; // the limit of Linux, including the 0
    snprintf(text, sizeof text, "%s %s", does, name);
    prctl(PR_SET_NAME, text);
}
