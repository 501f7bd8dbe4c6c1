// socket_open.h: setting up: options, sockets, queues, groups.
#ifndef DQI_SOCKET_OPEN_H
#define DQI_SOCKET_OPEN_H

#include "engine/socket/socket_state.h"

// ---- socket_option.c: control threads, or a reactor's for a new connection --------------------------------

// A non-blocking socket of this family for the interface, its options set; or -errno.
int dqi_sock_new_fd(dqi_sock *s, int family);
// Has the kernel tell of each datagram where it was sent to, where the sockets take what goes to any address.
// For captures alone: it costs a control message each. Control thread.
void dqi_sock_captured(dq_iface *i);
// The setsockopt of the engine table.
int dqi_sock_set_option(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len);

// ---- socket_open.c: control thread, may block -------------------------------------------------------------

// Resolves the addresses and makes the sockets that exist from the open on.
int dqi_sock_bind(dqi_sock *s, dq_diag *diag);
// A UDP socket from `from` (family 0: any) to `to`; or -errno. reuse: SO_REUSEPORT or 0.
int dqi_udp_connect(dqi_sock *s, const dqi_sockaddr *from, const dqi_sockaddr *to, int reuse);
// Binds fd, an IPv6 one for IPv4 too; 0 or -errno.
int dqi_sock_bind_fd(int fd, const dqi_sockaddr *a);

// ---- socket_queue.c: control thread -----------------------------------------------------------------------

// The k-th queue's own part, into q->engine; on failure the close takes back what was made.
int dqi_sock_open_rx(dqi_sock *s, uint32_t k, dq_diag *diag);
int dqi_sock_open_tx(dqi_sock *s, uint32_t k, dq_diag *diag);
void dqi_sock_close_rx(dq_queue *q);
void dqi_sock_close_tx(dq_queue *q);

// ---- socket_multicast.c -----------------------------------------------------------------------------------

int dqi_sock_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
// Joins the group that the interface is bound to, if it is one.
int dqi_sock_join_own(dqi_sock *s, dq_diag *diag);
// Chooses the network interface by the configuration, and sends multicast through it.
void dqi_sock_choose_nic(dqi_sock *s);
void dqi_sock_multicast_out(dqi_sock *s, int fd, int family);

#endif
