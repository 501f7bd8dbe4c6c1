package bindings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// persistent is the part of a kernel that runs concurrently with the proxy of its rings. Cold.
type persistent struct {
	is    bool
	rings session.Rings
	named bool                // the script names the rings' operations
	run   *session.Persistent // nil: not started, or stopped
	of    *RunningSession
	last  session.GNState // of the last stopped run
	sems  *lua.LTable
}

const (
	stopPatience    = int64(5 * time.Second)
	longWait        = int64(5 * time.Second) // k:wait without a timeout then logs what it waits for
	silencePatience = int64(5 * time.Second)
	drainLook       = 100 * time.Microsecond // poll interval of the rings' completion
	itemLook        = 500 * time.Microsecond // poll interval of semaphores
	runLooks        = 5 * time.Millisecond   // poll interval of the kernel's state
)

// options reads the options of daqiri.kernel for persistent kernels.
func (p *persistent) options(o *options) {
	p.is = o.Bool("persistent", false)
	p.sems = o.c.L.NewTable()
	p.rings = session.Rings{TX: 256, RX: 256, Semaphores: 64, Ops: []string{"send"}}
	if !o.Has("rings") {
		return
	}
	t, ok := o.Get("rings").(*lua.LTable)
	if !ok || !p.is {
		o.Wrong("rings", "a table expected, of a kernel that is persistent")
	}
	t.ForEach(func(k, v lua.LValue) {
		slots := map[string]*int{"tx": &p.rings.TX, "rx": &p.rings.RX, "semaphores": &p.rings.Semaphores}[k.String()]
		if n, ok := v.(lua.LNumber); ok && slots != nil && float64(n) == float64(int32(n)) && n > 0 {
			*slots = int(n)
			return
		}
		if list, ok := v.(*lua.LTable); ok && k.String() == "ops" {
			p.rings.Ops, p.named = o.ops(list), true
			return
		}
		o.Wrong("rings", "%s = %s: tx, rx and semaphores are numbers of slots, ops is a list", k, row.Describe(v))
	})
}

func (o *options) ops(list *lua.LTable) (ops []string) {
	for i := range list.Len() {
		op := list.RawGetInt(i + 1).String()
		if !slices.Contains(session.RingOps(), op) {
			o.Wrong("rings", "ops: there is no operation %q: it is one of %s", op, strings.Join(session.RingOps(), ", "))
		}
		ops = append(ops, op)
	}
	return ops
}

func (p *persistent) state() session.GNState {
	if p.run != nil {
		return p.run.State()
	}
	return p.last
}

// get returns a field of a persistent kernel.
func (p *persistent) get(key lua.LValue) lua.LValue {
	switch key {
	case lua.LString("running"):
		return lua.LBool(p.run != nil && p.run.Running())
	case lua.LString("posted"):
		return lua.LNumber(p.state().Posted)
	case lua.LString("completed"):
		return lua.LNumber(p.state().Completed)
	case lua.LString("refused"):
		return lua.LNumber(p.state().Refused)
	case lua.LString("received"):
		return lua.LNumber(p.state().Received)
	case lua.LString("restarted"):
		return lua.LNumber(p.state().Restarted)
	case lua.LString("fault"):
		if fault := p.state().Fault; fault != "" {
			return lua.LString(fault)
		}
		return lua.LNil
	case lua.LString("semaphores"):
		return p.sems
	}
	return nil
}

// ---- starting ---------------------------------------------------------------------------------------------

// each calls take for every element of a list option; what names the elements, and most is their maximum number.
func (o *options) each(key, what string, most int, take func(lua.LValue)) {
	t, ok := o.Get(key).(*lua.LTable)
	switch {
	case !o.Has(key):
		return
	case !ok:
		o.Wrong(key, "a list of %s expected, got %s", what, row.Describe(o.Get(key)))
	case t.Len() > most:
		o.Wrong(key, "%d %s, and a kernel has %d at most", t.Len(), what, most)
	}
	for i := range t.Len() {
		take(t.RawGetInt(i + 1))
	}
}

// queues reads a queue or a list of queues.
func (o *options) queues(key string) (list []*session.Queue) {
	take := func(v lua.LValue) {
		q, ok := row.Userdata[*queue](v)
		if !ok {
			o.Wrong(key, "a queue, or a list of them, expected, got %s", row.Describe(v))
		}
		q.check(o.c)
		list = append(list, q.q)
	}
	if _, ok := o.Get(key).(*lua.LTable); o.Has(key) && !ok {
		take(o.Get(key))
	} else {
		o.each(key, "queues", session.MaxKernelRings, take)
	}
	return list
}

// writers reads a list of writers.
func (o *options) writers(key string) (list []*session.Stage) {
	o.each(key, "writers", session.MaxKernelWriters, func(v lua.LValue) {
		st, ok := row.Userdata[*stage](v)
		if !ok {
			o.Wrong(key, "a writer expected, got %s", row.Describe(v))
		}
		list = append(list, st.st)
	})
	return list
}

// names reads a list of region names.
func (o *options) names(key string) (list []string) {
	o.each(key, "names", session.MaxKernelRegions, func(v lua.LValue) { list = append(list, v.String()) })
	return list
}

// contextArguments returns the kernel arguments of k:start, and those that are regions and objects; the default is the context alone.
func (k *kernelObject) contextArguments(c *call, o *options) (args []kernel.Arg, regions map[int]string, objects map[int]session.KernelObject) {
	regions, objects = map[int]string{}, map[int]session.KernelObject{}
	list := []lua.LValue{lua.LString("context")}
	if t, ok := o.Get("args").(*lua.LTable); ok {
		list = nil
		for i := range t.Len() {
			list = append(list, t.RawGetInt(i+1))
		}
	} else if o.Has("args") {
		o.Wrong("args", "a list expected, got %s", row.Describe(o.Get("args")))
	}
	c.Check(k.k.CheckCount(len(list)))
	contexts := 0
	for i, v := range list {
		if v == lua.LString("context") {
			if !k.k.TakesContext(i) {
				c.Check(k.k.Unfit(i, "the context is passed as a pointer: void *"))
			}
			args = append(args, session.ContextArg)
			contexts++
			continue
		}
		if t, ok := v.(*lua.LTable); ok {
			a, object := k.objectArgument(c, o, i, t, regions)
			args = append(args, a)
			if object != nil {
				objects[i] = *object
				contexts++
			}
			continue
		}
		if name, ok := v.(lua.LString); ok {
			a, err := k.k.NumberArg(i, 0)
			c.Check(err)
			args, regions[i] = append(args, a), string(name)
			continue
		}
		a, _, err := k.argument(c, i, v, true)
		c.Check(err)
		args = append(args, a)
	}
	if contexts == 0 {
		o.Wrong("args", "\"context\" is missing, and so is a queue: without it the kernel has no rings")
	}
	return args, regions, objects
}

// kernelStart implements k:start{tx, rx, semaphores, regions, remote, conn, writers, args, policy, limit, timers, timeout, restarts, session}.
func kernelStart(c *call) int {
	k := receiver[*kernelObject](c, "kernel")
	o := c.options(1)
	if !k.is {
		c.Raise("kernel %s: 'start' is for persistent kernels: hint: daqiri.kernel{ persistent = true, … }", k.name)
	}
	if k.run != nil {
		c.Raise("kernel %s: it was started, and is stopped by k:stop() first", k.name)
	}
	limit, given := o.Seconds("limit")
	if !given {
		limit = int64(10 * time.Second)
	}
	timeout, given := o.Seconds("timeout")
	if !given {
		timeout = silencePatience
	}
	of := o.session("session")
	n := int(o.Whole("semaphores", 0, 0, 64))
	args, regionArgs, objectArgs := k.contextArguments(c, o)
	rings := k.rings
	for _, a := range objectArgs {
		for _, op := range a.Ops {
			if !k.named && !slices.Contains(rings.Ops, op) {
				rings.Ops = append(slices.Clone(rings.Ops), op)
			}
		}
	}
	timers := o.Bool("timers", false)
	var peer *session.Conn
	if o.Has("conn") {
		x, ok := row.Userdata[*connection](o.Get("conn"))
		if !ok {
			o.Wrong("conn", "a connection expected, got %s", row.Describe(o.Get("conn")))
		}
		peer = x.c
	}
	run, err := of.s.StartPersistent(session.PersistentOptions{Name: k.name, Kernel: k.k, Grid: k.grid, Rings: rings,
		TX: o.queues("tx"), RX: o.queues("rx"), Regions: o.names("regions"), Remote: o.names("remote"), Conn: peer, Writers: o.writers("writers"), Semaphores: n,
		Args: args, RegionArgs: regionArgs, ObjectArgs: objectArgs, Policy: o.Policy(session.Drop), Limit: time.Duration(limit),
		Timers: timers, Timeout: time.Duration(timeout), Restarts: int(o.Whole("restarts", 3, 0, 1<<31-1))})
	c.Check(err)
	k.run, k.of = run, of
	look := &runLook{run: run}
	look.alarm = c.rt.Task.Every(runLooks, look)
	k.sems = c.L.NewTable()
	for i := range n {
		k.sems.Append(c.rt.newObject(&semaphore{of: k, index: i}))
	}
	return c.Push(c.L.Get(1))
}

// runLook polls whether the kernel runs, which also restarts a kernel that died.
type runLook struct {
	run   *session.Persistent
	alarm *task.Alarm
}

func (r *runLook) deliver(*Runtime, *lua.LState, *task.Item) {
	if !r.run.Running() {
		r.alarm.Cancel()
	}
}

// ---- ending -----------------------------------------------------------------------------------------------

func (k *kernelObject) started(c *call) {
	if k.run == nil {
		c.Raise("kernel %s: it was not started", k.name)
	}
}

// over reports whether the kernel has ended and its rings are drained.
func (k *kernelObject) over() bool { return !k.run.Running() && k.run.Drained() }

// stuck reports whether the kernel has ended and its rings can't drain until a consumer reads what it sent.
func (k *kernelObject) stuck() bool {
	if k.run.Running() {
		return false
	}
	_, unread := k.run.WaitsFor()
	return unread
}

// await serves the task's handlers until done returns true; it returns false at the time until.
func (k *kernelObject) await(c *call, until int64, done func() bool) bool {
	c.canWait()
	look := &ringLook{}
	alarm := c.rt.Task.Every(drainLook, look)
	defer alarm.Cancel()
	return c.waitUntil(until, done, look)
}

// ringLook is the target of the timer that wakes a script waiting for its rings.
type ringLook struct{}

func (*ringLook) deliver(*Runtime, *lua.LState, *task.Item) {}

// kernelWait implements k:wait{timeout}. Without a timeout it raises if the wait can't end, and logs the cause once if the wait is long.
func kernelWait(c *call) int {
	k := receiver[*kernelObject](c, "kernel")
	k.started(c)
	done, until := k.over, task.Never
	if timeout, limited := c.options(1).Seconds("timeout"); limited {
		until = c.rt.Task.In(timeout)
	} else {
		done = func() bool { return k.over() || k.stuck() }
		if !k.await(c, c.rt.Task.In(longWait), done) {
			why, _ := k.run.WaitsFor()
			c.rt.Log("info", fmt.Sprintf("kernel %s: k:wait() goes on: %s", k.name, why), nil)
		}
	}
	for !k.await(c, until, done) || !k.over() {
		why, unread := k.run.WaitsFor()
		if until == task.Never && !unread {
			continue // a consumer appeared meanwhile
		}
		if until == task.Never {
			c.Raise("kernel %s: %s", k.name, why)
		}
		return c.Fail(fmt.Errorf("kernel %s: %s: %w", k.name, why, session.ErrNotReady))
	}
	c.Check(k.run.Error())
	return c.Push(lua.LTrue)
}

// kernelStop implements k:stop{timeout}.
func kernelStop(c *call) int {
	k := receiver[*kernelObject](c, "kernel")
	k.started(c)
	timeout, limited := c.options(1).Seconds("timeout")
	if !limited {
		timeout = stopPatience
	}
	k.run.Abort()
	if !k.await(c, c.rt.Task.In(timeout), func() bool { return k.over() || k.stuck() }) && k.run.Running() {
		return c.Fail(fmt.Errorf("kernel %s: it still runs after it was stopped: gn_recv, gn_send and gn_wait return GN_ABORTED: %w", k.name, session.ErrNotReady))
	}
	k.last = k.run.State()
	err := k.run.Error()
	k.run.Close()
	k.run = nil
	c.Check(err)
	return c.Push(lua.LTrue)
}

// ---- semaphores -------------------------------------------------------------------------------------------

// semaphore passes items from the kernel to the script. Cold.
type semaphore struct {
	of    *kernelObject
	index int
	fn    *lua.LFunction
	alarm *task.Alarm
}

func (*semaphore) LuaType() string { return "semaphore" }

var semaphoreType = &typeDef{
	name: "semaphore",
	self: "sem",
	doc: `a semaphore
		An order in which a persistent kernel hands items to the script ('k.semaphores'): two numbers each, which mean what both agree on.`,
	methods: []entry{
		{"on_ready", semOnReady, `- fn fun(first: integer, second: integer): gets the two numbers of the item
			-> semaphore: itself
			Has a function called with each item that the kernel puts into the semaphore, in order; when it returns the item is done. The task looks each 0.5 ms.
			A semaphore with a function has no other consumer.
			> sem:on_ready(function(first, count) print(first, count) end)`},
	},
}

// semOnReady implements sem:on_ready(fn).
func semOnReady(c *call) int {
	s := receiver[*semaphore](c, "semaphore")
	s.of.started(c)
	s.fn = c.Func(1, "function(first, count)")
	if s.alarm == nil {
		s.alarm = c.rt.Task.Every(itemLook, s)
	}
	return c.Push(c.L.Get(1))
}

func (s *semaphore) deliver(rt *Runtime, L *lua.LState, _ *task.Item) {
	run := s.of.run
	for run != nil {
		first, count, ok := run.TakeItem(s.index)
		if !ok {
			break
		}
		rt.handle(L, inHandler, s.fn, lua.LNumber(first), lua.LNumber(count))
		run.ReleaseItem(s.index)
		run = s.of.run
	}
	if s.of.run == nil {
		s.alarm.Cancel()
	}
}

// objectKinds are the keys of which an argument that is a table has one.
var objectKinds = []string{"qp", "qps", "mlx5", "txq", "rxq", "dma", "rdma", "buffers", "address", "key", "semaphore", "exit"}

// objectDetails are the keys that such a table may have besides.
var objectDetails = []string{"rx", "offset", "bytes", "count"}

// impliedOps are the operations of transmit rings that an argument needs, where the kernel names none.
var impliedOps = map[string][]string{"qp": qpOps, "qps": qpOps, "mlx5": qpOps, "rdma": qpOps, "dma": {"copy"}}

var qpOps = []string{"send", "put", "get", "add", "cas", "wait"}

// objectArgument returns argument i of k:start from a table, and its object unless it is a number or an array.
func (k *kernelObject) objectArgument(c *call, o *options, i int, t *lua.LTable, regions map[int]string) (a kernel.Arg, object *session.KernelObject) {
	kind, v := k.objectKind(c, i, t)
	object = &session.KernelObject{Ops: impliedOps[kind], RX: k.ringNumber(c, o, i, t, "rx"), Offset: uint64(k.ringNumber(c, o, i, t, "offset"))}
	switch kind {
	case "qp", "mlx5", "txq", "dma", "rdma":
		object.MLX5 = kind == "mlx5"
		object.TX = []int{k.ringNumber(c, o, i, t, kind)}
	case "qps":
		list, _ := v.(*lua.LTable)
		for n := 1; list != nil && n <= list.Len(); n++ {
			object.TX = append(object.TX, int(lua.LVAsNumber(list.RawGetInt(n))))
		}
		if len(object.TX) == 0 {
			c.Check(k.k.Unfit(i, "qps is a list of transmit rings, from 1"))
		}
	case "rxq":
		object.RX = k.ringNumber(c, o, i, t, kind)
	case "exit":
		object.Exit = true
	case "key":
		a, err := k.k.NumberArg(i, 0)
		c.Check(err)
		regions[i] = v.String()
		return a, nil
	case "semaphore":
		return k.semaphoreArgument(c, i, v), nil
	default: // buffers, address
		object.Region, object.Count = v.String(), k.ringNumber(c, o, i, t, "count")
		if kind == "buffers" {
			object.Bytes = k.ringNumber(c, o, i, t, "bytes")
			if object.Bytes == 0 {
				c.Check(k.k.Unfit(i, "buffers have bytes: { buffers = \"region\", bytes = 256 }"))
			}
		}
		if kind == "address" { // a pointer or a number
			return kernel.Arg{}, object
		}
	}
	for _, tx := range object.TX {
		if tx < 1 {
			c.Check(k.k.Unfit(i, kind+" is the number of a transmit ring, from 1"))
		}
	}
	c.Check(k.k.PointerArg(i, kind))
	return kernel.Arg{}, object
}

// objectKind returns the key of objectKinds that an argument's table has, and its value; it raises unless there is one, and for other keys.
func (k *kernelObject) objectKind(c *call, i int, t *lua.LTable) (kind string, v lua.LValue) {
	t.ForEach(func(key, value lua.LValue) {
		name, _ := key.(lua.LString)
		switch {
		case slices.Contains(objectDetails, string(name)):
		case !slices.Contains(objectKinds, string(name)):
			c.Check(k.k.Unfit(i, row.Unknown("key", key.String(), slices.Concat(objectKinds, objectDetails))))
		case kind != "":
			c.Check(k.k.Unfit(i, fmt.Sprintf("a table names %s or %s, not both", min(kind, string(name)), max(kind, string(name)))))
		default:
			kind, v = string(name), value
		}
	})
	if kind == "" {
		c.Check(k.k.Unfit(i, "a table names one of "+strings.Join(objectKinds, ", ")))
	}
	return kind, v
}

// ringNumber reads a whole number of an argument's table; 0: there is none.
func (k *kernelObject) ringNumber(c *call, _ *options, i int, t *lua.LTable, key string) int {
	v := t.RawGetString(key)
	if v == lua.LNil {
		return 0
	}
	n, err := row.WholeNumber(v, 0, 1<<40)
	if err != nil {
		c.Check(k.k.Unfit(i, key+": "+err.Error()))
	}
	return int(n)
}

// semaphoreArgument returns an array of uint64 as the items of a semaphore, and writes its header: the bytes of a row, and how many items there are.
func (k *kernelObject) semaphoreArgument(c *call, i int, v lua.LValue) kernel.Arg {
	x, ok := row.Userdata[*arrayObject](v)
	if !ok || x.a.Type.Name != "uint64" || len(x.a.Shape) != 2 || x.a.Shape[0] < 2 || x.a.Shape[1] < 3 {
		c.Check(k.k.Unfit(i, "semaphore is a daqiri.array of uint64 of shape { items + 1, 3 or more words }"))
	}
	c.Check(x.a.Set(0, float64(8*x.a.Shape[1])))
	c.Check(x.a.Set(1, float64(x.a.Shape[0]-1)))
	a, err := k.k.SemaphoreArg(i, x.a)
	c.Check(err)
	return a
}
