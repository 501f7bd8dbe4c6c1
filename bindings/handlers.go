package bindings

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// tapper makes a tap: of a queue, a stage or a connection.
type tapper func(*task.Task, any, session.TapOptions) (*session.Tap, error)

// onBurst is on_burst of `of`, a queue or a connection of the session, of which tap makes a tap; name begins the tap's. A function for a
// handler that is there takes the place of its function, and its tap goes on: no burst is lost between them. At the prompt that is
// so for the only handler that there is, too.
func (c *call) onBurst(o *RunningSession, of any, tap tapper, name string) int {
	if c.arg(1) == lua.LFalse {
		o.check(c)
		c.rt.removeHandlers(c, of, c.options(2).str("name", ""))
		return c.push(c.L.Get(1))
	}
	fn := c.fn(1, "function(burst)")
	opts := c.options(2)
	want := session.TapOptions{Name: name, Sample: int(opts.whole("sample", 1, 1, 1<<31-1)), Policy: opts.policy(session.Wait)}
	label := opts.str("name", "")
	if h := c.rt.handlerOf(of, label); h != nil {
		if (opts.has("sample") || opts.has("policy")) && (want.Sample != h.options.Sample || want.Policy != h.options.Policy) {
			c.raise("the handler %s has another sample or policy: remove it first, with on_burst(false)", h.tap.Name())
		}
		o.check(c)
		h.fn = fn
		return c.push(c.L.Get(1))
	}
	h := &burstHandler{fn: fn, of: o, meta: c.rt.live(burstType.name).meta, source: of, label: label, options: want}
	t, err := tap(c.rt.Task, h, want)
	c.check(err)
	h.tap, h.clock = t, t.Clock()
	if _, passing := of.(*session.Conn); !passing || label != "" { // connections come and go by the thousand
		c.rt.handlers = append(c.rt.handlers, h)
	}
	c.rt.listening++
	return c.push(c.L.Get(1))
}

// handlerOf is the handler whose function a new one replaces; nil: it is one more.
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

// removeHandlers takes the handlers of that label out, all where there is none. What waits for them is still handed over.
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
		c.raise("there is no handler named %s", label)
	}
}
