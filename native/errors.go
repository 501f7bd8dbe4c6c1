package native

/*
#include "dq.h"
*/
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// Err is the status of a failed call: one of NVIDIA DAQIRI's, or a system error (see Errno). Values are comparable, so errors.Is
// works with the constants below.
type Err int32

// Statuses of NVIDIA DAQIRI.
const (
	ErrNullPtr      Err = C.DQ_NULL_PTR
	ErrNoBurst      Err = C.DQ_NO_FREE_BURST_BUFFERS
	ErrNoPacket     Err = C.DQ_NO_FREE_PACKET_BUFFERS
	ErrNotReady     Err = C.DQ_NOT_READY
	ErrInvalid      Err = C.DQ_INVALID_PARAMETER
	ErrNoSpace      Err = C.DQ_NO_SPACE_AVAILABLE
	ErrNotSupported Err = C.DQ_NOT_SUPPORTED
	ErrGeneric      Err = C.DQ_GENERIC_FAILURE
	ErrConnect      Err = C.DQ_CONNECT_FAILURE
	ErrInternal     Err = C.DQ_INTERNAL_ERROR
	ErrInUse        Err = C.DQ_RESOURCE_IN_USE
	ErrExists       Err = C.DQ_ALREADY_EXISTS
)

// Name returns the status name ("NO_SPACE_AVAILABLE"), or the system's error text.
func (e Err) Name() string { return C.GoString(C.dq_err_name(C.int(e))) }

// Error returns the name in lower-case words.
func (e Err) Error() string {
	if e.Errno() != 0 {
		return e.Errno().Error()
	}
	return strings.ToLower(strings.ReplaceAll(e.Name(), "_", " "))
}

// Errno returns the system error inside e, or 0.
func (e Err) Errno() syscall.Errno {
	if e < C.DQ_ESYS {
		return syscall.Errno(C.DQ_ESYS - e)
	}
	return 0
}

// Is lets errors.Is compare a system error with syscall and os errors.
func (e Err) Is(target error) bool {
	n := e.Errno()
	return n != 0 && (target == error(n) || n.Is(target))
}

// Error is a failed set-up call: a message that names the object concerned, and the status.
type Error struct {
	Op     string // the call, used if there is no message
	Object string // the message: the object concerned and a remedy
	Code   Err
}

// Error returns the engine's message, or the call and the status.
func (e *Error) Error() string {
	if e.Object != "" {
		return e.Object
	}
	return e.Op + ": " + e.Code.Error()
}

// Unwrap returns the status for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Code }

// Errorf returns an error with this status and a self-contained message.
func (e Err) Errorf(format string, args ...any) error {
	return &Error{Object: fmt.Sprintf(format, args...), Code: e}
}

// result converts a set-up call's status to an error; nil for DQ_OK.
func result(op string, rc C.int, d *C.dq_diag) error {
	if rc == C.DQ_OK {
		return nil
	}
	return &Error{Op: op, Object: text(d.text[:]), Code: Err(rc)}
}

// status converts the status of a call without message to an error; nil for DQ_OK.
func status(rc C.int) error {
	if rc >= C.DQ_OK {
		return nil
	}
	return Err(rc)
}

// tooLong returns the error for a text that exceeds its C field.
func tooLong(what, text string, room int) error {
	if len(text) > 40 {
		text = text[:40] + "…"
	}
	return &Error{Object: what + " " + strconv.Quote(text) + ": longer than " + strconv.Itoa(room) +
		" bytes, or with a zero byte", Code: ErrInvalid}
}
