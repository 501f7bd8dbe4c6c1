// rdma_conn.h: functions of connections, in the order of calls: those of a file call only files above it.
#ifndef DQI_RDMA_CONN_H
#define DQI_RDMA_CONN_H

#include "engine/rdma/rdma.h"

// ---- rdma_wake.c: any thread ------------------------------------------------------------------------------

// Unlocks and wakes pollers that found it locked, because posting to a device may take long.
void dqi_rconn_unlock(dqi_rconn *c);
// Tries to lock for q, one of its two queues; on false, the unlock wakes q's poller.
bool dqi_rconn_try_lock(dqi_rconn *c, const dq_queue *q);
// Wakes the keeper to check connections.
void dqi_rdma_wake(dqi_rdma *r);
// Wakes the pollers of all queues, after a connection was opened or ended.
void dqi_rdma_kick_all(const dqi_rdma *r);
// Records that its queue pair is in error for an unknown reason; the keeper ends the connection.
void dqi_rconn_in_error(dqi_rconn *c);
// Records the status of a failed completion or post as the reason of the end, replacing earlier ones:
// failures caused by it may be seen first on other completion queues, as a device event, or as the peer's
// disconnect.
void dqi_rconn_break(dqi_rconn *c, int status);
// Handles a flushed work request: unless a flush was requested, the queue pair is in error. Under its lock.
void dqi_rconn_flushed(dqi_rconn *c);

// ---- rdma_flight.c: under the connection's lock -----------------------------------------------------------

// Settles a completed work request.
void dqi_rdma_settle(dqi_rdma_sent *w, bool ok, dq_reason why, const char *words);
// Records n more posted work requests and wakes the poller for their completions if none were in flight.
void dqi_rconn_posted(dqi_rconn *c, uint32_t n);
// Handles a completion of sends and operations up to this one. Called by its queue's poller.
void dqi_rconn_sent_done(dqi_rconn *c, const vb_wc *wc);
// Appends the packets to those waiting in the connection; false: no memory.
bool dqi_rconn_add_wait(dqi_rconn *c, dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
// Removes n packets from the first waiting entry.
void dqi_rconn_advance(dqi_rconn *c, uint32_t n);
// Drop the waiting packets, and the requests in flight, because of `why`.
void dqi_rconn_drop_waits(dqi_rconn *c, dq_reason why);
void dqi_rconn_drop_sent(dqi_rconn *c, dq_reason why, const char *words);

// ---- rdma_recv.c: the receive queue's poller --------------------------------------------------------------

// Sets the limit of posted buffers of the queue: its share of half the region. Control thread.
void dqi_rdma_share_buffers(dqi_rdma_queue *x);
// Posts buffers for every connection of the queue that has a consumer.
void dqi_rdma_review(dqi_rdma_queue *x);
// Posts buffers for a new connection. Keeper's thread.
void dqi_rconn_post_recv(dqi_rconn *c);
// Delivers at most room messages into b; b NULL: the queue has no regions. Returns their number.
int dqi_rdma_take(dqi_rdma_queue *x, dq_burst *b, uint32_t room);
// Handles send and receive completions; returns their number. Queue's poller.
uint32_t dqi_rdma_drain(dqi_rdma_queue *x);
// Drops posted and parked receives. Under the connection's lock.
void dqi_rconn_drop_recv(dqi_rconn *c);

// ---- rdma_qp.c: keeper's thread, or the control thread for connections without connection manager ---------

// Creates the connection's queue pair.
int dqi_rconn_make_qp(dqi_rconn *c);
// Moves its queue pair to a state, with attributes of the connection manager or of both ends.
int dqi_rconn_step(dqi_rconn *c, int state);
// Moves its queue pair to the state in which it receives and sends.
int dqi_rconn_make_ready(dqi_rconn *c);
// Returns the path to the peer of a connection without connection manager.
vb_ah_attr dqi_rconn_path(const dqi_rconn *c);
// Stores the address of a datagram peer.
int dqi_rconn_meet(dqi_rconn *c, vb_ah_attr at, uint32_t qpn, uint32_t qkey);
// Moves its queue pair to the error state, which flushes all posted requests; notifies the peer.
void dqi_rconn_stop_qp(dqi_rconn *c);
// Frees its queue pair and the peer's address.
void dqi_rconn_drop_qp(dqi_rconn *c);

// ---- rdma_resolve.c ---------------------------------------------------------------------------------------

// Binds the interface's address and, for a server, listens; the bound id is r->listener. Control thread.
int dqi_rdma_bind(dqi_rdma *r, dq_diag *diag);
// Starts connecting; returns DQ_OK or an error. Control thread or the keeper's.
int dqi_rdma_dial(dqi_rconn *c, const dqi_sockaddr *from, const dqi_sockaddr *to);
// Waits for such a call to return, as librdmacm writes to its id after the event is delivered.
void dqi_rdma_await_dial(dqi_rdma *r);

// ---- rdma_conn.c ------------------------------------------------------------------------------------------

// Reserves a connecting slot with queues; NULL: no room. Any thread.
dqi_rconn *dqi_rconn_new(dqi_rdma *r);
// Frees a slot whose connection was never reported.
void dqi_rconn_give_up(dqi_rconn *c);
// Marks it open. Keeper's thread.
void dqi_rconn_opened(dqi_rconn *c);
// Frees all resources of a connection, even with requests in flight: at the close, or after a timeout.
void dqi_rconn_destroy(dqi_rconn *c);

// ---- rdma_end.c: keeper's thread --------------------------------------------------------------------------

// Starts the end of the connection with code; it is freed once its requests complete.
void dqi_rconn_end(dqi_rconn *c, int code);
// Advances ending connections; returns the session time of the next check.
int64_t dqi_rconn_ending_serve(dqi_rdma *r);

// ---- rdma_cm.c: keeper's thread ---------------------------------------------------------------------------

// Handles connection manager events, starts and ends connections. Never blocks for long.
void dqi_rdma_serve(dqi_rdma *r);
// Rejects pending connection requests at the end. Control thread.
void dqi_rdma_refuse_rest(dqi_rdma *r);

// ---- rdma_control.c: control thread -----------------------------------------------------------------------

int dqi_rconn_open_op(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dqi_rconn_close_op(dq_iface *i, uint32_t conn);
int dqi_rconn_read_op(dq_iface *i, uint32_t conn, dq_conn_info *out);

// ---- rdma_send.c: the transmit queue's poller -------------------------------------------------------------

int dqi_rdma_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
// Handles completions and sends waiting packets; returns the work done.
int dqi_rdma_reap(dq_queue *q);
// See dqi_conn_ops.refuse. Any thread.
bool dqi_rdma_refuse(dq_queue *q, const dq_burst *b);
// Ends connections with requests in flight, after the pollers have ended. Control thread.
void dqi_rdma_drop_rest(dq_queue *q);

#endif
