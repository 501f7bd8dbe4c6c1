package lua51

import (
	lua "github.com/yuin/gopher-lua"
)

// Replacements for gopher-lua's coroutine functions, which have no limits: a nested resume uses Go stack, whose overflow ends the process, each
// coroutine takes half a megabyte, and its context is never released from the task's.

const (
	threadRegistry = 256 // initial number of values per coroutine
	freelyNested   = 16  // nested threads allowed at any call depth
	deepFrames     = 200 // call depth from which a thread counts as deepThread
	deepThread     = 10
)

// replaceCoroutines wraps coroutine.create, resume and wrap.
func (t *Threads) replaceCoroutines() {
	module, ok := t.root.GetGlobal(lua.CoroutineLibName).(*lua.LTable)
	if !ok {
		return
	}
	original := func(name string) lua.LGFunction { return module.RawGetString(name).(*lua.LFunction).GFunction }
	create, resume, wrap := original("create"), original("resume"), original("wrap")
	set := func(name string, fn lua.LGFunction) { module.RawSetString(name, t.root.NewFunction(fn)) }
	set("create", func(L *lua.LState) int {
		t.small(L, threadRegistry, func() { create(L) })
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
		return t.resume(L, th, resume)
	})
	set("wrap", func(L *lua.LState) int {
		t.small(L, threadRegistry, func() { wrap(L) })
		made := L.Get(-1).(*lua.LFunction)
		th := made.Upvalues[0].Value().(*lua.LState)
		th.SetContext(L.Context())
		next := made.GFunction
		L.Push(L.NewClosure(func(L *lua.LState) int {
			if why := refuses(th); why != "" {
				Raise(L, "%s", why)
			}
			return t.resume(L, th, next)
		}, th))
		return 1
	})
}

// small calls make with settings that give new threads no context and small, growing stacks.
func (t *Threads) small(L *lua.LState, registry int, make func()) {
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

// refuses returns why a thread can't be resumed, or "". A thread with a parent waits for another one; gopher-lua detects only the innermost.
func refuses(th *lua.LState) string {
	switch {
	case th.Dead:
		return "cannot resume dead coroutine"
	case th.Parent != nil:
		return "cannot resume non-suspended coroutine"
	}
	return ""
}

// resume runs a thread after checking the nesting limit.
func (t *Threads) resume(L, th *lua.LState, run lua.LGFunction) int {
	depth := t.nest(L)
	ended := false
	defer func() {
		t.nested -= depth
		if ended {
			return
		}
		th.Dead, th.Parent = true, nil // an error unwinds through here: L continues where the error is caught
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

// overflow adds a position to the error of a thread whose call frames ran out; other errors are returned unchanged.
func overflow(th *lua.LState, raised lua.LValue) lua.LValue {
	if raised == lua.LString(frameOverflow) {
		return lua.LString(th.Where(0) + " stack overflow")
	}
	return raised
}

// nest counts a nested thread and raises at the limit. The caller subtracts the result from t.nested at the end. A thread with deep calls counts
// more, as it uses more Go stack.
func (t *Threads) nest(L *lua.LState) int {
	if t.nested >= maxProtected {
		Raise(L, "stack overflow (pcall and coroutines inside each other %d times)", maxProtected)
	}
	depth := 1
	if t.nested >= freelyNested {
		if _, deep := L.GetStack(deepFrames); deep {
			depth = deepThread
		}
	}
	t.nested += depth
	return depth
}
