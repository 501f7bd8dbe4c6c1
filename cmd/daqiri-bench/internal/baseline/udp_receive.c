// udp_receive.c: a receiver that finds out from the datagrams' numbers what is missing: recvmmsg in a loop,
// with or without UDP_GRO; and one that measures how long after the kernel's stamp a datagram is in the
// program's hands.
#include "baseline.h"
#include "clock.h"
#include "core/err.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define SOCKET_BYTES (64 << 20)
#define SUPER_BYTES  65536
#define MESSAGES     64
#define GRO_MESSAGES 16

typedef struct receiver {
    int fd;
    uint32_t messages;
    uint8_t *bufs;
    struct iovec iov[MESSAGES];
    struct mmsghdr msgs[MESSAGES];
    _Alignas(struct cmsghdr) char control[MESSAGES][CMSG_SPACE(sizeof(int))];
    uint64_t packets, bytes, top,
        ended; // top: largest number so far, plus 1; ended: the count of the end mark
    bool end;
} receiver;

static int listen_on(const dq_baseline_recv *c, int fd, uint16_t *port, dq_diag *diag) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    if (inet_pton(AF_INET, c->host, &at.sin_addr) != 1)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "baseline receiver: %s is not an IPv4 address", c->host);
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || getsockname(fd, (struct sockaddr *)&at, &len) != 0)
        return dqi_fail(diag, DQ_ESYS - errno, "baseline receiver: bind to %s: %s", c->host, strerror(errno));
    int bytes = SOCKET_BYTES, on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); // less, where it is limited
    if (c->gro && setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on) != 0)
        return dqi_fail(diag, DQ_ESYS - errno, "baseline receiver: UDP_GRO: %s", strerror(errno));
    if (c->stamps && setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
        return dqi_fail(diag, DQ_ESYS - errno, "baseline receiver: SO_TIMESTAMPNS: %s", strerror(errno));
    *port = ntohs(at.sin_port);
    return DQ_OK;
}

int dq_baseline_udp_open(const dq_baseline_recv *c, int *fd, uint16_t *port, dq_diag *diag) {
    *fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*fd < 0) return dqi_fail(diag, DQ_ESYS - errno, "baseline receiver: socket: %s", strerror(errno));
    int err = listen_on(c, *fd, port, diag);
    if (err == DQ_OK) return DQ_OK;
    close(*fd);
    *fd = -1;
    return err;
}

static int prepare(receiver *r, const dq_baseline_recv *c, dq_diag *diag) {
    size_t room = c->gro || c->size > SUPER_BYTES   ? SUPER_BYTES
                  : c->size < DQ_BASELINE_MIN_BYTES ? DQ_BASELINE_MIN_BYTES
                                                    : c->size;
    r->messages = c->gro ? GRO_MESSAGES : MESSAGES;
    r->bufs = calloc(r->messages, room);
    if (!r->bufs) return dqi_fail(diag, DQ_ESYS - ENOMEM, "baseline receiver: no memory for its buffers");
    for (uint32_t m = 0; m < r->messages; m++) {
        r->iov[m] = (struct iovec){.iov_base = r->bufs + m * room, .iov_len = room};
        r->msgs[m].msg_hdr = (struct msghdr){.msg_iov = &r->iov[m], .msg_iovlen = 1};
        if (c->gro) r->msgs[m].msg_hdr.msg_control = r->control[m];
    }
    return DQ_OK;
}

// Bytes of each datagram in a message: those that UDP_GRO names, or all.
static uint32_t segment_bytes(struct mmsghdr *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c; c = CMSG_NXTHDR(&m->msg_hdr, c)) {
        int bytes;
        if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO) continue;
        memcpy(&bytes, CMSG_DATA(c), sizeof bytes);
        if (bytes > 0) return (uint32_t)bytes;
    }
    return m->msg_len;
}

static void count(receiver *r, uint32_t m) {
    const uint8_t *p = r->iov[m].iov_base;
    uint32_t len = r->msgs[m].msg_len, segment = segment_bytes(&r->msgs[m]);
    for (uint32_t at = 0; at + DQ_BASELINE_MIN_BYTES <= len; at += segment) {
        uint64_t number;
        memcpy(&number, p + at, sizeof number);
        if (number == UINT64_MAX) {
            r->end = true;
            memcpy(&r->ended, p + at + sizeof number, sizeof r->ended);
            return;
        }
        r->packets++;
        if (number >= r->top) r->top = number + 1;
    }
    r->bytes += len;
}

// One call: messages received; 0: none for idle_s; negative: -errno.
static int receive(receiver *r, int flags) {
    for (uint32_t m = 0; m < r->messages && r->msgs[0].msg_hdr.msg_control; m++)
        r->msgs[m].msg_hdr.msg_controllen = sizeof r->control[m];
    int n = recvmmsg(r->fd, r->msgs, r->messages, flags, NULL);
    for (int m = 0; m < n; m++)
        count(r, (uint32_t)m);
    if (n >= 0) return n;
    return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static int set_timeout(int fd, double seconds, dq_diag *diag) {
    struct timeval t = {.tv_sec = (time_t)seconds,
                        .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) == 0) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - errno, "baseline receiver: SO_RCVTIMEO: %s", strerror(errno));
}

static int receive_all(receiver *r, dq_baseline_figures *out, dq_diag *diag) {
    double start = 0, last = 0, cpu = 0;
    for (int n = 1; !r->end;) {
        n = receive(r, MSG_WAITFORONE);
        if (n < 0) return dqi_fail(diag, DQ_ESYS + n, "baseline receiver: recvmmsg: %s", strerror(-n));
        if (n == 0 && r->packets > 0) break; // idle
        if (n == 0 || r->end) continue;
        last = baseline_seconds(CLOCK_MONOTONIC);
        if (start > 0) continue;
        start = last;
        cpu = baseline_seconds(CLOCK_PROCESS_CPUTIME_ID);
    }
    double used = baseline_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    uint64_t sent = r->end ? r->ended : r->top;
    *out = (dq_baseline_figures){.packets = r->packets,
                                 .bytes = r->bytes,
                                 .missing = sent > r->packets ? sent - r->packets : 0,
                                 .seconds = last - start,
                                 .cpu_seconds = used};
    int bytes = 0;
    socklen_t len = sizeof bytes;
    getsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
    out->buffer_bytes = (uint32_t)bytes;
    return DQ_OK;
}

int dq_baseline_udp_recv(int fd, const dq_baseline_recv *c, double idle_s, dq_baseline_figures *out,
                         dq_diag *diag) {
    receiver *r = calloc(1, sizeof *r);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "baseline receiver: no memory");
    r->fd = fd;
    int err = prepare(r, c, diag);
    if (err == DQ_OK) err = set_timeout(fd, idle_s, diag);
    if (err == DQ_OK) err = receive_all(r, out, diag);
    free(r->bufs);
    free(r);
    return err;
}

// ---- latency ----------------------------------------------------------------------------------------------

static int64_t to_ns(const struct timespec *t) { return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec; }

// The kernel's stamp of a message, ns since the epoch; 0: none.
static int64_t stamp(struct msghdr *m) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        struct timespec t;
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
        memcpy(&t, CMSG_DATA(c), sizeof t);
        return to_ns(&t);
    }
    return 0;
}

int dq_baseline_udp_latency(int fd, uint32_t n, double idle_s, int64_t *ns, uint32_t *got, dq_diag *diag) {
    static const size_t room = 2048;
    uint8_t buf[2048];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timespec))];
    int err = set_timeout(fd, idle_s, diag);
    for (*got = 0; err == DQ_OK && *got < n;) {
        struct iovec iov = {.iov_base = buf, .iov_len = room};
        struct msghdr m = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t len = recvmsg(fd, &m, 0);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (len < 0 && errno == EINTR) continue;
        if (len < 0 && errno == EAGAIN) {
            if (*got > 0) break;
            continue;
        }
        if (len < 0)
            return dqi_fail(diag, DQ_ESYS - errno, "baseline receiver: recvmsg: %s", strerror(errno));
        int64_t at = stamp(&m);
        if (at > 0) ns[(*got)++] = to_ns(&now) - at;
    }
    return err;
}
