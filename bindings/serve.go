package bindings

import (
	"context"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// place says what the task is doing, and so what a call that waits may do.
type place uint8

const (
	inMain    place = iota // the main chunk, or a task's function: a wait serves the handlers
	inHandler              // a handler: a wait blocks the task
	inBurst                // on_burst: a wait raises
)

// mailRoom is how many messages may wait for daqiri.receive.
const mailRoom = 1024

// receiverOf is who gets an item of the task: what a tap, listener or timer was made with.
type receiverOf interface {
	// deliver hands the item to the script. Errors of the script pass through as panics.
	deliver(rt *Runtime, L *lua.LState, it *task.Item)
}

// canWait raises where a call must not wait.
func (c *call) canWait() {
	rt := c.rt
	switch {
	case c.L != rt.current:
		c.raise("'%s' waits, which a coroutine can't do: call it outside", c.name)
	case rt.place == inBurst:
		c.raise("'%s' waits, which on_burst can't do: use a timer (s:after), or keep the burst (b:keep) "+
			"and wait in the main chunk", c.name)
	case rt.stopped != "":
		raiseError(c.L, &stopError{rt.stopped})
	}
	rt.tellReady()
}

// stopError is what a waiting call raises when the task is to end.
type stopError struct{ reason string }

// Error gives the reason of the stop.
func (e *stopError) Error() string { return "stopped: " + e.reason }

// Unwrap makes it a task.ErrStopped.
func (e *stopError) Unwrap() error { return task.ErrStopped }

// waitFor waits for an item: in the main chunk it serves the handlers meanwhile. nil at the time until.
func (c *call) waitFor(until int64, want func(*task.Item) bool) *task.Item {
	c.canWait()
	for {
		it := c.item(until, want)
		if it == nil || want(it) {
			return it
		}
		c.serve(it)
	}
}

// waitUntil waits until something is done, of which the task is told by items for `of`; false: not at the time until. In the
// main chunk it serves the handlers meanwhile.
func (c *call) waitUntil(until int64, done func() bool, of receiverOf) bool {
	c.canWait()
	for !done() {
		it := c.item(until, func(it *task.Item) bool { return it.Target == of })
		if it == nil {
			return done()
		}
		c.serve(it)
	}
	return true
}

// item waits for the task's next item, in a handler for the next that is wanted; nil: none by the time until.
func (c *call) item(until int64, want func(*task.Item) bool) *task.Item {
	var it *task.Item
	var err error
	if c.rt.place == inHandler {
		it, err = c.rt.Task.WaitFor(until, want)
	} else {
		it, err = c.rt.Task.Wait(until)
	}
	c.check(err)
	return it
}

// serve hands an item to whom it is for, and ends the wait where that is wanted.
func (c *call) serve(it *task.Item) {
	if c.rt.dispatch(c.L, it); c.rt.stopped != "" {
		raiseError(c.L, &stopError{c.rt.stopped})
	}
	c.check(c.rt.interrupted())
}

// interrupted is why what runs in this state is to end, though its task goes on: the host cancelled the context that
// it gave the state, and posted a call that ends the wait.
func (rt *Runtime) interrupted() error {
	if ctx := rt.root.Context(); ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// dispatch hands one item to whom it is for. Errors of handlers pass through as panics.
func (rt *Runtime) dispatch(L *lua.LState, it *task.Item) {
	switch it.Kind {
	case task.Message:
		rt.message(L, it)
	case task.Call:
		it.Call()
	case task.Stop:
		rt.stopped = it.Reason
	default:
		it.Target.(receiverOf).deliver(rt, L, it)
	}
}

func (rt *Runtime) message(L *lua.LState, it *task.Item) {
	fn := rt.inbox
	if it.From != rt.parent {
		fn = nil
		if h := rt.tasks[it.From]; h != nil {
			fn = h.handler
		}
	}
	switch {
	case it.Value == any(ready{}):
	case fn != nil:
		rt.handle(L, inHandler, fn, rt.imported(it.Value))
	case it.From == rt.parent && len(rt.mail) < mailRoom:
		rt.mail = append(rt.mail, it.Value)
	default:
		rt.Log("warn", "a message was dropped: nobody takes messages from that task", map[string]any{"from": it.From.Name()})
	}
}

// handle calls a handler.
func (rt *Runtime) handle(L *lua.LState, at place, fn *lua.LFunction, args ...lua.LValue) {
	before := rt.place
	rt.place = at
	defer func() { rt.place = before }()
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 0)
}

// Serve runs handlers, timers, messages and posted calls until the time until (task.Never: no limit), or until done,
// which is asked after every item, says so. It returns nil then; task.ErrStopped when the task is to
// end; a handler's *lua.ApiError, after which it can be called again; or the cause of a cancellation.
func (rt *Runtime) Serve(L *lua.LState, until int64, done func() bool) error {
	for done == nil || !done() {
		it, err := rt.Task.Wait(until)
		if err != nil || it == nil {
			return err
		}
		if it.Kind == task.Call {
			it.Call() // outside of any Lua call: it may run a chunk
		} else if err := rt.protect(L, func() { rt.dispatch(L, it) }); err != nil {
			return err
		}
		if rt.stopped != "" {
			return &stopError{rt.stopped}
		}
	}
	return nil
}

// protect turns a Lua error in fn into an error.
func (rt *Runtime) protect(L *lua.LState, fn func()) error {
	L.Push(L.NewFunction(func(*lua.LState) int {
		fn()
		return 0
	}))
	return L.PCall(0, 0, nil)
}

// moduleSleep is daqiri.sleep.
func moduleSleep(c *call) int {
	c.atMost(1)
	ns, err := duration(c.arg(1))
	if err != nil {
		c.argError(1, "%v", err)
	}
	c.waitFor(c.rt.Task.In(ns), func(*task.Item) bool { return false })
	return 0
}

var errNoMessage = fmt.Errorf("no message came in time: %w", session.ErrNotReady)
