package bindings

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Exit is the cancellation cause of a process's tasks after os.exit.
type Exit struct{ Code int }

// Error returns a text with the exit code.
func (e *Exit) Error() string { return fmt.Sprintf("the script asked to exit with code %d", e.Code) }

// OpenError reports a valid configuration that can't be opened or started on this machine.
type OpenError struct{ Err error }

// Error returns the text of the underlying error.
func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause of the failed open.
func (e *OpenError) Unwrap() error { return e.Err }

// ArgsError reports command-line arguments of the script that daqiri.args rejects: a user error, not a script error.
type ArgsError struct{ Err error }

// Error returns the text of the rejection.
func (e *ArgsError) Error() string { return e.Err.Error() }

// Unwrap returns the rejection.
func (e *ArgsError) Unwrap() error { return e.Err }

// raise raises a Lua error at the script's line.
func (c *call) raise(format string, args ...any) { lua51.Raise(c.L, format, args...) }

// raiseError raises err at the script's line and keeps it as the cause.
func raiseError(L *lua.LState, err error) {
	before := L.Panic
	L.Panic = func(L *lua.LState) {
		L.Panic = before
		panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1), Cause: err})
	}
	L.Error(lua.LString(err.Error()), lua51.Position(L))
}

// check raises err, if not nil: an error that a script is not expected to handle.
func (c *call) check(err error) {
	if err != nil {
		raiseError(c.L, err)
	}
}

// fail returns nil, status, text for an expected failure, and raises any other error.
func (c *call) fail(err error) int {
	if !expected(err) {
		raiseError(c.L, err)
	}
	c.L.Push(lua.LNil)
	c.L.Push(lua.LString(session.StatusName(err)))
	c.L.Push(lua.LString(err.Error()))
	return 3
}

// done returns true, or the results of fail if err is not nil.
func (c *call) done(err error) int {
	if err != nil {
		return c.fail(err)
	}
	return c.push(lua.LTrue)
}

// expected reports whether an error can occur in normal operation, so that scripts handle it.
func expected(err error) bool {
	for _, e := range []error{session.ErrNotReady, session.ErrNoSpace, session.ErrNoBurst, session.ErrNoPacket,
		session.ErrConnect, session.ErrNotSupported, task.ErrFull, task.ErrEnded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
