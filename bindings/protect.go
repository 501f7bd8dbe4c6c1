package bindings

import (
	lua "github.com/yuin/gopher-lua"
)

// pcall and xpcall anew. gopher-lua closes every open upvalue of a thread when an error is raised in
// it, also those of the frames around a pcall that catches it (yuin/gopher-lua#448): closures and the
// function around them then no longer share their locals, and a handler's counter stands still. So
// what is called here runs in a Lua thread of its own, whose upvalues are the only ones to be closed.
// A wait belongs to the task, not to the thread, and works inside. A yield does not, as before, but
// raises instead of ending the coroutine in silence.

const (
	maxProtected      = 200     // calls of pcall inside each other, as in C Lua
	protectedRegistry = 4 << 10 // values that a thread has room for before it grows
)

// globalPcall is pcall.
func globalPcall(c *call) int {
	if c.count() == 0 {
		c.wanted(1, "function")
	}
	if f := c.arg(1); f.Type() != lua.LTFunction && c.L.GetMetaField(f, "__call") == lua.LNil {
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
	if rt.nested >= maxProtected {
		c.raise("stack overflow (pcall inside pcall %d times)", maxProtected)
	}
	th := rt.thread()
	rt.nested++
	before := rt.current
	if L == before {
		rt.current = th
	}
	defer func() {
		rt.nested--
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

// raised is the value that was raised.
func raised(err error) lua.LValue {
	if e, ok := err.(*lua.ApiError); ok && e.Object != nil {
		return e.Object
	}
	return lua.LString(err.Error())
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

// thread takes a thread of the pool, or makes one, with small stacks where these can grow.
func (rt *Runtime) thread() *lua.LState {
	if n := len(rt.threads); n > 0 {
		th := rt.threads[n-1]
		rt.threads = rt.threads[:n-1]
		return th
	}
	before := rt.root.Options
	if before.RegistryMaxSize > before.RegistrySize {
		rt.root.Options.RegistrySize = min(before.RegistrySize, protectedRegistry)
		rt.root.Options.MinimizeStackMemory = true
	}
	th, _ := rt.root.NewThread() // its context ends with that of the state
	rt.root.Options = before
	return th
}
