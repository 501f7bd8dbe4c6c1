// socket_conn.h: connections: table, reactor, ending.
#ifndef DQI_SOCKET_CONN_H
#define DQI_SOCKET_CONN_H

#include "engine/socket/socket_state.h"

// ---- socket_conn.c ----------------------------------------------------------------------------------------

// Reserves a connecting slot with a new id, assigned to the pair-th receive and transmit queue (modulo their
// numbers; -1: round robin). Returns NULL if the table is full or the event consumer is far behind. The
// caller fills it in, then publishes it or gives it up. Any thread.
dqi_sconn *dqi_sconn_new(dqi_sock *s, int pair);
// Publishes c: posts the event of an open connection and starts watching it. Any thread.
void dqi_sconn_publish(dqi_sconn *c, int state);
// Replaces the socket of c. Any thread.
void dqi_sconn_set_fd(dqi_sconn *c, int fd, const dqi_sockaddr *peer);
// Frees an unpublished slot. Any thread.
void dqi_sconn_give_up(dqi_sconn *c);
// Returns the connection with this id, in any state, or NULL. Any thread; lock-free.
dqi_sconn *dqi_sconn_find(dqi_sock *s, uint32_t id);
// Ends a connection: closes its socket, posts the event unless posted, frees the slot. Reactor's thread.
void dqi_sconn_end(dqi_sconn *c, int code);
// Ends reception on an open connection and posts its event. Reactor's thread.
void dqi_sconn_stop_reading(dqi_sconn *c);
// Starts connecting to the next of c->to. Returns DQ_OK, or the last system error if none is left. Reactor's
// thread, or before the connection is published.
int dqi_sconn_try(dqi_sconn *c);
// Notifies the interface's transmit queues of new or ended connections. Any thread.
void dqi_sconn_kick(dqi_sock *s);
int dqi_sock_conn_open(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dqi_sock_conn_close(dq_iface *i, uint32_t conn);
int dqi_sock_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out);
// Closes a connected socket so that the peer receives all sent data, even if it sent data that was not read.
void dqi_sconn_hang_up(int fd);

// ---- socket_reactor.c -------------------------------------------------------------------------------------

int dqi_reactor_init(dqi_reactor *r, dqi_sock *s, dq_queue *q);
void dqi_reactor_close(dqi_reactor *r);
// Starts watching c (readable, or connected). Any thread. Returns DQ_OK or a system error.
int dqi_reactor_add(dqi_reactor *r, dqi_sconn *c, int state);
// One turn of a receive queue: accepts, connects, ends and reads. Returns the packets added to b. Reactor's
// thread; never blocks.
int dqi_reactor_rx(dqi_sock_rx *r, dq_burst *b, uint32_t room);
// One turn of the first transmit queue of an interface without receive queues: accepts, connects, ends, and
// discards received data. Returns the work done. Queue's poller; never blocks.
int dqi_reactor_reap(dqi_reactor *r);

// ---- socket_ending.c: reactor's thread; never blocks ------------------------------------------------------

// Ends reception on an open connection, because of code (DQ_OK: end of stream, or requested). It ends after
// pending sends where these are possible, else at once.
void dqi_ending_begin(dqi_sconn *c, int code);
// Ends connections without pending sends; returns the session time of the next check, INT64_MAX: none.
int64_t dqi_ending_serve(dqi_reactor *r);
// Handles an event of an ending connection's socket: checks whether it is broken.
void dqi_ending_look(dqi_sconn *c);

#endif
