// socket_option.c: socket creation, kernel buffers, setsockopt pass-through. Options set on an interface are
// stored for later connections and reconnects.
#include "core/peers.h"
#include "engine/socket/socket_conn.h"
#include "engine/socket/socket_open.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (64 << 20) // of kernel memory, requested for each direction
#define REST_BYTES   (4 << 20)  // of a receive buffer that holds the data of REST_NS
#define REST_NS      50000
#define REST_MIN_NS  20000 // shorter sleeps are not worthwhile
#define BUSY_POLL_US 50    // a read of an empty socket polls the device

static int set_int(int fd, int level, int name, int v) { return setsockopt(fd, level, name, &v, sizeof v); }

// Requests a large kernel buffer and returns its bytes. FORCE exceeds the system's limit, with CAP_NET_ADMIN.
static int enlarge(int fd, int force, int plain) {
    if (set_int(fd, SOL_SOCKET, force, BUFFER_BYTES) != 0) set_int(fd, SOL_SOCKET, plain, BUFFER_BYTES);
    int got = 0;
    socklen_t len = sizeof got;
    getsockopt(fd, SOL_SOCKET, plain, &got, &len);
    return got / 2; // the kernel doubles it for its own overhead
}

// With a large kernel buffer, queues with a batch timeout sleep for a quarter of it between polls, at most
// REST_NS.
static void let_rest(dq_iface *i, int bytes) {
    for (uint32_t k = 0; k < i->n_rx; k++) {
        int64_t ns = (int64_t)i->rx[k]->conf.timeout_us * 1000 / 4;
        i->rx[k]->rx.rest_ns = bytes < REST_BYTES || ns < REST_MIN_NS ? 0 : ns < REST_NS ? ns : REST_NS;
    }
}

// Requests large kernel buffers and reports their sizes once.
static void enlarge_buffers(dqi_sock *s, int fd) {
    int rx = enlarge(fd, SO_RCVBUFFORCE, SO_RCVBUF), tx = enlarge(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    if (s->sizes_reported) return;
    s->sizes_reported = true;
    let_rest(s->iface, rx);
    if (rx >= BUFFER_BYTES && tx >= BUFFER_BYTES)
        dqi_note(s->iface->session, "interface %s: kernel buffers of %d MiB each way", s->iface->conf.name,
                 BUFFER_BYTES >> 20);
    else
        dqi_note(s->iface->session,
                 "interface %s: kernel buffers of %d KiB (receive) and %d KiB (send), %d asked for; hint: "
                 "sysctl -w net.core.rmem_max=%d net.core.wmem_max=%d",
                 s->iface->conf.name, rx >> 10, tx >> 10, BUFFER_BYTES >> 10, BUFFER_BYTES, BUFFER_BYTES);
}

void dqi_sock_captured(dq_iface *i) {
    const dqi_sock *s = i->engine;
    if (dqi_session_keep_targets(i->session) != DQ_OK) return; // destinations stay unknown
    for (uint32_t k = 0; k < s->n_base; k++) {
        const dqi_sconn *c = s->base[k];
        if (!dqi_addr_is_any(&c->conn.local)) continue; // bound to a single address
        if (c->conn.local.sa.sa_family == AF_INET6)
            set_int(c->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
        else
            set_int(c->fd, IPPROTO_IP, IP_PKTINFO, 1);
    }
}

int dqi_sock_new_fd(dqi_sock *s, int family) {
    bool udp = dqi_sock_is_udp(s);
    int fd = socket(family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    if (!udp) set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (udp) {
        set_int(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
        set_int(fd, SOL_SOCKET, SO_BUSY_POLL,
                BUSY_POLL_US); // without the privilege, interrupts are used
        // Excludes groups joined by other sockets of this host.
        set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
#ifdef IPV6_MULTICAST_ALL
        if (family == AF_INET6) set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
#endif
        dqi_sock_multicast_out(s, fd, family);
        enlarge_buffers(s, fd);
    }
    int err = 0;
    pthread_mutex_lock(&s->conns.lock);
    for (uint32_t i = 0; i < s->n_opts && err == 0; i++) {
        const dqi_sock_opt *o = &s->opts[i];
        if (setsockopt(fd, o->level, o->name, o->value, o->len) != 0) err = -errno;
    }
    pthread_mutex_unlock(&s->conns.lock);
    if (err == 0) return fd;
    close(fd);
    return err;
}

static int set_one(int fd, int level, int option, const void *v, uint32_t len) {
    return setsockopt(fd, level, option, v, len) == 0 ? DQ_OK : DQ_ESYS - errno;
}

static int set_on_conn(dqi_sock *s, uint32_t id, int level, int option, const void *v, uint32_t len) {
    dqi_sconn *c = dqi_sconn_find(s, id);
    if (!c || c->fd < 0) return DQ_INVALID_PARAMETER;
    return set_one(c->fd, level, option, v, len);
}

// Returns the entry for an option of later sockets; a new value replaces an old one. NULL: no room.
static dqi_sock_opt *place_of(dqi_sock *s, int level, int option) {
    uint32_t i = 0;
    while (i < s->n_opts && (s->opts[i].level != level || s->opts[i].name != option))
        i++;
    return i < DQI_SOCK_OPTS ? &s->opts[i] : NULL;
}

static int set_on_all(dqi_sock *s, int level, int option, const void *v, uint32_t len) {
    dqi_sock_opt *kept = place_of(s, level, option);
    int err = DQ_OK;
    if (!kept) return DQ_NO_SPACE_AVAILABLE;
    if (len > sizeof kept->value) return DQ_INVALID_PARAMETER;
    if (s->listen_fd >= 0) err = set_one(s->listen_fd, level, option, v, len);
    for (uint32_t i = 0; i < s->n_base && err == DQ_OK; i++)
        err = set_one(s->base[i]->fd, level, option, v, len);
    for (uint32_t i = 0; i < DQI_CONNS && err == DQ_OK; i++) {
        dqi_sconn *c = dqi_sconn_at(s, i);
        if (c && c->fd >= 0) err = set_one(c->fd, level, option, v, len);
    }
    if (err != DQ_OK) return err;
    if (kept == &s->opts[s->n_opts]) s->n_opts++;
    *kept = (dqi_sock_opt){.level = level, .name = option, .len = len};
    memcpy(kept->value, v, len);
    return DQ_OK;
}

int dqi_sock_set_option(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len) {
    dqi_sock *s = i->engine;
    pthread_mutex_lock(&s->conns.lock);
    int err = conn ? set_on_conn(s, conn, level, option, v, len) : set_on_all(s, level, option, v, len);
    pthread_mutex_unlock(&s->conns.lock);
    return err;
}
