package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import "unsafe"

// Op is an asynchronous operation. It outlives its session.
type Op struct{ c *C.dq_op }

// OpState is the current state of an operation.
type OpState struct {
	Done              bool // final
	Completed, Failed int  // of its parts, mostly packets
	Bytes             uint64
}

// NewOp creates an operation of so many parts, which its executor settles by OK and Lost; it ends with the last part. The caller
// owns it until Free.
func NewOp(parts int) (Op, error) {
	var op Op
	return op, status(C.dq_op_new(C.uint32_t(parts), &op.c))
}

// OK records n more completed parts, with so many bytes. Any thread, as Lost.
func (op Op) OK(n, bytes int) { C.dq_op_ok(op.c, C.uint32_t(n), C.uint64_t(bytes)) }

// Lost records n more failed parts, with the reason.
func (op Op) Lost(n int, why string) {
	c := C.CString(why)
	defer C.free(unsafe.Pointer(c))
	C.dq_op_lost(op.c, C.uint32_t(n), c)
}

// State returns the current state. Any thread, until Free.
func (op Op) State() OpState {
	var c C.dq_op_state
	C.dq_op_read(op.c, &c)
	return OpState{bool(c.done), int(c.completed), int(c.failed), uint64(c.bytes)}
}

// Error returns the first failure as text, or "".
func (op Op) Error() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_op_error(op.c, buf, size) })
}

// Watch notifies w's task of the end by an EventOp with this tag, once; ErrInvalid: it is already watched.
func (op Op) Watch(w *Waiter, tag uint64) error {
	return status(C.dq_op_watch(op.c, w.c, C.uint64_t(tag)))
}

// Free releases the operation; the work continues. Any thread.
func (op Op) Free() { C.dq_op_free(op.c) }
