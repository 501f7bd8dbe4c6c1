package native

/*
#include "dq.h"
*/
import "C"

// JoinQueue adds a queue to an interface of an open session. The counts of a deleted queue of its direction, id and name continue.
// Errors: ErrExists, ErrInvalid, ErrNoSpace, ErrNotSupported. Control thread.
func (i Iface) JoinQueue(conf QueueConf) (Queue, error) {
	var q Queue
	c, err := conf.c()
	if err != nil {
		return q, err
	}
	var d C.dq_diag
	return q, result("queue "+conf.Name, C.dq_queue_join(i.c, &c, &q.c, &d), &d)
}

// Deletable returns ErrInvalid if the queue was deleted before, and ErrNotSupported if the engine keeps it. Control thread.
func (q Queue) Deletable() error {
	var d C.dq_diag
	return result("queue", C.dq_queue_deletable(q.c, &d), &d)
}

// Delete begins to delete a queue that no flow names. Errors: ErrInUse, ErrInvalid, ErrNotSupported. Control thread.
func (q Queue) Delete() error {
	var d C.dq_diag
	return result("queue", C.dq_queue_delete(q.c, &d), &d)
}

// Leave continues the deletion and reports whether it is complete: no burst of the queue is in use. Control thread.
func (q Queue) Leave() bool { return bool(C.dq_queue_leave(q.c)) }

// JoinRegion adds a region to an open session, in memory of the application if b is not nil. Its memory is mapped before the return. Errors:
// ErrExists, ErrInvalid, ErrNotSupported, and a system error without memory or if a device can't register it. Control thread.
func (s *Session) JoinRegion(conf RegionConf, b *Binding) (Region, error) {
	var r Region
	c, err := conf.c()
	if err != nil {
		return r, err
	}
	var bound *C.dqi_bound
	if b != nil {
		err = b.pass(func(from *C.dq_binding) error {
			var d C.dq_diag
			return result("memory region "+conf.Name, C.dq_bound_new(s.c, &c, from, &bound, &d), &d)
		})
	}
	if err != nil {
		return r, err
	}
	var d C.dq_diag
	return r, result("memory region "+conf.Name, C.dq_session_region_join(s.c, &c, bound, &r.c, &d), &d)
}

// Unused returns ErrInUse if a queue of the session uses the region, and ErrNotSupported if it can't be deleted. Control thread.
func (r Region) Unused(s *Session) error {
	var d C.dq_diag
	return result("memory region", C.dq_region_unused(s.c, r.c, &d), &d)
}

// Leave deletes the region and reports true once none of its buffers is in use. No queue and no stage may use it. Control thread.
func (r Region) Leave(s *Session) bool { return bool(C.dq_session_region_leave(s.c, r.c)) }
