package bindings

import (
	"context"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// place is the kind of code that the task runs; it determines what a waiting call does.
type place uint8

const (
	inMain    place = iota // the main chunk, or a task's function: a wait serves the handlers
	inHandler              // a handler: a wait blocks the task
	inBurst                // on_burst: a wait raises
)

// mailRoom is the maximum number of messages queued for daqiri.receive.
const mailRoom = 1024

// receiverOf is the target of a task's items: the value with which a tap, listener or timer was created.
type receiverOf interface {
	// deliver passes the item to the script. Script errors propagate as panics.
	deliver(rt *Runtime, L *lua.LState, it *task.Item)
}

// canWait raises if the running code must not wait.
func (c *call) canWait() {
	rt := c.rt
	switch {
	case c.L != rt.threads.Current():
		c.Raise("'%s' waits, which a coroutine can't do: call it outside", c.Name)
	case rt.place == inBurst:
		c.Raise("'%s' waits, which on_burst can't do: use a timer (s:after), or keep the burst (b:keep) "+
			"and wait in the main chunk", c.Name)
	case rt.stopped != "":
		row.RaiseError(c.L, &stopError{rt.stopped})
	}
	rt.sendReady()
}

// stopError is raised by a waiting call when the task must end.
type stopError struct{ reason string }

// Error returns the reason of the stop.
func (e *stopError) Error() string { return "stopped: " + e.reason }

// Unwrap returns task.ErrStopped.
func (e *stopError) Unwrap() error { return task.ErrStopped }

// waitFor waits for an item that want accepts, or returns nil at the time until. In the main chunk it serves handlers meanwhile.
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

// waitUntil waits until done returns true, checked after each item for `of`; it returns false at the time until. In the main chunk it serves
// handlers meanwhile.
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

// item waits for the task's next item, in a handler for the next one that want accepts; nil at the time until.
func (c *call) item(until int64, want func(*task.Item) bool) *task.Item {
	var it *task.Item
	var err error
	if c.rt.place == inHandler {
		it, err = c.rt.Task.WaitFor(until, want)
	} else {
		it, err = c.rt.Task.Wait(until)
	}
	c.Check(err)
	return it
}

// serve dispatches an item, and raises if the task must end.
func (c *call) serve(it *task.Item) {
	if c.rt.dispatch(c.L, it); c.rt.stopped != "" {
		row.RaiseError(c.L, &stopError{c.rt.stopped})
	}
	c.Check(c.rt.interrupted())
}

// interrupted returns the cause if the host cancelled the context that it gave the state, although the task continues; the host also posts a call
// that ends the wait.
func (rt *Runtime) interrupted() error {
	if ctx := rt.root.Context(); ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// dispatch passes an item to its target. Errors of handlers propagate as panics.
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
		rt.Log("warn", "a message was dropped: no task receives its messages", map[string]any{"from": it.From.Name()})
	}
}

// handle calls a handler; at is the kind of code that it is.
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

// Serve runs handlers, timers, messages and posted calls until the time until (task.Never: no limit) or until done, which is called after every
// item, returns true. It returns nil then, task.ErrStopped when the task must end, a handler's *lua.ApiError, after which Serve can be called
// again, or the cause of a cancellation.
func (rt *Runtime) Serve(L *lua.LState, until int64, done func() bool) error {
	for done == nil || !done() {
		it, err := rt.Task.Wait(until)
		if err != nil || it == nil {
			return err
		}
		if it.Kind == task.Call {
			it.Call() // outside of any Lua call, as it may run a chunk
		} else if err := rt.protect(L, func() { rt.dispatch(L, it) }); err != nil {
			return err
		}
		if rt.stopped != "" {
			return &stopError{rt.stopped}
		}
	}
	return nil
}

// protect calls fn and returns a Lua error raised in it.
func (rt *Runtime) protect(L *lua.LState, fn func()) error {
	L.Push(L.NewFunction(func(*lua.LState) int {
		fn()
		return 0
	}))
	return L.PCall(0, 0, nil)
}

// moduleSleep implements daqiri.sleep.
func moduleSleep(c *call) int {
	c.AtMost(1)
	ns, err := row.Duration(c.Arg(1))
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	c.waitFor(c.rt.Task.In(ns), func(*task.Item) bool { return false })
	return 0
}

var errNoMessage = fmt.Errorf("no message came in time: %w", session.ErrNotReady)
