package bindings

import (
	"fmt"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/session"
)

// stage is native code in a pipe. Cold.
type stage struct {
	st *session.Stage
	of *RunningSession
}

func (*stage) LuaType() string { return "stage" }

var stageType = &typeDef{
	name: "stage",
	self: "st",
	doc: `a stage
		A step of a pipe, made by 's:filter', 's:count', 's:sample', 's:gaps', 's:convert', 's:copy', 's:rewrite', 's:reorder', 's:heaps', 'k:stage' and the writers.`,
	fields: []field{
		{"error", `-> string | nil
			A writer's first error, or nil.
			> print(w.error)`},
		{"kind", `-> string: filter, count, sample, gaps, forward, convert, copy, rewrite, kernel, reorder, heaps, share, tap, pcap, raw, blocks or s3
			What the stage does.
			> print(w.kind)    -- pcap`},
		{"name", `-> string
			The name of its line in the ledger.
			> print(w.name)`},
		{"path", `-> string | nil
			The file that a writer writes or wrote last, of the first folder that has one, or the socket of a share stage; nil where there is none.
			> print(w.path)`},
		{"paths", `-> string[]: of each folder
			The files that a writer writes or wrote last.
			> for _, path in ipairs(w.paths) do print(path) end`},
		{"readers", `-> table[] | nil
			The programs that are attached to a share stage, with 'pid', 'lent' (blocks that it has), 'blocks' (lent to it so far) and 'missed'; nil for other stages.
			> local live = s:share{ name = "live" }
			> print(#live.readers)    -- 0`},
	},
	is: func(self any) []string {
		switch st := self.(*stage).st; {
		case st.Kind() == session.KindS3:
			return []string{"a writer", "a writer of objects"}
		case st.Out() != nil:
			return []string{"a reorder stage"}
		case st.Writer():
			return []string{"a writer"}
		}
		return nil
	},
	get: func(rt *Runtime, _ *lua.LState, self any, key lua.LValue) lua.LValue {
		st := self.(*stage).st
		switch key {
		case lua.LString("name"):
			return lua.LString(st.Name())
		case lua.LString("kind"):
			return lua.LString(st.Kind())
		case lua.LString("path"):
			if paths := st.Paths(); len(paths) > 0 {
				return lua.LString(paths[0])
			}
			if path := st.SharePath(); path != "" {
				return lua.LString(path)
			}
			return lua.LNil
		case lua.LString("paths"):
			return value.List(rt.root, st.Paths())
		case lua.LString("readers"):
			return rt.readers(st)
		case lua.LString("error"):
			if err := st.Error(); err != nil {
				return lua.LString(err.Error())
			}
			return lua.LNil
		}
		return nil
	},
	methods: []entry{
		{"close", stageClose, `Of a writer of objects: uploads what it has, waits for that, at most 'end_timeout', and gives its staging memory back. Packets that come later are
			dropped as 'stopped'.
			> local up = s:write_s3{ bucket = "data", endpoint = "http://127.0.0.1:1",
			>   access_key = "a", secret_key = "b", attempts = 1 }
			> up:close()`},
		{"get_burst", stageGetBurst, row.GetBurstRows + `Of a reorder stage the next aggregate, of a copy stage the next copy, of a kernel's the next burst that it is done with, as 'q:get_burst' does of a queue.
			> s:start()
			> local a = blocks:get_burst{ timeout_us = 1000 }`},
		{"on_burst", stageOnBurst, row.OnBurstRows + `-> stage: itself
			Of a reorder stage: has a function called with its aggregates, one in a burst, as 'q:on_burst' does of a queue. A copy stage passes its copies, a kernel's stage
			what it has processed.
			> blocks:on_burst(function(a) print(a.batch_id, a.missing) end)`},
		{"write", stageWrite, `- b burst: which the script keeps; its packets are read-only from then on
			. comment? string: for each of its packets, in a pcapng; 1 to 200 bytes
			. prefix? string: names the files of the burst's packets, or its objects, PREFIX_0 for the first; of a writer with a file per packet or of objects
			. packet_data_offset integer = 0, bytes: left out at the front of each packet; with 'prefix'
			-> op | failure
			Of a writer: takes the burst by reference, in a pipe or not; nil, '"NO_SPACE_AVAILABLE"', text while its ring is full.
			> local op = assert(w:write(b))`}},
	meta: []entry{{name: "__tostring", fn: func(c *call) int {
		st, _ := row.Userdata[*stage](c.L.Get(1))
		return c.Push(lua.LString(st.st.Kind() + " " + st.st.Name()))
	}}},
}

func (c *call) pushStage(st *session.Stage, o *RunningSession, err error) int {
	c.Check(err)
	return c.Push(c.rt.newObject(&stage{st: st, of: o}))
}

// sessionShare implements s:share{}.
func sessionShare(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	var sh session.ShareOptions
	sh.Path, sh.Mode = opts.Str("path", ""), opts.socketMode()
	sh.Lend, sh.Readers = int(opts.Whole("lend", 4, 1, session.MaxLend)), int(opts.Whole("readers", 4, 1, session.MaxReaders))
	sh.Policy, sh.Header = opts.Policy(session.Drop), opts.header()
	sh.Timeout = time.Second
	if after, given := opts.Seconds("timeout"); given {
		sh.Timeout = time.Duration(after)
	}
	sh.Log = c.rt.Log
	name := opts.Str("name", "")
	if strings.ContainsRune(name, '/') {
		opts.Wrong("name", "%q has a '/', and the name is that of a file: set 'path'", name)
	}
	st, err := o.s.Share(name, sh)
	return c.pushStage(st, o, err)
}

// readers returns the readers of a share stage as a list of tables; nil for other stages.
func (rt *Runtime) readers(st *session.Stage) lua.LValue {
	if st.Kind() != session.KindShare {
		return lua.LNil
	}
	list := rt.root.NewTable()
	for _, r := range st.Readers() {
		t := rt.root.NewTable()
		for key, n := range map[string]int{"pid": r.PID, "lent": r.Lent, "blocks": r.Blocks, "missed": r.Missed} {
			t.RawSetString(key, lua.LNumber(n))
		}
		list.Append(t)
	}
	return list
}

// selfOut returns self, a stage that produces aggregates, and the queue that delivers them.
func selfOut(c *call) (*stage, *session.Queue) {
	st := receiver[*stage](c, "stage")
	st.of.check(c)
	if st.st.Out() == nil {
		c.Raise("'%s' is for stages that make bursts of their own (s:reorder, s:heaps, s:copy, k:stage), and %s is a %s", c.Name, st.st.Name(), st.st.Kind())
	}
	return st, st.st.Out()
}

// stageOnBurst implements st:on_burst(fn, {sample, policy}) for a stage's aggregates.
func stageOnBurst(c *call) int {
	st, q := selfOut(c)
	return c.onBurst(st.of, q, q.Tap, "on_burst")
}

// stageGetBurst implements st:get_burst{timeout_us}: the next aggregate, or nil, "NOT_READY", text.
func stageGetBurst(c *call) int {
	st, q := selfOut(c)
	return c.getBurst(st.of, st.of.getter(q), "stage "+st.st.Name(), func(g *getter) (*session.Tap, error) {
		return q.Tap(c.rt.Task, g, session.TapOptions{Name: "get_burst", Policy: session.Wait})
	})
}

func sessionStage(c *call) int {
	o := selfSession(c)
	st, err := o.s.Stage(c.Str(1, "stage name"))
	return c.pushStage(st, o, err)
}

// sessionFilter implements s:filter{name, where | match | pcap}.
func sessionFilter(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.ExactlyOne("match", "pcap", "where")
	cond := session.Condition{Where: opts.Str("where", ""), Pcap: opts.Str("pcap", "")}
	if f := opts.format(); f != nil {
		cond.Fields = f.Fields()
		if cond.Where == "" {
			opts.Wrong("format", "it is for the fields of 'where'")
		}
	}
	if opts.Has("match") {
		v, err := value.Of(opts.Get("match"), 0)
		if err == nil {
			cond.Match, err = parseMatch(v)
		}
		if err != nil {
			opts.Wrong("match", "%v", err)
		}
	}
	st, err := o.s.Filter(opts.Str("name", ""), cond)
	return c.pushStage(st, o, err)
}

func sessionCount(c *call) int {
	o := selfSession(c)
	st, err := o.s.Count(c.options(1).Str("name", ""))
	return c.pushStage(st, o, err)
}

// sessionSample implements s:sample{name, every}: it passes one of every N bursts.
func sessionSample(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("every")
	st, err := o.s.Sample(opts.Str("name", ""), int(opts.Whole("every", 1, 1, 1<<31-1)))
	return c.pushStage(st, o, err)
}

// sessionGaps implements s:gaps{format, counter, by, window, jump}: by default the format's sequence number, and its stream.
func sessionGaps(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	f := opts.format()
	g := session.GapsOptions{By: opts.Str("by", ""), Fields: f.With(nil), Window: int(opts.Whole("window", 0, 1, session.MaxGapWindow)),
		Jump: uint64(opts.Whole("jump", 0, 1, row.MaxInt))}
	if f != nil && f.Declared != nil && f.Declared.Spec.Sequence != "" && !opts.Has("counter") {
		opts.Table.RawSetString("counter", lua.LString(f.Declared.Spec.Sequence))
		if per := f.Declared.Spec.Per; len(per) == 1 && g.By == "" {
			g.By = per[0]
		} else if len(per) > 0 && g.By == "" {
			opts.Wrong("format", "it numbers the packets of each '%s' separately: give one number for them as option 'by'", strings.Join(per, "' and '"))
		}
	}
	opts.Need("counter")
	g.Counter, g.CounterName = opts.placed("counter", f)
	if number, err := session.CompileNumber(g.By, g.Fields); err == nil { // the stage reports the error
		g.ByText = func(v uint64) string { return luaformat.FieldText(g.By, v, number.Signed) }
	}
	st, err := o.s.Gaps(opts.Str("name", ""), g)
	return c.pushStage(st, o, err)
}

// sessionPipe implements s:pipe(q | {q...}, stage..., q | writer): every burst of the sources passes the stages. A transmit queue at the end
// forwards it, and blocks the source while its ring is full.
func sessionPipe(c *call) int {
	o := selfSession(c)
	sources := c.sources(1, o)
	if c.Count() < 2 {
		c.ArgError(2, "a stage, a writer or a transmit queue expected")
	}
	var stages []*session.Stage
	for n := 2; n <= c.Count(); n++ {
		if st, ok := row.Userdata[*stage](c.Arg(n)); ok {
			if st.of != o {
				c.ArgError(n, "stage %s belongs to another session", st.st.Name())
			}
			stages = append(stages, st.st)
			continue
		}
		q, ok := row.Userdata[*queue](c.Arg(n))
		if !ok {
			c.Wanted(n, "stage, writer or transmit queue")
		}
		if q.check(c); n != c.Count() || q.q.Rx() {
			c.ArgError(n, "a queue at the end of a pipe is a transmit queue, and the last argument")
		}
		st, err := o.s.Forward("", q.q, session.Wait)
		c.Check(err)
		stages = append(stages, st)
	}
	_, err := o.s.Pipe(sources, stages...)
	c.Check(err)
	return 0
}

// sources reads a receive queue or a list of them.
func (c *call) sources(n int, o *RunningSession) []*session.Queue {
	var list []*session.Queue
	add := func(v lua.LValue) {
		if st, ok := row.Userdata[*stage](v); ok && st.of == o && st.st.Out() != nil {
			list = append(list, st.st.Out())
			return
		}
		q, ok := row.Userdata[*queue](v)
		if !ok {
			c.ArgError(n, "receive queue, or a list of them, expected, got %s", row.Describe(v))
		}
		if q.check(c); !q.q.Rx() || q.of != o {
			c.ArgError(n, "queue %s is not a receive queue of this session", q.q.Name())
		}
		list = append(list, q.q)
	}
	if t, ok := c.Arg(n).(*lua.LTable); ok {
		t.ForEach(func(_, v lua.LValue) { add(v) })
		if len(list) == 0 {
			c.ArgError(n, "the list of queues is empty")
		}
		return list
	}
	add(c.Arg(n))
	return list
}

func (c *call) where() string {
	if dbg, ok := c.L.GetStack(1); ok {
		if _, err := c.L.GetInfo("Sl", dbg, lua.LNil); err == nil {
			return fmt.Sprintf("%s:%d", dbg.Source, dbg.CurrentLine)
		}
	}
	return "?"
}
