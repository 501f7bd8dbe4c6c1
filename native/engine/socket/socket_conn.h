// socket_conn.h: connections: the table, the reactor, how they end.
#ifndef DQI_SOCKET_CONN_H
#define DQI_SOCKET_CONN_H

#include "engine/socket/socket_state.h"

// ---- socket_conn.c ----------------------------------------------------------------------------------------

// A connecting slot with a new id that belongs to the pair-th receive and transmit queue (modulo their
// numbers; -1: each pair in turn). NULL: the table is full, or the listener far behind with events. The
// caller fills it in and publishes it, or gives it up. Any thread.
dqi_sconn *dqi_conn_new(dqi_sock *s, int pair);
// An open connection gets its event; the reactor watches it from now on. Any thread.
void dqi_conn_publish(dqi_sconn *c, int state);
// Gives c its socket, in place of the one it had. Any thread.
void dqi_conn_set_fd(dqi_sconn *c, int fd, const dqi_sockaddr *peer);
// Frees a slot that was not published. Any thread.
void dqi_conn_give_up(dqi_sconn *c);
// The connection of this id, in whatever state, or NULL. Any thread; no lock.
dqi_sconn *dqi_conn_find(dqi_sock *s, uint32_t id);
// Ends a connection: socket closed, event posted unless it was, slot free. Reactor's thread.
void dqi_conn_end(dqi_sconn *c, int code);
// An open connection ends for its receive queue: event posted, read no more. Reactor's thread.
void dqi_conn_stop_reading(dqi_sconn *c);
// Starts connecting to the next of c->to: DQ_OK, or the last system error when none is left. Reactor's
// thread, or before the connection is published.
int dqi_conn_try(dqi_sconn *c);
// Tells the interface's transmit queues that connections came or went. Any thread.
void dqi_conn_kick(dqi_sock *s);
int dqi_sock_conn_open(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dqi_sock_conn_close(dq_iface *i, uint32_t conn);
int dqi_sock_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out);
// Closes a connected socket so that the peer gets all that was sent, even where it sent what nobody read.
void dqi_conn_hang_up(int fd);

// ---- socket_reactor.c -------------------------------------------------------------------------------------

int dqi_reactor_init(dqi_reactor *r, dqi_sock *s, dq_queue *q);
void dqi_reactor_close(dqi_reactor *r);
// Watches c (readable, or connected) from now on. Any thread. DQ_OK or a system error.
int dqi_reactor_add(dqi_reactor *r, dqi_sconn *c, int state);
// One turn of a receive queue: accepts, connects, ends and reads; packets added to b. Reactor's thread; never
// blocks.
int dqi_reactor_rx(dqi_sock_rx *r, dq_burst *b, uint32_t room);
// One turn of the first transmit queue of an interface without receive queues: accepts, connects, ends, and
// throws away what is sent to it; work done. Queue's poller; never blocks.
int dqi_reactor_reap(dqi_reactor *r);

// ---- socket_ending.c: reactor's thread; never block -------------------------------------------------------

// An open connection is read no more, because of code (DQ_OK: its stream ended, or its end was asked for).
// Sends that it can still take go first; then, or else at once, it ends.
void dqi_ending_begin(dqi_sconn *c, int code);
// Ends those that are through; session time of the next look, INT64_MAX: none.
int64_t dqi_ending_serve(dqi_reactor *r);
// An ending connection's socket has something to say: whether it is broken.
void dqi_ending_look(dqi_sconn *c);

#endif
