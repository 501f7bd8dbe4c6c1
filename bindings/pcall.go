package bindings

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// pcall and xpcall anew. gopher-lua closes every open upvalue of a thread when an error is raised in
// it, also those of the frames around a pcall that catches it (yuin/gopher-lua#448): closures and the
// function around them then no longer share their locals, and a handler's counter stands still. So
// what is called here runs in a Lua thread of its own, whose upvalues are the only ones to be closed.
// A wait belongs to the task, not to the thread, and works inside. A yield does not, as before, but
// raises instead of ending the coroutine in silence.

const (
	maxProtected      = 200     // threads that wait for each other: pcall and resume inside each other, as in C Lua
	protectedRegistry = 4 << 10 // values that a thread has room for before it grows
)

// globalPcall is pcall.
func globalPcall(c *call) int {
	if c.count() == 0 {
		c.wanted(1, "function")
	}
	if f := c.arg(1); !c.rt.canBeCalled(f) {
		c.L.Push(lua.LFalse)
		c.L.Push(lua.LString("attempt to call a " + f.Type().String() + " value"))
		return 2
	}
	return c.protected(1, nil)
}

// globalXpcall is xpcall: the handler runs where the error was raised, so that debug.traceback shows it.
func globalXpcall(c *call) int {
	handler := c.fn(2, "function(error)")
	return c.protected(2, handler)
}

// protected calls argument 1 with the arguments from 1 + skip on.
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

// CallApart calls a function for all its results, on a thread of its own below L: an error in it leaves what runs on
// L, whose locals closures share, as it is. A wait inside belongs to the task.
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

// raised is the value that was raised.
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

// frameOverflow is what gopher-lua panics with where a thread's small stack of frames can't grow any more.
const frameOverflow = "lua callstack overflow"

// topOf is the position of the innermost call of a stack trace that is a script's, "FILE:LINE:".
func topOf(trace string) string {
	_, trace, _ = strings.Cut(trace, "stack traceback:\n")
	for line := range strings.Lines(trace) {
		if at, _, ok := strings.Cut(strings.TrimSpace(line), " in "); ok && !strings.HasPrefix(at, "[G]") {
			return at
		}
	}
	return ""
}

// caught calls xpcall's handler. gopher-lua leaves the upvalues of the failed frames open where there
// is a handler, though their registers go; a further error, raised and caught here without one, closes
// them.
func caught(th *lua.LState, handler *lua.LFunction) int {
	value := th.Get(1)
	th.Push(handler)
	th.Push(value)
	th.Call(1, 1)
	result := th.Get(-1)
	for range 2 { // the first ends the state of having a handler
		th.Push(th.NewFunction(func(th *lua.LState) int {
			th.RaiseError("unwind")
			return 0
		}))
		_ = th.PCall(0, 0, nil) // it fails by design
	}
	th.Push(result)
	return 1
}

// thread takes a thread of the pool, or makes one; it ends when L does.
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
