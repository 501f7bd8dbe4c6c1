package lua51

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

// Threads are the Lua threads of a state on which protected calls and coroutines run. They belong to the state's goroutine.
type Threads struct {
	root    *lua.LState
	current *lua.LState // on which a call may wait: root, or the innermost pcall's
	pool    []*lua.LState
	nested  int // nesting depth of pcall and resume
}

// NewThreads returns the threads of a state, whose coroutine functions it replaces.
func NewThreads(root *lua.LState) *Threads {
	t := &Threads{root: root, current: root}
	t.replaceCoroutines()
	return t
}

// Current returns the thread on which a call may wait: the state, or the thread of the innermost pcall.
func (t *Threads) Current() *lua.LState { return t.current }

// Protected calls argument 1 of L's running function with the arguments from 1 + skip, and pushes the results of pcall. handler is xpcall's, or nil.
func (t *Threads) Protected(L *lua.LState, skip int, handler *lua.LFunction) int {
	depth := t.nest(L)
	th := t.thread(L)
	before := t.current
	if L == before {
		t.current = th
	}
	defer func() {
		t.nested -= depth
		t.current = before
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
		L.Push(Raised(err))
		t.pool = append(t.pool, th)
		return 2
	}
	n = th.GetTop()
	for i := 1; i <= n; i++ {
		L.Push(th.Get(i))
	}
	th.SetTop(0)
	t.pool = append(t.pool, th)
	return 1 + n
}

// CallApart calls fn on a thread of its own below L and returns all its results: an error does not close the upvalues of functions on L. A wait
// inside belongs to the task.
func (t *Threads) CallApart(L *lua.LState, fn *lua.LFunction, args ...lua.LValue) ([]lua.LValue, error) {
	th, before := t.thread(L), t.current
	if L == before {
		t.current = th
	}
	defer func() {
		t.current = before
		t.pool = append(t.pool, th)
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

// Raised returns the Lua value of an error.
func Raised(err error) lua.LValue {
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
func (t *Threads) thread(L *lua.LState) (th *lua.LState) {
	if n := len(t.pool); n > 0 {
		th = t.pool[n-1]
		t.pool = t.pool[:n-1]
	} else {
		t.small(t.root, protectedRegistry, func() { th, _ = t.root.NewThread() })
	}
	th.SetContext(L.Context())
	return th
}
