package row

import (
	"errors"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Raise raises a Lua error at the script's line.
func (c *Call) Raise(format string, args ...any) { lua51.Raise(c.L, format, args...) }

// RaiseError raises err at the script's line and keeps it as the cause.
func RaiseError(L *lua.LState, err error) {
	before := L.Panic
	L.Panic = func(L *lua.LState) {
		L.Panic = before
		panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1), Cause: err})
	}
	L.Error(lua.LString(err.Error()), lua51.Position(L))
}

// Check raises err, if not nil: an error that a script is not expected to handle.
func (c *Call) Check(err error) {
	if err != nil {
		RaiseError(c.L, err)
	}
}

// Fail returns nil, status, text for an expected failure, and raises any other error.
func (c *Call) Fail(err error) int {
	if !expected(err) {
		RaiseError(c.L, err)
	}
	c.L.Push(lua.LNil)
	c.L.Push(lua.LString(session.StatusName(err)))
	c.L.Push(lua.LString(err.Error()))
	return 3
}

// Done returns true, or the results of fail if err is not nil.
func (c *Call) Done(err error) int {
	if err != nil {
		return c.Fail(err)
	}
	return c.Push(lua.LTrue)
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
