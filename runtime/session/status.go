package session

import (
	"errors"
	"fmt"
	"strings"

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

// invalid is ErrInvalid in words that need no status behind them.
func invalid(format string, args ...any) error {
	return &native.Error{Object: fmt.Sprintf(format, args...), Code: ErrInvalid}
}

func unsupported(format string, args ...any) error {
	return &native.Error{Object: fmt.Sprintf(format, args...), Code: ErrNotSupported}
}

// within puts the object at fault in front of an error, unless its words begin with it already.
func within(object string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), object+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", object, err)
}

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

// IsStatus reports whether err is a bare status: a word for programs, which tells a person
// nothing that the error around it doesn't.
func IsStatus(err error) bool {
	code, ok := err.(native.Err)
	return ok && code.Errno() == 0
}
