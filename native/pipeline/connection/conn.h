// conn.h: life of a connection, shared by all engines that have connections: opening, reports of its start
// and end, attempts of a client to connect again, and packets that are still sent when it ends.
#ifndef DQI_CONN_H
#define DQI_CONN_H

#include "pipeline/connection/conn_table.h"
#include "pipeline/dq_session.h"
#include "pipeline/queue.h"

// ---- a client's own connections ---------------------------------------------------------------------------

// One of these, connected again whenever it is lost. Written under the table's lock.
struct dqi_redial {
    int64_t first_ns;         // delay after the first failure; it doubles
    _Atomic(dqi_conn *) conn; // NULL: waiting for due_ns
    int64_t due_ns, wait_ns;  // session time of the next attempt; delay after the next failure
    int64_t since_ns;         // session time at which conn was established
    int last_err;             // error of the last event
    bool retired;             // closed by the user: no further attempt
};

void dqi_redial_init(dqi_redial *d, const dq_iface *i);

// ---- start and end: the thread that ends the engine's connections -----------------------------------------

// Changes the state to OPEN and posts the event. Takes the table's lock.
void dqi_conn_opened(dqi_conn_table *t, dqi_conn *c);
// Begins the state ENDING at session time now: the idle time starts, with this progress. Under the table's
// lock.
void dqi_conn_begin_end(dqi_conn_table *t, dqi_conn *c, uint64_t moved, int64_t now);
// Returns the time without progress since the end began.
int64_t dqi_conn_idle_ns(dqi_conn *c, uint64_t moved, int64_t now);
// Records the ends of the transmit rings as positions.
void dqi_conn_mark(const dqi_conn_table *t, dqi_conn *c);
// Returns true if the transmit queues have settled all bursts up to the marks.
bool dqi_conn_passed(const dqi_conn_table *t, const dqi_conn *c);
// Frees the slot and schedules a client's next attempt. Returns true if the end is to be reported, by
// dqi_iface_event with *id (0: a client's own connection that was never open). Under the table's lock.
bool dqi_conn_ended(dqi_conn_table *t, dqi_conn *c, int code, uint32_t *id);

// ---- queues -------------------------------------------------------------------------------------------------

// First part of the engine state of a transmit queue (q->engine).
typedef struct dqi_conn_tx {
    // Position up to which all bursts were sent, dropped, or taken over by their connection: that of the
    // ring, plus base.
    _Atomic uint32_t settled;
    _Atomic uint32_t base; // position at which the ring began, after a deletion
} dqi_conn_tx;

// Updates the position. Queue's poller.
void dqi_conn_settle(const dq_queue *q);
// Returns the connection named by b, 0: none. An id of another interface, which received b, is ignored.
uint32_t dqi_conn_named(const dq_queue *q, const dq_burst *b);
// Receives bursts of q by rx and discards them, until there are none, or many. Returns their packets; counts
// them as in, not as dropped.
int64_t dqi_conn_flush(dq_queue *q, int (*rx)(dq_queue *q, dq_burst **b, uint32_t room));

// ---- control calls ----------------------------------------------------------------------------------------

// Returns an error if the interface can't open connections because it is a server.
int dqi_conn_check_client(const dq_iface *i, dq_diag *diag);
// Resolves "host:port" into at most max addresses in *out. Returns their number, or an error. Blocks.
int dqi_conn_addresses(const dq_iface *i, const char *text, bool need_port, dqi_sockaddr *out, int max,
                       dq_diag *diag);
// Reports that dqi_conn_reserve found no slot.
int dqi_conn_full(const dq_iface *i, dq_diag *diag);
// Requests the end of connection id. Returns NULL if there is none, or its end was requested before. Under
// the table's lock.
dqi_conn *dqi_conn_request_end(dqi_conn_table *t, uint32_t id);
// Fills in addresses, queues and `open`.
void dqi_conn_describe(const dqi_conn *c, dq_conn_info *out);

#endif
