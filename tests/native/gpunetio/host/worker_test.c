// worker_test.c: a kernel's process that can't be started gives the reason, and what to do.
#include "dqtest.h"
#include "gpunetio/host/worker.h"

#include <fcntl.h>
#include <unistd.h>

// A folder of libraries with a libc that is none: Linux finds the program, and can't load it.
static void not_loaded(void) {
    char dir[] = "/tmp/dq-worker-XXXXXX", libc[64];
    const char *was = getenv("LD_LIBRARY_PATH");
    char *before = was ? strdup(was) : NULL;
    DQ_CHECK(mkdtemp(dir) != NULL);
    snprintf(libc, sizeof libc, "%s/libc.so.6", dir);
    int file = open(libc, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    DQ_CHECK(file >= 0);
    setenv("LD_LIBRARY_PATH", dir, 1);
    dqi_worker w;
    dq_diag d = {{0}};
    dqi_worker_kit kit = {0};
    for (int k = 0; k < DQI_FILES; k++)
        kit.files[k] = file;
    DQ_CHECK(dqi_gn_worker_start("kernel k", &kit, &w, &d) != DQ_OK);
    DQ_EQ_STR(
        d.text,
        "kernel k: a process of its own can't be started: its worker ended with exit code 127; hint: Linux "
        "could not load the program again; the reason is on stderr, such as a missing library, "
        "LD_LIBRARY_PATH or ulimit -v");
    if (before)
        setenv("LD_LIBRARY_PATH", before, 1);
    else
        unsetenv("LD_LIBRARY_PATH");
    free(before);
    close(file);
    unlink(libc);
    rmdir(dir);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
#ifndef __x86_64__
    DQ_SKIP("the emulated program is linked statically: it has no libraries to look for");
#endif
    DQ_RUN(not_loaded);
    return dq_done();
}
