// dq_resources.h: queues and regions added and deleted while a session is open.
//
// A deletion has two steps: dq_queue_delete makes the queue invisible to classifiers, and dq_queue_leave
// returns true once nothing of it is in use. All calls are made by one control thread at a time.
#ifndef DQ_RESOURCES_H
#define DQ_RESOURCES_H

#include "core/dq_core.h"
#include "pipeline/dq_session.h"

// Adds a queue to an interface of an open session, and has it polled if the session runs. The counters of an
// earlier queue of this direction, id and name continue. INVALID_PARAMETER: the session has ended; an id
// above DQ_MAX_QUEUES - 1, or one of another name before; a batch_size or a number of regions above that of
// every queue of the open; a region that was deleted. ALREADY_EXISTS: a queue of the interface has the id or
// name, or is being deleted. NO_SPACE_AVAILABLE: the interface had DQ_MAX_QUEUES queues of this direction.
// NOT_SUPPORTED: the engine, or the kind of a region.
int dq_queue_join(dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag);
// Whether the queue can be deleted once nothing uses it: DQ_OK; INVALID_PARAMETER: it was deleted before;
// NOT_SUPPORTED: the engine, or the queue's part in the interface.
int dq_queue_deletable(const dq_queue *q, dq_diag *diag);
// Begins to delete a queue, which no rule names. A receive queue's waiting packets are dropped, counted as
// flushed; a transmit queue sends its packets, except those of a transmission, which ends. Errors:
// RESOURCE_IN_USE: a pipe reads it; those of dq_queue_deletable.
int dq_queue_delete(dq_queue *q, dq_diag *diag);
// Continues the deletion. Returns true once no burst of the queue is in use and no thread polls it.
bool dq_queue_leave(dq_queue *q);

// Adds a region to an open session (dq_region_join) and registers it with the devices of the session.
// NOT_SUPPORTED also: a device has registered the memory of the open as a whole.
int dq_session_region_join(dq_session *s, const dq_region_conf *conf, dqi_bound *bound, dq_region **out,
                           dq_diag *diag);
// Whether the region can be deleted: RESOURCE_IN_USE while a queue that is not deleted uses it; NOT_SUPPORTED
// for memory of a GPU, or which a device keeps until the session ends.
int dq_region_unused(const dq_session *s, const dq_region *r, dq_diag *diag);
// Deletes an unused region (dq_region_leave) and ends its registrations. Returns true once none of its
// buffers is in use.
bool dq_session_region_leave(dq_session *s, dq_region *r);

#endif
