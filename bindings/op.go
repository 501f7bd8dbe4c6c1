package bindings

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// op is an asynchronous operation started by the script. Cold.
type op struct {
	w       *session.Op
	self    *lua.LUserData
	watched bool // the task is notified of completion
	fns     []*lua.LFunction

	// operations of a connection
	ends    *completions   // completion callback of the connection; nil: none
	data    *session.Burst // burst that receives the data; nil: none
	brought lua.LValue     // data as a Lua value
	of      *RunningSession
	wrID    lua.LValue
}

func (*op) LuaType() string { return "op" }

var opType = &typeDef{
	name: "op",
	self: "op",
	doc: `an operation
		Work that was begun and ends later: the writing of a burst ('w:write(b)'), an operation on a peer's memory ('c:write', 'c:read'), or a run of a kernel ('k:launch'), which counts as one packet. It outlives the burst and the session.`,
	fields: []field{
		{"burst", `-> burst | nil
			What 'c:read' brought, once it has ended without a failure: the script's to free; else nil.
			> print(op.burst)`},
		{"bytes_written", `-> integer, bytes
			Bytes of the completed packets.
			> print(op.bytes_written)`},
		{"completed_packets", `-> integer, packets
			Packets that are in a file: handed to the system, not only staged.
			> print(op.completed_packets)`},
		{"error", `-> string | nil
			The first failure, or nil.
			> print(op.error)`},
		{"failed_packets", `-> integer, packets
			Packets that will not be in a file.
			> print(op.failed_packets)`},
		{"value", `-> u64 | nil
			What an atomic operation found, once it has ended without a failure; else nil.
			> print(op.value)`},
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		w := self.(*op).w
		switch key {
		case lua.LString("bytes_written"):
			return lua.LNumber(w.State().Bytes)
		case lua.LString("completed_packets"):
			return lua.LNumber(w.State().Completed)
		case lua.LString("failed_packets"):
			return lua.LNumber(w.State().Failed)
		case lua.LString("burst"):
			return self.(*op).burst(rt)
		case lua.LString("value"):
			return self.(*op).value(rt)
		case lua.LString("error"):
			if err := w.Error(); err != nil {
				return lua.LString(err.Error())
			}
			return lua.LNil
		}
		return nil
	},
	methods: []entry{
		{"on_done", opOnDone, `- fn fun(op: op): runs once every packet has completed or failed; at once where that is so already
			Has a function run at the end. Several run in the order in which they came.
			> op:on_done(function(op) print(op.completed_packets, op.error) end)`},
		{"poll", opPoll, `-> boolean
			Whether every packet has completed or failed.
			> while not op:poll() do daqiri.sleep("1ms") end`},
		{"wait", opWait, `. timeout? duration: how long it waits; by default without limit
			-> true | failure
			Waits until every packet has completed or failed; nil, '"NOT_READY"', text at the timeout.
			> assert(op:wait{ timeout = 5 })`}},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		o, _ := row.Userdata[*op](c.L.Get(1))
		return c.Push(lua.LString(o.w.String()))
	}}},
}

func (rt *Runtime) newOp(w *session.Op) *lua.LUserData {
	o := &op{w: w}
	o.self = rt.newObject(o)
	return o.self
}

// watch notifies this task of the completion.
func (o *op) watch(c *call) {
	if !o.watched {
		c.Check(o.w.Watch(c.rt.Task, o))
		o.watched = true
	}
}

// deliver runs the completion callbacks.
func (o *op) deliver(rt *Runtime, L *lua.LState, _ *task.Item) {
	fns := o.fns
	o.fns = nil
	for _, fn := range fns {
		rt.handle(L, inHandler, fn, o.self)
	}
	if o.ends != nil {
		o.ends.ended(rt, L)
	}
}

// opOnDone implements op:on_done(fn).
func opOnDone(c *call) int {
	o := receiver[*op](c, "op")
	fn := c.Func(1, "function(op)")
	if o.w.State().Done && len(o.fns) == 0 {
		c.L.Push(fn)
		c.L.Push(o.self)
		c.L.Call(1, 0)
		return 0
	}
	o.fns = append(o.fns, fn)
	o.watch(c)
	return 0
}

func opPoll(c *call) int {
	return c.Push(lua.LBool(receiver[*op](c, "op").w.State().Done))
}

// opWait implements op:wait{timeout}: true after all packets were written or failed; nil, "NOT_READY", text at the timeout. In the main chunk it
// serves handlers meanwhile, which may wait for the same operation.
func opWait(c *call) int {
	o := receiver[*op](c, "op")
	timeout, limited := c.options(1).Seconds("timeout")
	c.canWait()
	until := task.Never
	if limited {
		until = c.rt.Task.In(timeout)
	}
	if !o.w.State().Done {
		o.watch(c)
	}
	if !c.waitUntil(until, func() bool { return o.w.State().Done }, o) {
		return c.Fail(fmt.Errorf("%s: %w", o.w, session.ErrNotReady))
	}
	return c.Push(lua.LTrue)
}
