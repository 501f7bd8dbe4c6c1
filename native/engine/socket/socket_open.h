// socket_open.h: setup of options, sockets, queues and groups.
#ifndef DQI_SOCKET_OPEN_H
#define DQI_SOCKET_OPEN_H

#include "engine/socket/socket_state.h"

// ---- socket_option.c: control threads, or a reactor's for a new connection --------------------------------

// Creates a non-blocking socket of this family with the interface's options; returns it or -errno.
int dqi_sock_new_fd(dqi_sock *s, int family);
// Enables reporting of each datagram's destination on sockets bound to any address. Only for captures, as it
// costs a control message per datagram. Control thread.
void dqi_sock_captured(dq_iface *i);
// See dqi_conn_ops.setsockopt.
int dqi_sock_set_option(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len);

// ---- socket_open.c: control thread, may block -------------------------------------------------------------

// Resolves the addresses and creates the sockets that exist from the open on.
int dqi_sock_bind(dqi_sock *s, dq_diag *diag);
// Creates a UDP socket from `from` (family 0: any) to `to`; returns it or -errno. reuse: SO_REUSEPORT or 0.
int dqi_udp_connect(dqi_sock *s, const dqi_sockaddr *from, const dqi_sockaddr *to, int reuse);
// Binds fd, an IPv6 socket also for IPv4; returns 0 or -errno.
int dqi_sock_bind_fd(int fd, const dqi_sockaddr *a);

// ---- socket_queue.c: control thread -----------------------------------------------------------------------

// Create the engine state of a queue in q->engine, k-th of its direction; the close frees a partial one after
// a failure. A transmit queue that was deleted keeps its state, and uses it again.
int dqi_sock_open_rx(dqi_sock *s, uint32_t k, dq_diag *diag);
int dqi_sock_open_tx(dqi_sock *s, dq_queue *q, uint32_t k, dq_diag *diag);
// See dqi_engine_ops.queue_open and queue_deletable.
int dqi_sock_queue_open(dq_queue *q, dq_diag *diag);
int dqi_sock_queue_deletable(const dq_queue *q, dq_diag *diag);
void dqi_sock_close_rx(dq_queue *q);
void dqi_sock_close_tx(dq_queue *q);

// ---- socket_multicast.c -----------------------------------------------------------------------------------

int dqi_sock_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
// Joins the multicast group to which the interface is bound, if any.
int dqi_sock_join_own(dqi_sock *s, dq_diag *diag);
// Select the network interface of the configuration, and send multicast through it.
void dqi_sock_choose_nic(dqi_sock *s);
void dqi_sock_multicast_out(dqi_sock *s, int fd, int family);

#endif
