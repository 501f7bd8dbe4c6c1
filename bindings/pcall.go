package bindings

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Replacements for pcall and xpcall. gopher-lua closes every open upvalue of a thread when an error is raised in it, including those of frames
// around the pcall that catches it (yuin/gopher-lua#448): closures and their enclosing function then no longer share locals. Therefore the
// protected call runs in a Lua thread of its own, and only its upvalues are closed. A wait belongs to the task, not to the thread, and works
// inside. A yield does not work, as in gopher-lua, but raises instead of ending the coroutine silently.

const (
	maxProtected      = 200     // nesting limit of pcall and resume, as in C Lua
	protectedRegistry = 4 << 10 // initial number of values per thread
)

// globalPcall implements pcall.
func globalPcall(c *call) int {
	if c.Count() == 0 {
		c.Wanted(1, "function")
	}
	if f := c.Arg(1); !c.rt.canBeCalled(f) {
		c.L.Push(lua.LFalse)
		c.L.Push(lua.LString("attempt to call a " + f.Type().String() + " value"))
		return 2
	}
	return c.protected(1, nil)
}

// globalXpcall implements xpcall: the handler runs where the error was raised, so that debug.traceback shows that position.
func globalXpcall(c *call) int {
	handler := c.Func(2, "function(error)")
	return c.protected(2, handler)
}

// protected calls argument 1 with the arguments from 1 + skip.
func (c *call) protected(skip int, handler *lua.LFunction) int {
	rt, L := c.rt, c.L
	depth := rt.nest(L)
	th := rt.thread(L)
	before := rt.current
	if L == before {
		rt.current = th
	}
	defer func() {
		rt.nested -= depth
		rt.current = before
	}()
	th.Push(L.Get(1))
	n := 0
	for i := 1 + skip; i <= L.GetTop(); i++ {
		th.Push(L.Get(i))
		n++
	}
	var catch *lua.LFunction
	if handler != nil {
		catch = th.NewFunction(func(th *lua.LState) int { return caught(th, handler) })
	}
	err := th.PCall(n, lua.MultRet, catch)
	L.Push(lua.LBool(err == nil))
	if err != nil {
		L.Push(raised(err))
		rt.threads = append(rt.threads, th)
		return 2
	}
	n = th.GetTop()
	for i := 1; i <= n; i++ {
		L.Push(th.Get(i))
	}
	th.SetTop(0)
	rt.threads = append(rt.threads, th)
	return 1 + n
}

// CallApart calls fn on a thread of its own below L and returns all its results: an error does not close the upvalues of functions on L. A wait
// inside belongs to the task.
func (rt *Runtime) CallApart(L *lua.LState, fn *lua.LFunction, args ...lua.LValue) ([]lua.LValue, error) {
	th, before := rt.thread(L), rt.current
	if L == before {
		rt.current = th
	}
	defer func() {
		rt.current = before
		rt.threads = append(rt.threads, th)
	}()
	th.Push(fn)
	for _, a := range args {
		th.Push(a)
	}
	if err := th.PCall(len(args), lua.MultRet, nil); err != nil {
		return nil, err
	}
	defer th.SetTop(0)
	values := make([]lua.LValue, th.GetTop())
	for i := range values {
		values[i] = th.Get(i + 1)
	}
	return values, nil
}

// raised returns the Lua value of an error.
func raised(err error) lua.LValue {
	e, ok := err.(*lua.ApiError)
	switch {
	case !ok || e.Object == nil:
		return lua.LString(err.Error())
	case e.Type == lua.ApiErrorPanic && e.Object == lua.LString(frameOverflow):
		return lua.LString(topOf(e.StackTrace) + " stack overflow")
	}
	return e.Object
}

// frameOverflow is gopher-lua's panic value when a thread's small call stack can't grow further.
const frameOverflow = "lua callstack overflow"

// topOf returns the innermost script position in a stack trace, "FILE:LINE:".
func topOf(trace string) string {
	_, trace, _ = strings.Cut(trace, "stack traceback:\n")
	for line := range strings.Lines(trace) {
		if at, _, ok := strings.Cut(strings.TrimSpace(line), " in "); ok && !strings.HasPrefix(at, "[G]") {
			return at
		}
	}
	return ""
}

// caught calls xpcall's handler. With a handler, gopher-lua leaves the upvalues of the failed frames open although their registers are reused; a
// second error, raised and caught here without a handler, closes them.
func caught(th *lua.LState, handler *lua.LFunction) int {
	value := th.Get(1)
	th.Push(handler)
	th.Push(value)
	th.Call(1, 1)
	result := th.Get(-1)
	for range 2 { // the first iteration clears the handler state
		th.Push(th.NewFunction(func(th *lua.LState) int {
			th.RaiseError("unwind")
			return 0
		}))
		_ = th.PCall(0, 0, nil) // fails intentionally
	}
	th.Push(result)
	return 1
}

// thread returns a pooled thread, or a new one; it ends with L.
func (rt *Runtime) thread(L *lua.LState) (th *lua.LState) {
	if n := len(rt.threads); n > 0 {
		th = rt.threads[n-1]
		rt.threads = rt.threads[:n-1]
	} else {
		rt.small(rt.root, protectedRegistry, func() { th, _ = rt.root.NewThread() })
	}
	th.SetContext(L.Context())
	return th
}
