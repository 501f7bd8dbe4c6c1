package bindings

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// sessionHandle is a session in Lua. Hot: hand-written; its configuration is cold (config.go).
type sessionHandle struct {
	o      *Opened
	config lua.LValue
}

func (*sessionHandle) luaType() string { return "session" }

var sessionType = &typeDef{
	name:   "session",
	fields: []string{"config", "name"},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		h := self.(*sessionHandle)
		switch key {
		case lua.LString("name"):
			return lua.LString(h.o.name)
		case lua.LString("config"):
			if h.config == nil {
				h.config = rt.configuration(h.o.s.Config())
			}
			return h.config
		}
		return nil
	},
	methods: []entry{
		{"after", sessionAfter}, {"at", sessionAt}, {"clock", sessionClock}, {"close", sessionClose},
		{"convert", sessionConvert}, {"count", sessionCount}, {"every", sessionEvery}, {"filter", sessionFilter}, {"interface", sessionInterface},
		{"interfaces", sessionInterfaces}, {"log", sessionLog}, {"measure", sessionMeasure}, {"metric", sessionMetric},
		{"pipe", sessionPipe}, {"region", sessionRegion}, {"reorder", sessionReorder}, {"report", sessionReport}, {"run", sessionRun},
		{"rx_queue", sessionQueue(true)}, {"rx_queues", sessionQueues(true)}, {"sample", sessionSample},
		{"stage", sessionStage}, {"start", sessionStart}, {"stats", sessionStats}, {"stop", sessionStop},
		{"threshold", sessionThreshold}, {"tx_queue", sessionQueue(false)},
		{"tx_queues", sessionQueues(false)}, {"write_blocks", sessionWrite(session.KindBlocks)},
		{"write_pcap", sessionWrite(session.KindPcap)}, {"write_raw", sessionWrite(session.KindRaw)}, {"write_s3", sessionWriteS3},
	},
	meta: []entry{{"__tostring", func(c *call) int {
		h, _ := userdata[*sessionHandle](c.L.Get(1))
		return c.push(lua.LString("session " + h.o.name))
	}}},
}

// selfSession is self, not closed.
func selfSession(c *call) *Opened {
	h := receiver[*sessionHandle](c, "session")
	h.o.check(c)
	return h.o
}

func sessionInterface(c *call) int {
	o := selfSession(c)
	i, err := o.s.Interface(c.str(1, "interface name"))
	c.check(err)
	return c.push(c.rt.newObject(&iface{i, o}))
}

func sessionInterfaces(c *call) int {
	o := selfSession(c)
	t := c.L.NewTable()
	for _, i := range o.s.Interfaces() {
		t.Append(c.rt.newObject(&iface{i, o}))
	}
	return c.push(c.rt.shown(t))
}

// interfaceName reads an interface or its name; the only interface where the argument is absent.
func (c *call) interfaceName(n int, o *Opened) string {
	if i, ok := userdata[*iface](c.arg(n)); ok {
		return i.i.Name()
	}
	if list := o.s.Interfaces(); c.arg(n) == lua.LNil && len(list) == 1 {
		return list[0].Name()
	}
	return c.str(n, "interface or its name")
}

// sessionQueue is s:rx_queue(interface, id | name) and s:tx_queue; the first queue where the second
// argument is absent.
func sessionQueue(rx bool) function {
	return func(c *call) int {
		o := selfSession(c)
		name := c.interfaceName(1, o)
		sel := ""
		switch v := c.arg(2).(type) {
		case lua.LNumber:
			sel = strconv.FormatInt(c.whole(2, "queue id", 0, 1<<16), 10)
		case lua.LString:
			sel = string(v)
		case *lua.LNilType:
			i, err := o.s.Interface(name)
			c.check(err)
			list := i.TxQueues()
			if rx {
				list = i.RxQueues()
			}
			if len(list) != 1 {
				c.argError(2, "interface %s has %d such queues: name one, or give its id", name, len(list))
			}
			return c.push(c.rt.newLasting(o.queue(list[0])))
		default:
			c.wanted(2, "queue id or name")
		}
		find := o.s.TxQueue
		if rx {
			find = o.s.RxQueue
		}
		q, err := find(name, sel)
		c.check(err)
		return c.push(c.rt.newLasting(o.queue(q)))
	}
}

// sessionQueues is s:rx_queues(interface) and s:tx_queues(interface): all of them.
func sessionQueues(rx bool) function {
	return func(c *call) int {
		o := selfSession(c)
		i, err := o.s.Interface(c.interfaceName(1, o))
		c.check(err)
		list := i.TxQueues()
		if rx {
			list = i.RxQueues()
		}
		t := c.L.NewTable()
		for _, q := range list {
			t.Append(c.rt.newLasting(o.queue(q)))
		}
		return c.push(c.rt.shown(t))
	}
}

// sessionRegion is s:region(name): a table of what became of the region.
func sessionRegion(c *call) int {
	o := selfSession(c)
	r, err := o.s.Region(c.str(1, "region name"))
	c.check(err)
	info, err := r.Info()
	c.check(err)
	t := c.L.NewTable()
	t.RawSetString("name", lua.LString(r.Name()))
	t.RawSetString("kind", lua.LString(r.Kind()))
	for name, v := range map[string]int{"num_bufs": info.NumBufs, "buf_size": info.BufSize, "free_bufs": info.FreeBufs,
		"stride": info.Stride, "group": info.Group} {
		t.RawSetString(name, lua.LNumber(v))
	}
	t.RawSetString("huge", lua.LBool(info.Huge))
	c.rt.strict(t, func(key string) string {
		return unknown("field", key, []string{"buf_size", "free_bufs", "group", "huge", "kind", "name", "num_bufs", "stride"}) + " of region"
	})
	return c.push(t)
}

// sessionClock is s:clock(): ns since the session's start, and the clock's name.
func sessionClock(c *call) int {
	o := selfSession(c)
	name := "realtime"
	if o.s.Virtual() {
		name = "virtual"
	}
	c.L.Push(lua.LNumber(o.s.Now() - o.s.StartTime()))
	c.L.Push(lua.LString(name))
	return 2
}

func sessionReport(c *call) int {
	return c.push(c.rt.shown(c.rt.list(selfSession(c).s.Report())))
}

func sessionLog(c *call) int {
	c.log(map[string]any{"session": selfSession(c).name})
	return 0
}

func sessionMetric(c *call) int {
	o := selfSession(c)
	name, v := c.str(1, "metric name"), c.number(2, "number")
	if of, _, dotted := strings.Cut(name, "."); dotted && o.accounts(of) {
		c.argError(1, "the ledger has the figures of %s: choose a name that does not begin with it", of)
	}
	c.check(o.s.Metrics().Set(name, v))
	return 0
}

// accounts says whether the ledger has figures below that name.
func (o *Opened) accounts(name string) bool {
	if name == "process" {
		return true
	}
	_, noInterface := o.s.Interface(name)
	_, noStage := o.s.Stage(name)
	return noInterface == nil || noStage == nil
}

// sessionThreshold is s:threshold(expr, {after, abort}).
func sessionThreshold(c *call) int {
	o := selfSession(c)
	opts := c.options(2, "abort", "after")
	after, _ := opts.seconds("after")
	t := stats.Threshold{Expr: c.str(1, "condition"), After: float64(after) / 1e9, Abort: opts.bool("abort", false)}
	err := o.misnamed(c.rt, t)
	if err == nil {
		err = o.s.Thresholds().Add(t)
	}
	if err != nil {
		c.argError(1, "%v", err)
	}
	return 0
}

// misnamed finds figures that the ledger will never have, of objects that it has: said now, and not after a long run.
// Other names may yet come, from stages and metrics.
func (o *Opened) misnamed(rt *Runtime, t stats.Threshold) error {
	var alone stats.Thresholds
	if err := alone.Add(t); err != nil {
		return err
	}
	for _, r := range alone.Check(o.Ledger()) {
		for _, missing := range r.Missing { // each begins with the name
			name, _, _ := strings.Cut(missing, " ")
			if of, _, dotted := strings.Cut(name, "."); dotted && o.accounts(of) && !stats.OfSome(name) {
				return fmt.Errorf("threshold %q: %s", t.Expr, missing)
			}
		}
	}
	if o.Started() {
		return o.stray(rt, &alone)
	}
	return nil
}

// stray finds thresholds that no run will meet, at its start or when they are added: with names that the ledger does not have, though it has one like them.
// Metrics get their values while it runs; of one whose name has dots, as those of the ledger's figures, a line is logged.
func (o *Opened) stray(rt *Runtime, thresholds *stats.Thresholds) error {
	l := o.Ledger()
	for _, r := range thresholds.Check(l) {
		for _, missing := range r.Missing {
			name, _, _ := strings.Cut(missing, " ")
			switch near := suggest.Nearest(name, l.Names()); {
			case stats.OfSome(name) || near == "" && !strings.Contains(name, "."):
			case strings.Contains(near, "."):
				return fmt.Errorf("threshold %q: %s", r.Expr, missing)
			default:
				rt.Log("warn", fmt.Sprintf("threshold %q: %s; hint: without a metric of that name it will not hold", r.Expr, missing), nil)
			}
		}
	}
	return nil
}

// sessionClose ends the session in order and frees all that it holds.
func sessionClose(c *call) int {
	h := receiver[*sessionHandle](c, "session")
	if h.o.isClosed() {
		return 0
	}
	c.ownSession(h.o)
	err := h.o.finish("closed by the script", c.rt.serveReady(c.L))
	c.rt.forget(h.o)
	c.check(err)
	return 0
}

// ownSession raises where the call belongs to the main chunk of the task that opened the session.
func (c *call) ownSession(o *Opened) {
	if c.rt.Task != o.owner {
		c.raise("'%s' belongs to the task that opened the session", c.name)
	}
	if c.rt.place != inMain || c.L != c.rt.current {
		c.raise("'%s' belongs to the main chunk; a handler calls s:stop(reason), and s:run ends the session", c.name)
	}
}
