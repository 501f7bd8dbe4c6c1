package bindings

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// tapper creates a tap of a queue, a stage or a connection.
type tapper func(*task.Task, any, session.TapOptions) (*session.Tap, error)

// onBurst implements on_burst for a queue, stage or connection of the session; tap creates the tap, and name prefixes the tap's name. If the
// handler exists, only its function is replaced and its tap continues, so no burst is lost. At the prompt this also applies to an unnamed handler
// if it is the only one.
func (c *call) onBurst(o *RunningSession, of any, tap tapper, name string) int {
	if c.Arg(1) == lua.LFalse {
		o.check(c)
		c.rt.removeHandlers(c, of, c.options(2).Str("name", ""))
		return c.Push(c.L.Get(1))
	}
	fn := c.Func(1, "function(burst)")
	opts := c.options(2)
	want := session.TapOptions{Name: name, Sample: int(opts.Whole("sample", 1, 1, 1<<31-1)), Policy: opts.Policy(session.Wait)}
	label := opts.Str("name", "")
	if h := c.rt.handlerOf(of, label); h != nil {
		if (opts.Has("sample") || opts.Has("policy")) && (want.Sample != h.options.Sample || want.Policy != h.options.Policy) {
			c.Raise("the handler %s has another sample or policy: remove it first, with on_burst(false)", h.tap.Name())
		}
		o.check(c)
		h.fn = fn
		return c.Push(c.L.Get(1))
	}
	h := &burstHandler{fn: fn, of: o, meta: c.rt.live(burstType.name).meta, source: of, label: label, options: want}
	t, err := tap(c.rt.Task, h, want)
	c.Check(err)
	h.tap, h.clock = t, t.Clock()
	if _, passing := of.(*session.Conn); !passing || label != "" { // not for short-lived connections, which may number thousands
		c.rt.handlers = append(c.rt.handlers, h)
	}
	c.rt.listening++
	return c.Push(c.L.Get(1))
}

// handlerOf returns the handler whose function a new one replaces; nil: a handler is added.
func (rt *Runtime) handlerOf(of any, label string) *burstHandler {
	var all []*burstHandler
	for _, h := range rt.handlers {
		if h.source == of && (h.label == label || label == "") {
			all = append(all, h)
		}
	}
	if len(all) == 1 && (label != "" || rt.AtPrompt) {
		return all[0]
	}
	return nil
}

// removeHandlers removes the handlers with that label, or all handlers if label is empty. Bursts already queued are still delivered.
func (rt *Runtime) removeHandlers(c *call, of any, label string) {
	found := false
	rt.handlers = slices.DeleteFunc(rt.handlers, func(h *burstHandler) bool {
		if h.source != of || label != "" && h.label != label {
			return false
		}
		h.tap.Close()
		rt.listening--
		found = true
		return true
	})
	if !found && label != "" {
		c.Raise("there is no handler named %s", label)
	}
}
