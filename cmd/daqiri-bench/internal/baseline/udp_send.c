// udp_send.c: a sender of numbered datagrams: sendmmsg in a loop, with or without UDP_SEGMENT, with or
// without a pace. An instrument's sender has no UDP_SEGMENT.
#include "baseline.h"
#include "clock.h"
#include "core/err.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SOCKET_BYTES (64 << 20)
#define MAX_BYTES    65507 // of a datagram, and of a message of segments
#define MESSAGES     32    // of a call
#define GSO_MESSAGES 8
#define SPIN_S       50e-6 // a pace waits for shorter times than this without sleeping
#define MARK_GAP_US  20000
#define MARKS        3

typedef struct sender {
    int fd;
    uint32_t size, segments, messages; // datagrams of a message, messages of a call
    uint64_t next;                     // number of the next datagram
    uint8_t *payload;                  // messages × segments × size bytes
    struct iovec iov[MESSAGES];
    struct mmsghdr msgs[MESSAGES];
} sender;

static int connect_to(const dq_baseline_send *c, int *fd, dq_diag *diag) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(c->port)};
    if (inet_pton(AF_INET, c->host, &to.sin_addr) != 1)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "baseline sender: %s is not an IPv4 address", c->host);
    *fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (*fd < 0 || connect(*fd, (struct sockaddr *)&to, sizeof to) != 0)
        return dqi_fail(diag, DQ_ESYS - errno, "baseline sender: connect to %s: %s", c->host,
                        strerror(errno));
    int bytes = SOCKET_BYTES;
    if (setsockopt(*fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
        setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes); // less, where it is limited
    int segment = (int)c->size;
    if (c->segments > 1 && setsockopt(*fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
        return dqi_fail(diag, DQ_ESYS - errno, "baseline sender: UDP_SEGMENT: %s", strerror(errno));
    return DQ_OK;
}

static int prepare(sender *s, const dq_baseline_send *c, dq_diag *diag) {
    s->size = c->size;
    s->segments = c->segments > 1 ? c->segments : 1;
    s->messages = s->segments > 1 ? GSO_MESSAGES : MESSAGES;
    if (c->size < DQ_BASELINE_MIN_BYTES || (uint64_t)s->size * s->segments > MAX_BYTES)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "baseline sender: %u datagrams of %u bytes are not a message", s->segments, c->size);
    size_t message = (size_t)s->size * s->segments;
    s->payload = calloc(s->messages, message);
    if (!s->payload) return dqi_fail(diag, DQ_ESYS - ENOMEM, "baseline sender: no memory for its messages");
    for (uint32_t m = 0; m < s->messages; m++) {
        s->iov[m] = (struct iovec){.iov_base = s->payload + m * message, .iov_len = message};
        s->msgs[m].msg_hdr = (struct msghdr){.msg_iov = &s->iov[m], .msg_iovlen = 1};
    }
    return connect_to(c, &s->fd, diag);
}

// Sends at most n messages: those that went, or -errno.
static int send_some(sender *s, uint32_t n) {
    if (n > s->messages) n = s->messages;
    uint64_t number = s->next;
    for (uint32_t m = 0; m < n; m++) {
        uint8_t *p = s->iov[m].iov_base;
        for (uint32_t k = 0; k < s->segments; k++, number++)
            memcpy(p + (size_t)k * s->size, &number, sizeof number);
    }
    int sent = sendmmsg(s->fd, s->msgs, n, 0);
    if (sent > 0) s->next += (uint64_t)sent * s->segments;
    if (sent >= 0) return sent;
    return errno == ECONNREFUSED || errno == ENOBUFS || errno == EINTR ? 0 : -errno;
}

// Waits until the message of datagram number `next` is due; false: not within this turn.
static uint32_t due(const sender *s, double pps, double elapsed) {
    double ahead = elapsed * pps - (double)s->next;
    if (ahead >= s->segments) return ahead < 1e6 ? (uint32_t)ahead / s->segments : s->messages;
    double wait = (s->segments - ahead) / pps;
    if (wait > SPIN_S) {
        struct timespec t = {.tv_sec = (time_t)wait, .tv_nsec = (long)((wait - (double)(time_t)wait) * 1e9)};
        nanosleep(&t, NULL);
    }
    return 0;
}

#define LATE_S 2 // at most, for a first message that the scheduler delayed

// Whether to continue: until the time is up, and beyond it where not even the first message that was due is
// out.
static bool continues(const sender *s, const dq_baseline_send *c, double elapsed) {
    if (elapsed < c->seconds) return true;
    bool was_due = c->pps <= 0 || c->seconds * c->pps >= s->segments;
    return s->next == 0 && was_due && elapsed < c->seconds + LATE_S;
}

static int send_for(sender *s, const dq_baseline_send *c, dq_baseline_figures *out, dq_diag *diag) {
    double start = baseline_seconds(CLOCK_MONOTONIC), cpu = baseline_seconds(CLOCK_PROCESS_CPUTIME_ID),
           now = start;
    for (; continues(s, c, now - start); now = baseline_seconds(CLOCK_MONOTONIC)) {
        uint32_t n = c->pps > 0 ? due(s, c->pps, now - start) : s->messages;
        int sent = n == 0 ? 0 : send_some(s, n);
        if (sent < 0) return dqi_fail(diag, DQ_ESYS + sent, "baseline sender: sendmmsg: %s", strerror(-sent));
    }
    *out = (dq_baseline_figures){.packets = s->next,
                                 .bytes = s->next * s->size,
                                 .seconds = now - start,
                                 .cpu_seconds = baseline_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu};
    return DQ_OK;
}

// The end: a datagram with the number UINT64_MAX and the count. Several, for the receiver's buffer may be
// full.
static void mark_end(const sender *s) {
    uint8_t mark[DQ_BASELINE_MIN_BYTES];
    uint64_t number = UINT64_MAX;
    memcpy(mark, &number, sizeof number);
    memcpy(mark + sizeof number, &s->next, sizeof s->next);
    for (int i = 0; i < MARKS; i++) {
        usleep(MARK_GAP_US);
        if (send(s->fd, mark, sizeof mark, 0) < 0 && errno == ECONNREFUSED) break; // the receiver has ended
    }
}

int dq_baseline_udp_send(const dq_baseline_send *c, dq_baseline_figures *out, dq_diag *diag) {
    sender *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "baseline sender: no memory");
    s->fd = -1;
    int err = prepare(s, c, diag);
    if (err == DQ_OK) err = send_for(s, c, out, diag);
    if (err == DQ_OK && c->end_marks) mark_end(s);
    if (s->fd >= 0) close(s->fd);
    free(s->payload);
    free(s);
    return err;
}
