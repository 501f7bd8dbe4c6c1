package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

// Reason is a drop reason. See ReasonRows.
type Reason int32

// Drop reasons of consumers.
const (
	DropBehind     Reason = C.DQ_DROP_BEHIND
	DropWriteError Reason = C.DQ_DROP_WRITE_ERROR
	DropDeviceLost Reason = C.DQ_DROP_DEVICE_LOST
)

// Extra is one of a line's additional counters.
type Extra int32

// Additional counters of consumers.
const (
	ExtraObjects Extra = C.DQ_EXTRA_OBJECTS
	ExtraRetries Extra = C.DQ_EXTRA_RETRIES
	ExtraStallNS Extra = C.DQ_EXTRA_STALL_NS
	ExtraReaders Extra = C.DQ_EXTRA_READERS
	ExtraLent    Extra = C.DQ_EXTRA_LENT
	ExtraMissed  Extra = C.DQ_EXTRA_MISSED
)

// AddExternalWriter adds a writer implemented by its one consumer; up to depth bursts may wait for it.
func (s *Session) AddExternalWriter(name string, depth int, policy Policy) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_external(s.c, n, C.DQ_LINE_WRITER, C.uint32_t(depth), C.int(policy), out, d)
	})
}

// AddShare adds a stage whose one consumer lends its bursts to other processes; up to depth bursts may wait for it. The stage passes bursts on.
func (s *Session) AddShare(name string, depth int, policy Policy) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_external(s.c, n, C.DQ_LINE_STAGE, C.uint32_t(depth), C.int(policy), out, d)
	})
}

// Take waits for the outlet's next burst and fills v with its columns; the caller gets the reference. tag is the tag passed to
// Put, 0 for a burst from a pipe. ok is false once the outlet has ended and is empty. One goroutine; blocks.
func (st Stage) Take(v *View) (b Burst, tag uint32, ok bool) {
	var c C.dq_view
	var t C.uint32_t
	b.c = C.dq_external_take(st.c, &c, &t)
	*v = *(*View)(unsafe.Pointer(&c))
	return b, uint32(t), b.c != nil
}

// Bytes returns a CPU copy of bytes [at, at + n) of a device-only segment of the burst taken last, or of fewer bytes; valid until
// the next call. Packets and their bytes must be requested in order. nil: the GPU is lost. Consumer; blocks.
func (st Stage) Bytes(seg, i, at, n int) []byte {
	size := C.uint32_t(n)
	p := C.dq_external_bytes(st.c, C.uint32_t(seg), C.uint32_t(i), C.uint32_t(at), &size)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), size)
}

// Put passes b to the outlet with a tag above 0; the caller keeps its reference, and the packets become read-only. ErrNoSpace if
// the outlet's ring is full, ErrNotReady once it has ended. Any thread.
func (st Stage) Put(b Burst, tag uint32) error {
	return status(C.dq_external_put(st.c, b.c, C.uint32_t(tag)))
}

// End ends the outlet's input: Take returns the remaining bursts. Any thread.
func (st Stage) End() { C.dq_external_end(st.c) }

// Out counts taken packets that were delivered. Any thread.
func (st Stage) Out(packets, bytes int) {
	C.dq_external_out(st.c, C.uint64_t(packets), C.uint64_t(bytes))
}

// Lost counts taken packets that were lost. Any thread.
func (st Stage) Lost(why Reason, packets int) {
	C.dq_external_lost(st.c, C.int(why), C.uint64_t(packets))
}

// Note adds to one of the outlet's additional counters. Any thread.
func (st Stage) Note(what Extra, n int64) { C.dq_external_note(st.c, C.int(what), C.uint64_t(n)) }

// Busy adds n to the number of pending operations of the consumer: virtual time does not advance meanwhile. Any thread.
func (st Stage) Busy(n int) { C.dq_external_busy(st.c, C.int(n)) }
