// socket_open.c: creates bound sockets from the configuration. Control thread; name resolution may block.
//
// UDP has one socket per receive queue (those of a server share its port by SO_REUSEPORT; the kernel
// distributes the peers). TCP has one listening socket or, for a client, one connection per queue pair, made
// after the start.
#include "engine/socket/socket_open.h"
#include "core/err.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 1024

// Formats the address as configured.
static const char *uri(const dqi_sock *s, bool remote, char *buf, size_t len) {
    const dq_socket_conf *c = &s->iface->conf.socket;
    const char *host = remote ? c->remote_host : c->local_host;
    bool v6 = strchr(host, ':') != NULL;
    snprintf(buf, len, "%s://%s%s%s:%u", c->proto == DQ_PROTO_UDP ? "udp" : "tcp", v6 ? "[" : "",
             host[0] ? host : "[::]", v6 ? "]" : "", remote ? c->remote_port : c->local_port);
    return buf;
}

static const char *advice(int err) {
    switch (err) {
    case EADDRINUSE:
        return "another program listens there: end it or choose another port";
    case EADDRNOTAVAIL:
        return "no network interface of this host has that address";
    case EACCES:
    case EPERM:
        return "ports below 1024 need root or CAP_NET_BIND_SERVICE";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "no route leads there: is the network up?";
    case EAFNOSUPPORT:
        return "the local and the remote address must both be IPv4, or both IPv6";
    case ENODEV:
        return "no network interface takes the group: name one as the interface's address";
    case EMFILE:
        return "too many open files: raise ulimit -n";
    }
    return "check the address";
}

static int fail_at(const dqi_sock *s, bool remote, int err, dq_diag *diag) {
    char at[320];
    char why[128];
    const dqi_sockaddr *a = remote ? &s->remote[0] : &s->local;
    bool unscoped =
        a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr) && a->in6.sin6_scope_id == 0;
    const char *hint =
        unscoped ? "a link-local address needs its network interface, as in fe80::1%eth0" : advice(err);
    snprintf(why, sizeof why, "%s", strerror(err));
    if (why[0] >= 'A' && why[0] <= 'Z') why[0] = (char)(why[0] - 'A' + 'a');
    return dqi_fail(diag, DQ_ESYS - err, "interface %s: %s: %s: %s", s->iface->conf.name,
                    uri(s, remote, at, sizeof at), why, hint);
}

static int resolve(dqi_sock *s, bool remote, dqi_sockaddr *out, int max, dq_diag *diag) {
    const dq_socket_conf *c = &s->iface->conf.socket;
    const char *host = remote ? c->remote_host : c->local_host, *why = "";
    char at[320], text[80];
    int n = dqi_addr_resolve(host, remote ? c->remote_port : c->local_port, out, max, &why);
    if (n < 0)
        return dqi_fail(diag, n,
                        "interface %s: %s: %s: %s; hint: write the address in digits, or correct the name",
                        s->iface->conf.name, uri(s, remote, at, sizeof at), host, why);
    dqi_sockaddr same;
    if (host[0] && !dqi_addr_parse(host, &same)) {
        dqi_addr_text(&out[0], text, sizeof text);
        dqi_note(s->iface->session, "interface %s: %s is %s", s->iface->conf.name,
                 uri(s, remote, at, sizeof at), text);
    }
    return n;
}

int dqi_sock_bind_fd(int fd, const dqi_sockaddr *a) {
    int off = 0;
    if (a->sa.sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    return bind(fd, &a->sa, dqi_addr_len(a)) == 0 ? 0 : -errno;
}

// Creates a socket bound to a; reuse is the option for sharing the port, 0: none.
static int bound_fd(dqi_sock *s, const dqi_sockaddr *a, int reuse) {
    int on = 1, fd = dqi_sock_new_fd(s, a->sa.sa_family);
    if (fd < 0) return fd;
    if (reuse) setsockopt(fd, SOL_SOCKET, reuse, &on, sizeof on);
    int err = dqi_sock_bind_fd(fd, a);
    if (err == 0) return fd;
    close(fd);
    return err;
}

// Tries the addresses in turn while the error concerns the address; stores the last one tried in s->local.
static int bind_first(dqi_sock *s, const dqi_sockaddr *list, int n, int reuse) {
    int fd = -EADDRNOTAVAIL;
    for (int k = 0; k < n; k++) {
        fd = bound_fd(s, &list[k], reuse);
        s->local = list[k];
        if (fd >= 0 || (fd != -EADDRNOTAVAIL && fd != -EAFNOSUPPORT)) break;
    }
    return fd;
}

static void learn_local(int fd, dqi_sockaddr *a) {
    socklen_t len = sizeof *a;
    memset(a, 0, sizeof *a);
    getsockname(fd, &a->sa, &len);
}

// ---- UDP --------------------------------------------------------------------------------------------------

static int add_base(dqi_sock *s, int fd) {
    dqi_sconn *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return -ENOMEM;
    }
    pthread_mutex_init(&c->tx_lock, NULL);
    c->sock = s;
    c->fd = fd;
    c->buf = DQI_NO_BUF;
    atomic_store(&c->conn.state, DQI_CONN_OPEN);
    learn_local(fd, &c->conn.local);
    s->base[s->n_base++] = c;
    return 0;
}

// Sockets share a port only if each requests it; a first bind without sharing detects a port used by another
// program.
static int udp_server(dqi_sock *s, uint32_t n, dq_diag *diag) {
    dqi_sockaddr list[DQI_SOCK_ADDRS];
    int k = resolve(s, false, list, DQI_SOCK_ADDRS, diag);
    if (k < 0) return k;
    s->local = list[0];
    dqi_sock_choose_nic(s);
    bool group = dqi_addr_is_multicast(&list[0]);
    int fd = bind_first(s, list, k, group ? SO_REUSEADDR : 0);
    if (fd < 0) return fail_at(s, false, -fd, diag);
    learn_local(fd, &s->local);
    if (n > 1) close(fd);
    int err = n > 1 ? 0 : add_base(s, fd);
    for (uint32_t i = 0; n > 1 && i < n && err == 0; i++) {
        fd = bound_fd(s, &s->local, SO_REUSEPORT);
        err = fd < 0 ? fd : add_base(s, fd);
    }
    return err == 0 ? dqi_sock_join_own(s, diag) : fail_at(s, false, -err, diag);
}

int dqi_udp_connect(dqi_sock *s, const dqi_sockaddr *from, const dqi_sockaddr *to, int reuse) {
    dqi_sockaddr local;
    bool bound = from->sa.sa_family != AF_UNSPEC;
    if (bound && !dqi_addr_fit(from, to->sa.sa_family, &local)) return -EAFNOSUPPORT;
    int fd = bound ? bound_fd(s, &local, reuse) : dqi_sock_new_fd(s, to->sa.sa_family);
    if (fd < 0) return fd;
    // Members of a multicast group answer from their own addresses, so that socket stays unconnected.
    if (dqi_addr_is_multicast(to) || connect(fd, &to->sa, dqi_addr_len(to)) == 0) return fd;
    int err = -errno;
    close(fd);
    return err;
}

static int udp_client(dqi_sock *s, uint32_t n, dq_diag *diag) {
    int reuse = n > 1 && dqi_addr_port(&s->local) != 0 ? SO_REUSEPORT : 0, err = 0;
    dqi_sock_choose_nic(s);
    for (uint32_t i = 0; i < n && err == 0; i++) {
        int fd = -ENETUNREACH;
        for (int k = 0; k < s->n_remote; k++) {
            fd = dqi_udp_connect(s, &s->local, &s->remote[k], reuse);
            if (fd < 0) continue;
            s->remote[0] = s->remote[k];
            s->n_remote = 1;
        }
        err = fd < 0 ? fd : add_base(s, fd);
        if (err == 0) s->base[i]->conn.peer = s->remote[0];
    }
    return err == 0 ? DQ_OK : fail_at(s, err != -EADDRINUSE && err != -EADDRNOTAVAIL, -err, diag);
}

// ---- TCP --------------------------------------------------------------------------------------------------

static int tcp_server(dqi_sock *s, dq_diag *diag) {
    dqi_sockaddr list[DQI_SOCK_ADDRS];
    int k = resolve(s, false, list, DQI_SOCK_ADDRS, diag);
    if (k < 0) return k;
    // SO_REUSEADDR allows a port whose old connections are in TIME_WAIT, not one with a listener.
    int fd = bind_first(s, list, k, SO_REUSEADDR);
    if (fd >= 0 && listen(fd, BACKLOG) != 0) {
        int err = -errno;
        close(fd);
        fd = err;
    }
    if (fd < 0) return fail_at(s, false, -fd, diag);
    s->listen_fd = fd;
    learn_local(fd, &s->local);
    return DQ_OK;
}

static int tcp_client(dqi_sock *s, dq_diag *diag) {
    const dq_iface *i = s->iface;
    s->n_primary = i->n_rx > i->n_tx ? i->n_rx : i->n_tx;
    if (s->n_primary > 1 && i->conf.socket.local_port != 0)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: local port %u: each queue has a connection of its own, so it must be left out",
            i->conf.name, i->conf.socket.local_port);
    for (uint32_t k = 0; k < s->n_primary; k++)
        dqi_redial_init(&s->primary[k], i);
    return DQ_OK;
}

static int client_addresses(dqi_sock *s, dq_diag *diag) {
    const dq_socket_conf *c = &s->iface->conf.socket;
    dqi_sockaddr list[DQI_SOCK_ADDRS];
    int k = c->local_host[0] || c->local_port ? resolve(s, false, list, DQI_SOCK_ADDRS, diag) : 0;
    if (k < 0) return k;
    if (k > 0) s->local = list[k - 1]; // of several wildcard addresses the last: IPv4, which also fits IPv6
    return DQ_OK;
}

int dqi_sock_bind(dqi_sock *s, dq_diag *diag) {
    const dq_iface *i = s->iface;
    const dq_socket_conf *c = &i->conf.socket;
    uint32_t n = i->n_rx ? i->n_rx : 1;
    int err = DQ_OK;
    if (c->remote_host[0]) {
        s->n_remote = resolve(s, true, s->remote, DQI_SOCK_ADDRS, diag);
        if (s->n_remote < 0) return s->n_remote;
    }
    if (!c->server) err = client_addresses(s, diag);
    if (err != DQ_OK) return err;
    if (dqi_sock_is_udp(s)) return c->server ? udp_server(s, n, diag) : udp_client(s, n, diag);
    return c->server ? tcp_server(s, diag) : tcp_client(s, diag);
}
