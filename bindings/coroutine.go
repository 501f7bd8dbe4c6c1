package bindings

import (
	lua "github.com/yuin/gopher-lua"
)

// Coroutines anew where gopher-lua has no bounds: a resume inside a resume takes Go's stack, whose end is that of the
// process, each coroutine took half a megabyte, and its context stayed with the task's for ever.

const (
	threadRegistry = 256 // values that a coroutine has room for before it grows
	freelyNested   = 16  // threads that may wait for each other however deep they are in calls
	deepFrames     = 200 // calls from which on one more counts as deepThread
	deepThread     = 10
)

// replaceCoroutines wraps create, resume and wrap.
func (rt *Runtime) replaceCoroutines() {
	module, ok := rt.globals().RawGetString(lua.CoroutineLibName).(*lua.LTable)
	if !ok {
		return
	}
	original := func(name string) lua.LGFunction { return module.RawGetString(name).(*lua.LFunction).GFunction }
	create, resume, wrap := original("create"), original("resume"), original("wrap")
	set := func(name string, fn lua.LGFunction) { module.RawSetString(name, rt.root.NewFunction(fn)) }
	set("create", func(L *lua.LState) int {
		rt.small(L, threadRegistry, func() { create(L) })
		L.ToThread(-1).SetContext(L.Context())
		return 1
	})
	set("resume", func(L *lua.LState) int {
		th := L.CheckThread(1)
		if why := refuses(th); why != "" {
			L.Push(lua.LFalse)
			L.Push(lua.LString(why))
			return 2
		}
		return rt.resume(L, th, resume)
	})
	set("wrap", func(L *lua.LState) int {
		rt.small(L, threadRegistry, func() { wrap(L) })
		made := L.Get(-1).(*lua.LFunction)
		th := made.Upvalues[0].Value().(*lua.LState)
		th.SetContext(L.Context())
		next := made.GFunction
		L.Push(L.NewClosure(func(L *lua.LState) int {
			if why := refuses(th); why != "" {
				raise(L, "%s", why)
			}
			return rt.resume(L, th, next)
		}, th))
		return 1
	})
}

// small has L make a thread without a context and with small stacks, where these can grow.
func (rt *Runtime) small(L *lua.LState, registry int, make func()) {
	ctx, options := L.RemoveContext(), L.Options
	if options.RegistryMaxSize > options.RegistrySize {
		L.Options.RegistrySize = min(options.RegistrySize, registry)
		L.Options.MinimizeStackMemory = true
	}
	defer func() {
		L.Options = options
		L.SetContext(ctx)
	}()
	make()
}

// refuses says why a thread can't be run: one that waits for another already, of which gopher-lua only knows the innermost.
func refuses(th *lua.LState) string {
	switch {
	case th.Dead:
		return "cannot resume dead coroutine"
	case th.Parent != nil:
		return "cannot resume non-suspended coroutine"
	}
	return ""
}

// resume runs a thread, as deep as threads may wait for each other.
func (rt *Runtime) resume(L, th *lua.LState, run lua.LGFunction) int {
	depth := rt.nest(L)
	ended := false
	defer func() {
		rt.nested -= depth
		if ended {
			return
		}
		th.Dead, th.Parent = true, nil // an error passes through: L goes on where it is caught
		L.G.CurrentThread = L
		r := recover()
		if e, ok := r.(*lua.ApiError); ok {
			e.Object = overflow(th, e.Object)
		}
		panic(r)
	}()
	n := run(L)
	ended = true
	if n > 0 && th.Dead {
		L.Replace(-1, overflow(th, L.Get(-1)))
	}
	return n
}

// overflow gives the error of a thread whose frames ran out, which has no place, one; others stay as they are.
func overflow(th *lua.LState, raised lua.LValue) lua.LValue {
	if raised == lua.LString(frameOverflow) {
		return lua.LString(th.Where(0) + " stack overflow")
	}
	return raised
}

// nest counts a thread that waits for another; rt.nested is to be lowered again by what it returns. A thread that is
// deep in calls has more of Go's stack.
func (rt *Runtime) nest(L *lua.LState) int {
	if rt.nested >= maxProtected {
		raise(L, "stack overflow (pcall and coroutines inside each other %d times)", maxProtected)
	}
	depth := 1
	if rt.nested >= freelyNested {
		if _, deep := L.GetStack(deepFrames); deep {
			depth = deepThread
		}
	}
	rt.nested += depth
	return depth
}
