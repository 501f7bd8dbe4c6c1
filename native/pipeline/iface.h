// iface.h: interfaces.
#ifndef DQI_IFACE_H
#define DQI_IFACE_H

#include "core/atomics.h"
#include "core/dq_core.h"
#include "pipeline/dq_session.h"

typedef struct dqi_engine_ops dqi_engine_ops;
typedef struct dqi_responder dqi_responder;
typedef struct dqi_rx_acts dqi_rx_acts;
typedef struct dqi_tx_acts dqi_tx_acts;
typedef struct dqi_tap dqi_tap;

struct dq_iface {
    dq_iface_conf conf;
    dq_session *session;
    const dqi_engine_ops *ops;
    void *engine; // the engine's own
    uint32_t index;
    // Queues in the order of their addition. A deleted queue keeps its place (queue.h, dqi_queue_life), as
    // pollers read the list at any time, and is used again by the next queue of its id.
    _Atomic uint32_t n_rx, n_tx;
    _Atomic(dq_queue *) rx[DQ_MAX_QUEUES], tx[DQ_MAX_QUEUES];
    void *given;                        // to its engine before the open; freed with the interface
    _Atomic(dqi_tap *) events;          // connect and disconnect events
    _Atomic(dqi_responder *) responder; // responder.h; NULL: none
    dqi_rx_acts *rx_acts;               // flows with actions (actions.h); NULL: none
    dqi_spin tx_lock;                   // protects the pointer
    _Atomic(dqi_tx_acts *) tx_acts;     // transmit flows (actions.h); NULL: none
};

// Frees an interface and its event tap; the engine must be closed.
void dqi_iface_free(dq_iface *i);
// Posts an event to the listener of i's connections. Returns false without a listener, or if the ring is
// full. Any thread.
bool dqi_iface_event(dq_iface *i, int kind, uint32_t conn, int code);
// Whether the event ring has space for all events of n_conns connections, including a new one: disconnect
// events must not be lost, so a new connection waits until the listener has caught up. Any thread.
bool dqi_iface_event_room(const dq_iface *i, uint32_t n_conns);

// Returns how many segments of interface queues that are not deleted use the region. *queue (may be NULL):
// the name of the first such queue, or NULL.
uint32_t dqi_region_uses(const dq_session *s, const dq_region *r, const char **queue);

#endif
