package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import "unsafe"

// EventKind is the kind of an event.
type EventKind int32

// Kinds of event.
const (
	EventBurst      EventKind = C.DQ_EV_BURST
	EventConnect    EventKind = C.DQ_EV_CONNECT
	EventDisconnect EventKind = C.DQ_EV_DISCONNECT
	EventOp         EventKind = C.DQ_EV_OP // a watched operation has ended
)

// maxEvents is the maximum number of events returned by one wait.
const maxEvents = 64

// Event is one event. It mirrors dq_event. The receiver owns the reference to its burst.
type Event struct {
	Tag   uint64 // tag of the tap
	Kind  EventKind
	Code  Err    // connect and disconnect: the reason; 0: none
	Conn  uint32 // connect and disconnect
	burst *C.dq_burst
	View  View // columns of a burst
}

var _ = [1]struct{}{}[unsafe.Sizeof(Event{})-C.sizeof_dq_event]
var _ = [1]struct{}{}[unsafe.Offsetof(Event{}.View)-unsafe.Offsetof(C.dq_event{}.view)]

// Burst returns the burst of an EventBurst.
func (e *Event) Burst() Burst { return Burst{e.burst} }

// Waiter is where one task waits for its direct queues, its taps and wake-ups.
type Waiter struct {
	c      *C.dq_waiter
	events *C.dq_event
}

// NewWaiter creates a waiter without queues and taps.
func NewWaiter() (*Waiter, error) {
	var d C.dq_diag
	w := &Waiter{}
	if err := result("waiter", C.dq_waiter_new(&w.c, &d), &d); err != nil {
		return nil, err
	}
	w.events = (*C.dq_event)(C.calloc(maxEvents, C.sizeof_dq_event))
	return w, nil
}

// Free ends the waiter. No thread may be waiting, and the stages that feed it must be gone or end without it.
func (w *Waiter) Free() {
	C.dq_waiter_free(w.c)
	C.free(unsafe.Pointer(w.events))
	w.c, w.events = nil, nil
}

// Adopt makes the waiter's task the owner of a direct queue.
func (w *Waiter) Adopt(q Queue) error { return status(C.dq_waiter_adopt(w.c, q.c)) }

// Disown ends that ownership, if it exists. The task's thread.
func (w *Waiter) Disown(q Queue) { C.dq_waiter_disown(w.c, q.c) }

// Wake ends the current Wait, or the next one. Any thread.
func (w *Waiter) Wake() { C.dq_waiter_wake(w.c) }

// Wait serves the direct queues and taps until there are events, the timeout (negative: none) expires or Wake is called. The
// events lie in C memory and are valid until the next Wait. Owner's thread; blocks.
func (w *Waiter) Wait(timeoutNS int64) ([]Event, error) {
	n := C.dq_wait(w.c, C.int64_t(timeoutNS), w.events, maxEvents)
	if n < 0 {
		return nil, Err(n)
	}
	return unsafe.Slice((*Event)(unsafe.Pointer(w.events)), int(n)), nil
}
