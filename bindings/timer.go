package bindings

import (
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// timer is a function called at a time or periodically. Cold.
type timer struct {
	fn    *lua.LFunction
	alarm *task.Alarm
	of    *RunningSession
	once  bool
}

func (*timer) LuaType() string { return "timer" }

var timerType = &typeDef{
	name: "timer",
	self: "timer",
	doc: `a timer
		A function that runs at some time, made by 's:after', 's:every' and 's:at'. It ends with the session.`,
	methods: []entry{
		{"cancel", timerCancel, `Ends the timer: its function is not called any more.
			> timer:cancel()`}},
}

func (t *timer) deliver(rt *Runtime, L *lua.LState, _ *task.Item) {
	if t.once {
		delete(t.of.timers, t)
	}
	rt.handle(L, inHandler, t.fn)
}

func (t *timer) cancel() {
	t.alarm.Cancel()
	delete(t.of.timers, t)
}

func timerCancel(c *call) int {
	receiver[*timer](c, "timer").cancel()
	return 0
}

// newTimer creates a timer with the function in argument 2; it ends with the session.
func (c *call) newTimer(o *RunningSession, once bool, set func(target any) *task.Alarm) int {
	t := &timer{fn: c.Func(2, "function()"), of: o, once: once}
	if c.rt.Task != o.owner {
		c.Raise("'%s' belongs to the task that opened the session", c.Name)
	}
	o.unfinished(c)
	t.alarm = set(t)
	o.timers[t] = true
	return c.Push(c.rt.newObject(t))
}

// period reads argument 1 as seconds, or a string with a unit.
func (c *call) period() time.Duration {
	ns, err := row.Duration(c.Arg(1))
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return time.Duration(ns)
}

// sessionEvery implements s:every(seconds, fn).
func sessionEvery(c *call) int {
	o := selfSession(c)
	d := c.period()
	if d < time.Microsecond {
		c.ArgError(1, "a period of %v: at least 1us", d)
	}
	return c.newTimer(o, false, func(target any) *task.Alarm { return c.rt.Task.Every(d, target) })
}

// sessionAfter implements s:after(seconds, fn).
func sessionAfter(c *call) int {
	o := selfSession(c)
	d := c.period()
	return c.newTimer(o, true, func(target any) *task.Alarm { return c.rt.Task.After(d, target) })
}

// sessionAt implements s:at(time, fn); the time may be a string.
func sessionAt(c *call) int {
	o := selfSession(c)
	at, err := c.rt.timestamp(c.Arg(1))
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.newTimer(o, true, func(target any) *task.Alarm { return c.rt.Task.At(int64(at), target) })
}
