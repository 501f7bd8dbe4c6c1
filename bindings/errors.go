package bindings

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Exit is the cause with which os.exit ends the tasks of a process.
type Exit struct{ Code int }

// Error says that the script asked for it.
func (e *Exit) Error() string { return fmt.Sprintf("the script asked to exit with code %d", e.Code) }

// OpenError is the error of a configuration that is well written and can't be opened or started on this machine.
type OpenError struct{ Err error }

// Error is the error below.
func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap gives the error below.
func (e *OpenError) Unwrap() error { return e.Err }

// ArgsError is the error of arguments behind the script that daqiri.args can't take: the user's fault, not the script's.
type ArgsError struct{ Err error }

// Error is the error below.
func (e *ArgsError) Error() string { return e.Err.Error() }

// Unwrap gives the error below.
func (e *ArgsError) Unwrap() error { return e.Err }

// raise raises a Lua error at the script's line.
func (c *call) raise(format string, args ...any) { raise(c.L, format, args...) }

func raise(L *lua.LState, format string, args ...any) {
	L.Error(lua.LString(fmt.Sprintf(format, args...)), position(L))
}

// position is the level at which gopher-lua finds the script's line: none when pcall called the function itself.
func position(L *lua.LState) int {
	if _, ok := L.GetStack(1); !ok {
		return 0
	}
	return 1
}

// raiseError raises a Go error at the script's line and keeps it as the cause.
func raiseError(L *lua.LState, err error) {
	before := L.Panic
	L.Panic = func(L *lua.LState) {
		L.Panic = before
		panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1), Cause: err})
	}
	L.Error(lua.LString(err.Error()), position(L))
}

// check raises an error of a call that a script should not see fail.
func (c *call) check(err error) {
	if err != nil {
		raiseError(c.L, err)
	}
}

// fail returns nil, status, text for a failure that a script has to expect, and raises any other.
func (c *call) fail(err error) int {
	if !expected(err) {
		raiseError(c.L, err)
	}
	c.L.Push(lua.LNil)
	c.L.Push(lua.LString(session.StatusName(err)))
	c.L.Push(lua.LString(err.Error()))
	return 3
}

// done returns true, or what fail returns.
func (c *call) done(err error) int {
	if err != nil {
		return c.fail(err)
	}
	return c.push(lua.LTrue)
}

// expected says whether an error belongs to normal operation: the script handles it.
func expected(err error) bool {
	for _, e := range []error{session.ErrNotReady, session.ErrNoSpace, session.ErrNoBurst, session.ErrNoPacket,
		session.ErrConnect, session.ErrNotSupported, task.ErrFull, task.ErrEnded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
