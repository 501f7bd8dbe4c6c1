package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import "unsafe"

// Op is work that ends later: its account. It outlives its session.
type Op struct{ c *C.dq_op }

// OpState is what became of an operation so far.
type OpState struct {
	Done              bool // nothing more will change
	Completed, Failed int  // of its parts, packets mostly
	Bytes             uint64
}

// NewOp makes an operation of so many parts, which whoever does the work settles by OK and Lost; it ends with the last.
// The caller's until Free.
func NewOp(parts int) (Op, error) {
	var op Op
	return op, status(C.dq_op_new(C.uint32_t(parts), &op.c))
}

// OK says that n more parts are done, with so many bytes. Any thread, as Lost.
func (op Op) OK(n, bytes int) { C.dq_op_ok(op.c, C.uint32_t(n), C.uint64_t(bytes)) }

// Lost says that n more parts failed, and why.
func (op Op) Lost(n int, why string) {
	c := C.CString(why)
	defer C.free(unsafe.Pointer(c))
	C.dq_op_lost(op.c, C.uint32_t(n), c)
}

// State reads what became of it. Any thread, until Free.
func (op Op) State() OpState {
	var c C.dq_op_state
	C.dq_op_read(op.c, &c)
	return OpState{bool(c.done), int(c.completed), int(c.failed), uint64(c.bytes)}
}

// Error is the first failure in words, empty when there is none.
func (op Op) Error() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_op_error(op.c, buf, size) })
}

// Watch has w's task told of the end by an EventOp with this tag, once; ErrInvalid: it is watched already.
func (op Op) Watch(w *Waiter, tag uint64) error {
	return status(C.dq_op_watch(op.c, w.c, C.uint64_t(tag)))
}

// Free lets go of the account; the work goes on. Any thread.
func (op Op) Free() { C.dq_op_free(op.c) }
