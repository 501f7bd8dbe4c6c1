// wake.c: wake-up of a sleeping thread through an eventfd.
#include "core/wake.h"
#include "core/dq_core.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int dqi_wake_init(dqi_wake *w) {
    atomic_init(&w->sleeping, 0);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->fd < 0 ? DQ_ESYS - errno : DQ_OK;
}

void dqi_wake_close(dqi_wake *w) {
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
}

// Both sides exchange `sleeping`: the later one sees the earlier one's writes, the sleeper the new work, or
// the waker that the other side sleeps.
void dqi_wake_up(dqi_wake *w) {
    if (atomic_exchange(&w->sleeping, 0) == 0) return;
    uint64_t one = 1;
    while (write(w->fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

bool dqi_wake_sleep(dqi_wake *w, struct pollfd *fds, nfds_t n, int64_t ns) {
    fds[0] = (struct pollfd){.fd = w->fd, .events = POLLIN};
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    bool slept_out = ppoll(fds, n, ns == INT64_MAX ? NULL : &t, NULL) == 0;
    dqi_wake_stay(w);
    uint64_t v;
    if (fds[0].revents && read(w->fd, &v, sizeof v) < 0) return slept_out; // another thread read it
    return slept_out;
}
