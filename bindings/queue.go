package bindings

import (
	"fmt"
	"math"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// queue is a receive or transmit queue. Hot: hand-written metatable.
type queue struct {
	q    *session.Queue
	of   *RunningSession
	gone string // where and to which task it was handed over
}

func (*queue) LuaType() string { return "queue" }

var queueType = &typeDef{
	name: "queue",
	self: "q",
	doc: `a queue
		A receive or transmit queue of an interface ('s:rx_queue', 's:tx_queue').`,
	fields: []field{
		{"batch_size", `-> integer, packets
			How many packets a burst has at most.
			> print(q.batch_size)`},
		{"direction", `-> string: rx or tx
			Whether it receives or transmits.
			> print(q.direction)`},
		{"id", `-> integer
			Its number in its direction, as in the configuration.
			> print(q.id)`},
		{"interface", `-> string
			Its interface's name.
			> print(q.interface)`},
		{"layer", `-> string: frame or payload
			What its packets begin with: an Ethernet header, or the payload of a datagram or stream.
			> print(q.layer)`},
		{"name", `-> string
			Its name.
			> print(q.name)`},
		{"timestamps", `-> string | nil: hardware, kernel, software, virtual or file
			Where a receive queue's times come from; nil of a transmit queue.
			> print(q.timestamps)`},
	},
	is: func(self any) []string {
		if self.(*queue).q.Rx() {
			return []string{"a receive queue"}
		}
		return []string{"a transmit queue"}
	},
	get: func(_ *Runtime, L *lua.LState, self any, key lua.LValue) lua.LValue {
		q := self.(*queue).q
		switch key {
		case lua.LString("name"):
			return lua.LString(q.Name())
		case lua.LString("id"):
			return lua.LNumber(q.ID())
		case lua.LString("interface"):
			return lua.LString(q.Interface().Name())
		case lua.LString("layer"):
			return lua.LString(q.Layer())
		case lua.LString("timestamps"):
			text, err := q.Timestamps()
			if err != nil {
				row.RaiseError(L, fmt.Errorf("queue %s: %w", q.Name(), err))
			}
			if text == "" {
				return lua.LNil
			}
			return lua.LString(text)
		case lua.LString("batch_size"):
			return lua.LNumber(q.BatchSize())
		case lua.LString("direction"):
			if q.Rx() {
				return lua.LString("rx")
			}
			return lua.LString("tx")
		}
		return nil
	},
	methods: []entry{
		{"alloc", queueAlloc, `- n? integer = batch_size, packets: at most batch_size
			-> burst | failure
			Of a transmit queue: a burst of packets with free buffers, to fill and to send; nil, status, text while there are none.
			> local b = assert(tx:alloc(8))
			> b:fill(tpl)`},
		{"delete", queueDelete, `-> op | failure
			Deletes the queue while the session is open, on the engines that can add one. Packets that wait in a receive queue are dropped ('flushed'), and its handlers
			end; a transmit queue sends what it has. The operation ends once no burst of the queue is in use. Flows and pipes that name the queue come first, else nil,
			'"RESOURCE_IN_USE"', text. The counts stay in the ledger and the summary.
			> local region = { name = "passing", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }
			> assert(s:add_region(region))
			> local extra = assert(i:add_tx_queue{ name = "extra", id = 8, cpu_core = -1, batch_size = 8,
			>   memory_regions = { "passing" } })
			> assert(extra:delete():wait{ timeout = 5 })`},
		{"drain", queueDrain, `. timeout? duration: how long it waits; by default without limit
			-> true | failure
			Of a transmit queue: waits until what was given to it has left, 'transmit' with a count included; nil, '"NOT_READY"', text at the timeout.
			> s:start()
			> tx:transmit{ template = tpl, count = 8 }
			> assert(tx:drain{ timeout = 5 })`},
		{"flush", queueFlush, `-> integer, packets
			Of a receive queue: discards what waits to be received.
			> print(q:flush())`},
		{"get_burst", queueGetBurst, row.GetBurstRows + `Of a receive queue: waits for the next burst; nil, '"NOT_READY"', text at the timeout. From the first call on the queue's bursts wait for more calls,
			and hold the queue. The session has to run.
			> s:start()
			> local b = q:get_burst{ timeout_us = 1000 }
			> if b then b:free() end`},
		{"on_burst", queueOnBurst, row.OnBurstRows + `-> queue: itself
			Of a receive queue: has a function called with each burst. The burst ends with the function, unless that keeps, sends or frees it. Nothing that waits
			can be called in it. A function for a handler of the same 'name' takes the place of its function with the next burst; 'false' removes.
			> q:on_burst(function(b) print(b.n) end, { policy = "drop" })`},
		{"pace", queuePace, `. rate? rate: limit of what is sent; none where absent, and 0 is refused
			. pps? number, packets/s: limit of how many are sent; none where absent, and 0 is refused
			. follow? "rx_timestamp": packets that were received keep the gaps of their receive times; excludes rate and pps
			. speed number = 1: the gaps are divided by it, with follow
			Of a transmit queue: paces it from now on. The ledger has the accuracy of the pace, from the first packet to the last: 'l.tx_port.tx.rate_error', a
			part of what was asked for. In ns, how far gaps between packets are off: 'gap_error.p50', '.p90', '.p99', '.max'. A queue that runs dry spoils
			the rate, not the gaps; the time between two transmissions is not a gap.
			> tx:pace{ rate = "1Gbit/s" }
			> tx:pace{ follow = "rx_timestamp", speed = 2 }`},
		{"send", queueSend, `- b burst: which ends with the call, unless it fails
			-> true | failure
			Of a transmit queue: sends a burst; nil, '"NO_SPACE_AVAILABLE"', text while the ring is full. The session has to run.
			> s:start()
			> assert(tx:send(tx:alloc(4):fill(tpl)))`},
		{"template", queueTemplate, row.TemplateRows + `-> template
			Of a transmit queue: a packet to be sent many times. A queue of frames takes the headers, too; one of payloads only 'bytes', 'format', 'payload',
			'payload_bytes' and 'vary'. Lengths and checksums are set.
			> local tpl = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_dst = "10.0.0.2", udp_dst = 7148,
			>   payload_bytes = 100,
			>   vary = { udp_src = { start = 1000, step = 1, max = 1999 } } }`},
		{"transmit", queueTransmit, `. template template | false: what is sent; false ends it
			. count? integer, packets: how many; without it until the stop
			Of a transmit queue: its own thread sends the template's packets, at the queue's pace.
			> tx:transmit{ template = tpl, count = 1000 }`},
	},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		q, _ := row.Userdata[*queue](c.L.Get(1))
		return c.Push(lua.LString("queue " + q.q.Interface().Name() + "/" + q.q.Name()))
	}}},
}

// selfQueue returns self; it raises if the method does not apply to the queue's direction.
func selfQueue(c *call, rx bool) *queue {
	q := receiver[*queue](c, "queue")
	q.check(c)
	if q.q.Rx() != rx {
		want := map[bool]string{true: "receive", false: "transmit"}
		c.Raise("'%s' is for %s queues, and %s of %s is a %s queue", c.Name, want[rx], q.q.Name(),
			q.q.Interface().Name(), want[!rx])
	}
	return q
}

// check raises if the queue was handed over to another task, or deleted.
func (q *queue) check(c *call) {
	if q.gone == "" && q.q.Deleted() {
		c.Raise("queue %s was deleted", q.q.Name())
	}
	if q.gone != "" {
		c.Raise("queue %s %s", q.q.Name(), q.gone)
	}
	q.of.check(c)
}

// handOver passes the queue to a task that has not started.
func (q *queue) handOver(c *call, t *task.Task) {
	q.check(c)
	c.Check(q.q.Adopt(t))
	q.gone = fmt.Sprintf("was handed to task %s at %s", t.Name(), c.where())
	q.of.handedOver(q.q, q.gone).end()
}

// queueDelete implements q:delete(): the operation of the deletion.
func queueDelete(c *call) int {
	q := receiver[*queue](c, "queue")
	q.check(c)
	op, err := q.q.Delete()
	if err != nil {
		return c.refuse(err)
	}
	q.gone = "was deleted at " + c.where()
	q.of.handedOver(q.q, q.gone).end()
	return c.Push(c.rt.newOp(op))
}

// queueOnBurst implements q:on_burst(fn, {sample, policy}).
func queueOnBurst(c *call) int {
	q := selfQueue(c, true)
	return c.onBurst(q.of, q.q, q.q.Tap, "on_burst")
}

// getter is the tap of get_burst, with the bursts received while the script waited for other events.
type getter struct {
	tap     *session.Tap // created by the first call
	waiting []*session.Burst
	over    bool
}

func (g *getter) deliver(rt *Runtime, _ *lua.LState, it *task.Item) {
	b := rt.leases.Take(it)
	if g.over {
		_ = b.Free() // fails if the session is closed
		return
	}
	g.waiting = append(g.waiting, b)
}

// end closes the tap and frees bursts that were not requested.
func (g *getter) end() {
	g.over = true
	if g.tap != nil {
		g.tap.Close()
	}
	for _, b := range g.waiting {
		_ = b.Free()
	}
	g.waiting = nil
}

// queueGetBurst implements q:get_burst{timeout_us}: the next burst, or nil, "NOT_READY", text.
func queueGetBurst(c *call) int {
	q := selfQueue(c, true)
	return c.getBurst(q.of, q.of.getter(q.q), "queue "+q.q.Name(), func(g *getter) (*session.Tap, error) {
		return q.q.Tap(c.rt.Task, g, session.TapOptions{Name: "get_burst", Policy: session.Wait})
	})
}

// getBurst is get_burst of a queue or connection; the first call creates the tap.
func (c *call) getBurst(o *RunningSession, g *getter, what string, tap func(*getter) (*session.Tap, error)) int {
	opts := c.options(1)
	until := task.Never
	if opts.Has("timeout_us") {
		until = c.rt.Task.Now() + opts.Whole("timeout_us", 0, 0, row.MaxInt/1000)*1000
	}
	c.canWait()
	o.running(c)
	if g.tap == nil {
		t, err := tap(g)
		c.Check(err)
		g.tap = t
	}
	b := g.next(c, until)
	if b == nil {
		return c.Fail(fmt.Errorf("%s: %w", what, session.ErrNotReady))
	}
	return c.Push(c.rt.newBurst(b, o))
}

// next returns the next burst, or nil at the time until.
func (g *getter) next(c *call, until int64) *session.Burst {
	if len(g.waiting) == 0 {
		it := c.waitFor(until, func(it *task.Item) bool { return it.Target == any(g) })
		if it != nil {
			return c.rt.leases.Take(it)
		}
	}
	if len(g.waiting) == 0 {
		return nil
	}
	b := g.waiting[0]
	g.waiting = g.waiting[1:]
	return b
}

// queueDrain implements q:drain{timeout}: true after all packets were sent; nil, "NOT_READY", text at the timeout.
func queueDrain(c *call) int {
	q := selfQueue(c, false)
	timeout, limited := c.options(1).Seconds("timeout")
	q.of.running(c)
	c.canWait()
	until := c.rt.Task.In(timeout)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		n, endless, err := q.q.Waiting()
		c.Check(err)
		now := c.rt.Task.Now()
		switch {
		case n == 0:
			return c.Push(lua.LTrue)
		case endless && !limited:
			c.Raise("queue %s sends without end: give 'drain' a timeout, or 'transmit' a count", q.q.Name())
		case limited && now >= until:
			return c.Fail(fmt.Errorf("packets wait to be sent: %w", session.ErrNotReady))
		}
		next := now + pause
		if limited {
			next = min(next, until)
		}
		c.waitFor(next, func(*task.Item) bool { return false })
	}
}

// Poll interval of the transmit queue in ns; it doubles from firstLook to lastLook.
const (
	firstLook = int64(50 * time.Microsecond)
	lastLook  = int64(2 * time.Millisecond)
)

// queueFlush implements q:flush(): it discards packets waiting in a receive queue and returns their number.
func queueFlush(c *call) int {
	n, err := selfQueue(c, true).q.Flush()
	c.Check(err)
	return c.Push(lua.LNumber(n))
}

// queueAlloc implements q:alloc(n): a burst to fill and send; nil, status, text if buffers are exhausted.
func queueAlloc(c *call) int {
	q := selfQueue(c, false)
	return c.alloc(q.q, q.of)
}

func (c *call) alloc(q *session.Queue, o *RunningSession) int {
	n := q.BatchSize()
	if c.Arg(1) != lua.LNil {
		n = int(c.Whole(1, "packets", 1, int64(n)))
	}
	b, err := q.Alloc(c.rt.leases, n)
	if err != nil {
		return c.Fail(err)
	}
	return c.Push(c.rt.newBurst(b, o))
}

// queueSend implements q:send(b): it consumes the burst if it returns true.
func queueSend(c *call) int {
	q := selfQueue(c, false)
	return c.sendBurst(q.of, q.q.Send)
}

func (c *call) sendBurst(o *RunningSession, send func(*session.Burst) error) int {
	b, ok := row.Userdata[*burst](c.Arg(1))
	if !ok {
		c.Wanted(1, "burst")
	}
	if !b.b.Live() {
		c.ArgError(1, "%s", b.gone())
	}
	o.running(c)
	if err := send(b.b); err != nil {
		return c.Fail(err)
	}
	b.consumed(c.L, "sent")
	return c.Push(lua.LTrue)
}

// queuePace implements q:pace{rate, pps}; an absent limit is unlimited. A limit of 0 raises, as it would mean unlimited. With follow =
// "rx_timestamp" packets keep the intervals of their receive times, divided by speed.
func queuePace(c *call) int {
	q := selfQueue(c, false)
	o := c.options(1)
	if o.Has("follow") || o.Has("speed") {
		c.Check(q.q.Follow(o.followed()))
		return 0
	}
	rate, pps := o.Rate("rate"), o.Number("pps", 0)
	for key, v := range map[string]float64{"rate": rate, "pps": pps} {
		if o.Has(key) && (v == 0 || math.IsInf(v, 0)) {
			o.Wrong(key, "%g is not a valid limit: leave it out for none, and transmit{template = false} to send nothing", v)
		}
	}
	c.Check(q.q.Pace(rate, pps))
	return 0
}

// followed reads the speed of q:pace{follow, speed}.
func (o *options) followed() float64 {
	o.Need("follow")
	if what := o.Str("follow", ""); what != "rx_timestamp" {
		o.Wrong("follow", "%q: only rx_timestamp can be followed", what)
	}
	for _, key := range []string{"pps", "rate"} {
		if o.Has(key) {
			o.Wrong(key, "excludes follow: a queue keeps the gaps of its packets, or a rate")
		}
	}
	speed := o.Number("speed", 1)
	if !(speed > 0) || math.IsInf(speed, 0) {
		o.Wrong("speed", "%g is not a valid speed: a factor above 0 expected", speed)
	}
	return speed
}

// queueTransmit implements q:transmit{template, count}: the queue sends by itself, without a count until it is stopped.
func queueTransmit(c *call) int {
	q := selfQueue(c, false)
	o := c.options(1)
	q.of.unfinished(c)
	if v := o.Get("template"); v == lua.LFalse {
		c.Check(q.q.StopTransmit())
		return 0
	}
	tpl, ok := row.Userdata[*template](o.Get("template"))
	if !ok {
		o.Wrong("template", "a template expected (q:template{...}), got %s", row.Describe(o.Get("template")))
	}
	if _, regions := q.room(); regions > 1 {
		c.Raise("queue %s splits its packets over %d memory regions, which a template can't fill: use q:alloc and q:send", q.q.Name(), regions)
	}
	count := uint64(0)
	if o.Has("count") {
		count = uint64(o.Whole("count", 0, 1, row.MaxInt))
	}
	if i := q.q.Interface(); tpl.broadcast && (spec.OfKernel(i.Engine()) || i.Engine() == schema.EngineDPDK) {
		c.rt.Log("warn", fmt.Sprintf("interface %s: the template that is sent has no eth_dst, so that its frames go to all hosts on the link: "+
			"hint: eth_dst = \"auto\", or an Ethernet address", i.Name()), nil)
	}
	c.Check(q.q.Transmit(tpl.t, count))
	return 0
}
