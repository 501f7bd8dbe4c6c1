package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

// Reason says why packets were lost. See ReasonRows.
type Reason int32

// Reasons that a consumer has.
const (
	DropBehind     Reason = C.DQ_DROP_BEHIND
	DropWriteError Reason = C.DQ_DROP_WRITE_ERROR
	DropDeviceLost Reason = C.DQ_DROP_DEVICE_LOST
)

// Extra is one of a line's further figures.
type Extra int32

// Extras that a consumer counts.
const (
	ExtraObjects Extra = C.DQ_EXTRA_OBJECTS
	ExtraRetries Extra = C.DQ_EXTRA_RETRIES
	ExtraStallNS Extra = C.DQ_EXTRA_STALL_NS
)

// AddExternalWriter makes a writer whose work its one consumer does; depth bursts may wait for it.
func (s *Session) AddExternalWriter(name string, depth int, policy Policy) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_external(s.c, n, C.uint32_t(depth), C.int(policy), out, d)
	})
}

// Take waits for the outlet's next burst and fills v with its columns; the reference is the caller's. tag is what it was
// given with, 0 of one from a pipe. ok is false once the outlet has ended and nothing is left. One goroutine; blocks.
func (st Stage) Take(v *View) (b Burst, tag uint32, ok bool) {
	var c C.dq_view
	var t C.uint32_t
	b.c = C.dq_external_take(st.c, &c, &t)
	*v = *(*View)(unsafe.Pointer(&c))
	return b, uint32(t), b.c != nil
}

// Bytes is where the CPU finds bytes [at, at + n) of a segment that it can't read, of the burst that was taken last, or
// as many of them as were brought: good until the next call; packets, and their bytes, in order. nil: their GPU is lost.
// The consumer; blocks.
func (st Stage) Bytes(seg, i, at, n int) []byte {
	size := C.uint32_t(n)
	p := C.dq_external_bytes(st.c, C.uint32_t(seg), C.uint32_t(i), C.uint32_t(at), &size)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), size)
}

// Give hands b to the outlet with a tag above 0; the caller keeps its reference, and the packets are read-only from now
// on. ErrNoSpace while the outlet's ring is full, ErrNotReady once it has ended. Any thread.
func (st Stage) Give(b Burst, tag uint32) error {
	return status(C.dq_external_give(st.c, b.c, C.uint32_t(tag)))
}

// End says that nothing more comes to the outlet: Take returns what is left. Any thread.
func (st Stage) End() { C.dq_external_end(st.c) }

// Out counts packets that were taken and are where they should be. Any thread.
func (st Stage) Out(packets, bytes int) {
	C.dq_external_out(st.c, C.uint64_t(packets), C.uint64_t(bytes))
}

// Lost counts packets that were taken and lost. Any thread.
func (st Stage) Lost(why Reason, packets int) {
	C.dq_external_lost(st.c, C.int(why), C.uint64_t(packets))
}

// Note adds to one of the outlet's further figures. Any thread.
func (st Stage) Note(what Extra, n int64) { C.dq_external_note(st.c, C.int(what), C.uint64_t(n)) }

// Busy says that so many more, or fewer, things that the consumer began are not over: virtual time stands still meanwhile.
// Any thread.
func (st Stage) Busy(n int) { C.dq_external_busy(st.c, C.int(n)) }
