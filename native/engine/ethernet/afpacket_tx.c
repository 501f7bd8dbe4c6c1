// afpacket_tx.c: sendmmsg copies 64 frames per call past the queueing discipline to the device. The kernel
// checks each against the current MTU. Frames sent this way are not received again and are invisible to
// tcpdump on this host.
#include "engine/ethernet/afpacket_tx.h"
#include "core/burst.h"
#include "core/dq_burst.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH      64
#define BUFFER     (4 << 20)          // bytes that the kernel may buffer for one queue
#define RETRY_NS   INT64_C(20000)     // the device's queue is full
#define WAKE_NS    INT64_C(1000000)   // the socket's buffer is full; upper bound of the wait for POLLOUT
#define REST_NS    INT64_C(1000000)   // between two attempts on a device that accepts no frames
#define GIVE_UP_NS INT64_C(100000000) // the device counts as stuck after its queue was full for this time

typedef struct packet_tx {
    int fd;
    bool full;       // the socket's buffer is full
    int64_t since;   // time at which the device stopped accepting frames; 0: it accepts
    int64_t rest_ns; // no attempt before this time
    struct mmsghdr msgs[BATCH];
    struct iovec iov[BATCH * DQ_MAX_SEGS];
} packet_tx;

int dqi_afpacket_tx_open(dq_queue *q, int index) {
    packet_tx *t = calloc(1, sizeof *t);
    if (!t) return ENOMEM;
    q->engine = t;
    t->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd < 0) return errno;
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_ifindex = index}; // protocol 0: receives nothing
    int one = 1, size = BUFFER;
    if (bind(t->fd, (struct sockaddr *)&at, sizeof at) != 0) return errno;
    if (setsockopt(t->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0)
        setsockopt(t->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return setsockopt(t->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one) == 0 ? 0 : errno;
}

void dqi_afpacket_tx_close(dq_queue *q) {
    packet_tx *t = q->engine;
    if (!t) return;
    if (t->fd >= 0) close(t->fd);
    free(t);
    q->engine = NULL;
}

// Points a message at each of n <= BATCH packets, starting with packet first.
static void point(packet_tx *t, const dq_burst *b, uint32_t first, uint32_t n) {
    struct iovec *v = t->iov;
    for (uint32_t i = 0; i < n; i++) {
        struct msghdr *m = &t->msgs[i].msg_hdr;
        m->msg_iov = v;
        for (uint32_t s = 0; s < b->nseg; s++)
            if (b->len[s][first + i] > 0)
                *v++ = (struct iovec){.iov_base = (void *)(dqi_bytes(b, s, first + i)),
                                      .iov_len = b->len[s][first + i]};
        m->msg_iovlen = (size_t)(v - m->msg_iov);
    }
}

static void lose(dq_queue *q, dq_reason why, int err, uint32_t n) {
    dqi_drop(&q->c, why, n);
    if (why == DQ_DROP_SEND_ERROR) dqi_queue_error_add(q->errors, err, n);
}

// Schedules a retry on a busy device; returns true when it has been busy for GIVE_UP_NS.
static bool wait(dq_queue *q, packet_tx *t) {
    if (t->since == 0) t->since = q->tx.now_ns;
    q->next_ns = q->tx.now_ns + RETRY_NS;
    return q->tx.now_ns - t->since > GIVE_UP_NS;
}

// Handles the error err of the first of n frames. Returns the number dropped; the others are sent again.
static uint32_t refused(dq_queue *q, packet_tx *t, int err, uint32_t n) {
    switch (err) {
    case EINTR:
        return 0;
    case EAGAIN:
        t->full = true;
        q->next_ns = q->tx.now_ns + WAKE_NS;
        return 0;
    case EMSGSIZE:
        lose(q, DQ_DROP_TOO_LONG, err, 1);
        return 1;
    case ENOBUFS:
        if (!wait(q, t)) return 0;
        break;
    case ENETDOWN:
    case ENXIO:
    case ENODEV:
        break;
    default:
        lose(q, DQ_DROP_SEND_ERROR, err, 1);
        return 1;
    }
    lose(q, DQ_DROP_SEND_ERROR, err, n);
    t->rest_ns = q->tx.now_ns + REST_NS;
    return n;
}

// Sends or drops some of n <= BATCH packets; returns their number, or 0 to try again later.
static uint32_t send_some(dq_queue *q, packet_tx *t, const dq_burst *b, uint32_t first, uint32_t n) {
    point(t, b, first, n);
    int sent = sendmmsg(t->fd, t->msgs, n, MSG_DONTWAIT);
    dqi_add(&q->c.extra[DQ_EXTRA_SYSCALLS], 1);
    if (sent <= 0) return refused(q, t, sent < 0 ? errno : EAGAIN, n);
    t->since = 0;
    dqi_add(&q->c.out, (uint32_t)sent);
    dqi_add(&q->c.out_bytes, dqi_burst_sum(b, first, (uint32_t)sent));
    return (uint32_t)sent;
}

int dqi_afpacket_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    packet_tx *t = q->engine;
    uint32_t done = 0;
    t->full = false;
    while (done < n && t->rest_ns <= q->tx.now_ns) {
        uint32_t k = send_some(q, t, b, first + done, n - done < BATCH ? n - done : BATCH);
        if (k == 0) break;
        done += k;
    }
    if (t->rest_ns > q->tx.now_ns && t->rest_ns < q->next_ns) q->next_ns = t->rest_ns;
    if (done > 0 && first + done == b->n) dq_burst_unref(b);
    return (int)done;
}

int dqi_afpacket_tx_arm(dq_queue *q, struct pollfd *fds, int max) {
    const packet_tx *t = q->engine;
    if (!t->full || max < 1) return 0;
    fds[0] = (struct pollfd){.fd = t->fd, .events = POLLOUT};
    return 1;
}
