package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Statuses for errors.Is.
const (
	ErrNotReady     = native.ErrNotReady     // no data yet
	ErrNoSpace      = native.ErrNoSpace      // ring full
	ErrNoBurst      = native.ErrNoBurst      // no free burst descriptor
	ErrNoPacket     = native.ErrNoPacket     // no free packet buffer
	ErrInvalid      = native.ErrInvalid      // invalid argument
	ErrNotSupported = native.ErrNotSupported // not supported by the engine
	ErrConnect      = native.ErrConnect      // no connection
	ErrInUse        = native.ErrInUse        // used by something that must be removed first
	ErrExists       = native.ErrExists       // the name or id is taken
)

// invalid returns ErrInvalid with a self-contained message.
func invalid(format string, args ...any) error { return ErrInvalid.Errorf(format, args...) }

// within prefixes an error with the object concerned, unless it already has that prefix.
func within(object string, err error) error {
	if err == nil || strings.HasPrefix(err.Error(), object+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", object, err)
}

// ErrClosed is the error of calls on a closed session.
var ErrClosed = errors.New("session: closed")

// StatusName returns the reference's name of an error ("NO_SPACE_AVAILABLE"), "SUCCESS" for nil, and "GENERIC_FAILURE" for other errors.
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

// IsStatus reports whether err is a bare status, which adds nothing for users to the message of a wrapping error.
func IsStatus(err error) bool {
	code, ok := err.(native.Err)
	return ok && code.Errno() == 0
}
