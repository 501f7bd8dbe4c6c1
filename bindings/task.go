package bindings

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// taskHandle is the parent's reference to a task. Cold.
type taskHandle struct {
	t       *task.Task
	handler *lua.LFunction // on_message
}

func (*taskHandle) LuaType() string { return "task" }

var taskType = &typeDef{
	name: "task",
	self: "t",
	doc: `a task
		A Lua state with a thread of its own, as the task that made it sees it ('daqiri.task'). Tasks share nothing but messages, which are copies, and queues,
		which are handed over. An error in a task ends the program.`,
	fields: []field{
		{"done", `-> boolean
			Whether the task is over.
			> print(t.done)`},
		{"name", `-> string: 'FILE:LINE' of the function, or the module's name
			Where the task's function was written.
			> print(t.name)`},
	},
	get: func(_ *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		h := self.(*taskHandle)
		switch key {
		case lua.LString("name"):
			return lua.LString(h.t.Name())
		case lua.LString("done"):
			select {
			case <-h.t.Done():
				return lua.LTrue
			default:
				return lua.LFalse
			}
		}
		return nil
	},
	methods: []entry{
		{"on_message", taskOnMessage, `- fn fun(v: any): called with each message
			Has a function called with what the task sends ('daqiri.send').
			> t:on_message(function(v) print(v) end)`},
		{"send", taskSend, `- v any: nil, a boolean, number, string, u64 or time, or a table of these
			-> true | failure
			Sends the task a copy of a value; nil, status, text when its inbox is full or it is over.
			> assert(t:send{ gain = 5 })`},
		{"stop", taskStop, `- reason? string: for its log
			Asks the task to end: what it waits in raises there, and its handlers end.
			> t:stop "enough"`}},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		h, _ := row.Userdata[*taskHandle](c.L.Get(1))
		return c.Push(lua.LString("task " + h.t.Name()))
	}}},
}

// readyTime is how long daqiri.task waits until the new task is ready.
const readyTime = time.Second

// ready is sent by a new task when it first waits or has ended.
type ready struct{}

// sendReady notifies the parent's daqiri.task call, at most once.
func (rt *Runtime) sendReady() {
	if rt.parent != nil && !rt.readySent {
		rt.readySent = true
		_ = rt.parent.Send(ready{}, rt.Task) // the parent's wait is bounded
	}
}

// job is the work of a new task: a function or a module's chunk, and its arguments.
type job struct {
	name   string
	proto  *lua.FunctionProto
	module string
	args   []any
}

// moduleTask implements daqiri.task: it starts a Lua state on a new thread, and returns when that state first waits (its handlers are set then)
// or has ended.
func moduleTask(c *call) int {
	j := &job{}
	switch v := c.Arg(1).(type) {
	case *lua.LFunction:
		proto, err := prototype(v)
		if err != nil {
			c.ArgError(1, "%v", err)
		}
		j.name, j.proto = fmt.Sprintf("%s:%d", proto.SourceName, proto.LineDefined), proto
	case lua.LString:
		j.name, j.module = string(v), string(v)
	default:
		c.Wanted(1, "function or module name")
	}
	for n := 2; n <= c.Count(); n++ {
		v, err := c.export(c.Arg(n), true, 0)
		if err != nil {
			c.ArgError(n, "%v", err)
		}
		j.args = append(j.args, v)
	}
	t, err := c.rt.Scheduler.NewTask(j.name)
	c.Check(err)
	for n := 2; n <= c.Count(); n++ {
		c.handOver(c.Arg(n), t)
	}
	child := c.rt.child(t)
	t.Start(func(*task.Task) error { return child.run(j) })
	h := &taskHandle{t: t}
	c.rt.tasks[t] = h
	// Packets for the new task must not arrive before it has handlers. A stop request meanwhile is kept for the next wait.
	_, _ = c.rt.Task.WaitFor(c.rt.Task.Now()+int64(readyTime), func(it *task.Item) bool {
		return it.Kind == task.Message && it.From == t && it.Value == ready{}
	})
	return c.Push(c.rt.newObject(h))
}

// prototype returns a function's code without its state.
func prototype(fn *lua.LFunction) (*lua.FunctionProto, error) {
	if fn.IsG {
		return nil, errors.New("a function written in Lua expected")
	}
	if fn.Proto.NumUpvalues > 0 {
		name := "?"
		if len(fn.Proto.DbgUpvalues) > 0 {
			name = fn.Proto.DbgUpvalues[0]
		}
		return nil, fmt.Errorf("the function captures the local '%s', which the new task can't see: "+
			"pass it as an argument, or require it inside the function", name)
	}
	return fn.Proto, nil
}

// handOver makes t the owner of the queues in v; their handles in this state become invalid.
func (c *call) handOver(v lua.LValue, t *task.Task) {
	switch v := v.(type) {
	case *lua.LTable:
		v.ForEach(func(_, e lua.LValue) { c.handOver(e, t) })
	case *lua.LUserData:
		if q, ok := v.Value.(*queue); ok {
			q.handOver(c, t)
		}
	}
}

// child returns the runtime of a task created by this one.
func (rt *Runtime) child(t *task.Task) *Runtime {
	return &Runtime{Task: t, Scheduler: rt.Scheduler, Stdout: rt.Stdout, Screen: rt.Screen, Log: rt.Log, LogLevel: rt.LogLevel, Script: rt.Script,
		ScriptArgs: rt.ScriptArgs, Env: rt.Env, Open: rt.Open, Shared: rt.Shared, NewState: rt.NewState, memory: rt.memory,
		LoadModule: rt.LoadModule, parent: rt.Task}
}

// run executes a spawned task: the job, then its handlers until the task is stopped.
func (rt *Runtime) run(j *job) error {
	L, err := rt.NewState(rt)
	if err != nil {
		rt.Shared.Fail(fmt.Errorf("task %s: %w", j.name, err))
		return err
	}
	defer L.Close()
	err = rt.work(L, j)
	rt.sendReady()
	if err == nil && rt.listening > 0 {
		err = rt.Serve(L, task.Never, nil)
	}
	rt.End(L)
	if err = rt.reportable(err); err != nil {
		rt.Shared.Fail(err)
		rt.Scheduler.StopAll("an error in task " + j.name)
	}
	return err
}

func (rt *Runtime) work(L *lua.LState, j *job) error {
	var fn *lua.LFunction
	switch {
	case j.module == "":
		fn = L.NewFunctionFromProto(j.proto)
	case rt.LoadModule == nil:
		return fmt.Errorf("task %s: modules can't be loaded here", j.name)
	default:
		var err error
		if fn, err = rt.LoadModule(L, j.module); err != nil {
			return fmt.Errorf("task %s: %w", j.name, err)
		}
	}
	L.Push(fn)
	for _, v := range j.args {
		L.Push(rt.imported(v))
	}
	return L.PCall(len(j.args), 0, nil)
}

// reportable returns the error to report for the end of a script: nil if the task was stopped, the process exits, or the clock can't advance.
func (rt *Runtime) reportable(err error) error {
	cause := err
	var raised *lua.ApiError
	if errors.As(err, &raised) && raised.Cause != nil {
		cause = raised.Cause
	}
	var exit *Exit
	if errors.Is(cause, task.ErrStopped) || errors.Is(cause, task.ErrIdle) || errors.As(cause, &exit) ||
		rt.Task.Context().Err() != nil {
		return nil
	}
	return err
}

func taskSend(c *call) int {
	h := receiver[*taskHandle](c, "task")
	v, err := c.export(c.Arg(1), false, 0)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Done(h.t.Send(v, c.rt.Task))
}

func taskOnMessage(c *call) int {
	h := receiver[*taskHandle](c, "task")
	h.handler = c.Func(1, "function(value)")
	c.rt.listening++
	return 0
}

// taskStop requests the end of a task: its waiting call raises, or it stops serving handlers.
func taskStop(c *call) int {
	receiver[*taskHandle](c, "task").t.Stop(c.OptionalStr(1, "reason", "stopped by task "+c.rt.Task.Name()))
	return 0
}

// moduleSend implements daqiri.send: a message to the parent task.
func moduleSend(c *call) int {
	if c.rt.parent == nil {
		c.Raise("daqiri.send: the main script has no task above it (use t:send on what daqiri.task returned)")
	}
	v, err := c.export(c.Arg(1), false, 0)
	if err != nil {
		c.ArgError(1, "%v", err)
	}
	return c.Done(c.rt.parent.Send(v, c.rt.Task))
}

// moduleOnMessage implements daqiri.on_message: a handler for messages of the parent task.
func moduleOnMessage(c *call) int {
	if c.rt.parent == nil {
		c.Raise("daqiri.on_message: the main script has no task above it (use t:on_message)")
	}
	c.rt.inbox = c.Func(1, "function(value)")
	c.rt.listening++
	return 0
}

// moduleReceive implements daqiri.receive: the next message of the parent task, within a timeout.
func moduleReceive(c *call) int {
	o := c.options(1)
	until := task.Never
	if ns, given := o.Seconds("timeout"); given {
		until = c.rt.Task.In(ns)
	}
	if c.rt.parent == nil {
		c.Raise("daqiri.receive: the main script has no task above it (use t:on_message)")
	}
	c.canWait()
	if mail := c.rt.mail; len(mail) > 0 {
		c.rt.mail = mail[1:]
		return c.Push(c.rt.imported(mail[0]))
	}
	it := c.waitFor(until, func(it *task.Item) bool { return it.Kind == task.Message && it.From == c.rt.parent })
	if it == nil {
		return c.Fail(errNoMessage)
	}
	return c.Push(c.rt.imported(it.Value))
}

// pair is one entry of a table copied between states.
type pair struct{ key, value any }

// passed is a receive or transmit queue passed to another task.
type passed struct {
	q  *session.Queue
	of *RunningSession
}

// export copies a value out of its state: nil, booleans, numbers, strings, u64, times and tables of these; queues only if queues is set.
func (c *call) export(v lua.LValue, queues bool, depth int) (any, error) {
	if depth > value.MaxNesting {
		return nil, fmt.Errorf("nested deeper than %d levels (a table that contains itself?)", value.MaxNesting)
	}
	if depth == 0 {
		c.rt.exported = 0
	}
	if c.rt.exported++; c.rt.exported > value.MaxValues {
		return nil, fmt.Errorf("more than %d values (a table that is in others many times over?)", value.MaxValues)
	}
	switch v := v.(type) {
	case *lua.LNilType, lua.LBool, lua.LNumber, lua.LString:
		return v, nil
	case *lua.LTable:
		var pairs []pair
		var failed error
		v.ForEach(func(k, e lua.LValue) {
			if failed != nil {
				return
			}
			key, err := c.export(k, false, depth+1)
			if err == nil {
				e, err := c.export(e, queues, depth+1)
				pairs = append(pairs, pair{key, e})
				failed = cmp.Or(failed, err)
			}
			failed = cmp.Or(failed, err)
		})
		return pairs, failed
	case *lua.LFunction:
		if queues {
			return prototype(v)
		}
	case *lua.LUserData:
		switch x := v.Value.(type) {
		case row.U64, timestamp:
			return x, nil
		case *queue:
			if !queues {
				return nil, fmt.Errorf("a queue is handed over as an argument of daqiri.task only")
			}
			x.check(c)
			return passed{x.q, x.of}, nil
		}
	}
	return nil, fmt.Errorf("%s can't go to another task: tasks share nothing but messages and queues", row.Describe(v))
}

// imported converts an exported value to a Lua value of this state.
func (rt *Runtime) imported(v any) lua.LValue {
	switch v := v.(type) {
	case []pair:
		t := rt.root.NewTable()
		for _, p := range v {
			t.RawSet(rt.imported(p.key), rt.imported(p.value))
		}
		return t
	case row.U64:
		return rt.newObject(v)
	case timestamp:
		return rt.newObject(v)
	case *lua.FunctionProto:
		return rt.root.NewFunctionFromProto(v)
	case passed:
		return rt.newLasting(&queue{q: v.q, of: v.of})
	case lua.LValue:
		return v
	}
	return lua.LNil
}
