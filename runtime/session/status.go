package session

import (
	"errors"

	"github.com/daqiri/daqiri-run/native"
)

// Statuses that callers tell apart with errors.Is.
const (
	ErrNotReady     = native.ErrNotReady     // nothing there yet
	ErrNoSpace      = native.ErrNoSpace      // a ring is full
	ErrNoBurst      = native.ErrNoBurst      // no free burst descriptor
	ErrNoPacket     = native.ErrNoPacket     // no free packet buffer
	ErrInvalid      = native.ErrInvalid      // an argument makes no sense
	ErrNotSupported = native.ErrNotSupported // the engine lacks it
	ErrConnect      = native.ErrConnect      // no connection
)

// ErrClosed is the error of calls on a session that was closed.
var ErrClosed = errors.New("session: closed")

// StatusName returns the reference's word for an error ("NO_SPACE_AVAILABLE"), "SUCCESS"
// for none, and "GENERIC_FAILURE" for an error of another kind.
func StatusName(err error) string {
	if err == nil {
		return "SUCCESS"
	}
	var code native.Err
	if !errors.As(err, &code) || code.Errno() != 0 {
		code = native.ErrGeneric
	}
	return code.Name()
}

// ReasonText says what to do about packets that were dropped for a reason, as the ledger
// names it; empty when there is no such reason.
func ReasonText(name string) string {
	for i := range native.Reasons {
		if native.ReasonName(i) == name {
			return native.ReasonText(i)
		}
	}
	return ""
}
