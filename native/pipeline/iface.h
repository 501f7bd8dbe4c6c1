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
    uint32_t n_rx, n_tx;
    dq_queue *rx[DQ_MAX_QUEUES], *tx[DQ_MAX_QUEUES];
    void *given;                        // to its engine before the open; freed with the interface
    _Atomic(dqi_tap *) events;          // connect and disconnect events
    _Atomic(dqi_responder *) responder; // responder.h; NULL: it says nothing by itself
    dqi_rx_acts *rx_acts;               // flows with actions (actions.h); NULL: none
    dqi_spin tx_lock;                   // of the pointer to
    _Atomic(dqi_tx_acts *) tx_acts;     // transmit flows (actions.h); NULL: none
};

// Posts an event to whoever listens to i's connections. Any thread; false: nobody does, or the ring is full.
bool dqi_iface_event(dq_iface *i, int kind, uint32_t conn, int code);
// Whether there is room for all events of n_conns connections, those that there are and one more: the end of
// none may be lost, so that a new one waits until the listener has read on. Any thread.
bool dqi_iface_event_room(const dq_iface *i, uint32_t n_conns);

// How many segments of interfaces' queues have their buffers from the region. *queue (may be NULL): the name
// of the first of these queues, or NULL.
uint32_t dqi_region_uses(const dq_session *s, const dq_region *r, const char **queue);

#endif
