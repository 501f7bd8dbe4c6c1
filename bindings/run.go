package bindings

import (
	"errors"
	"fmt"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/bindings/value"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

const (
	// lookEvery is the interval at which a run compares counters with its limits; lookSoon is the interval after a burst.
	lookEvery = 10 * time.Millisecond
	lookSoon  = time.Millisecond
	// idleAfter is how long counters may stand still before a run on the virtual clock ends.
	idleAfter = time.Second
)

// limits are the conditions that end a run.
type limits struct {
	until          int64 // on the task's clock
	packets, bytes uint64
	start          *stats.Ledger // baseline of the counts
	drained        bool          // at the previous check, with nothing left to replay
	moved          uint64        // virtual clock: counter at its last change
	movedAt        int64
}

// sessionStart implements s:start(): packets move from then on.
func sessionStart(c *call) int {
	o := selfSession(c)
	c.ownSession(o)
	o.unfinished(c)
	if o.Started() {
		c.Raise("session %s has started already", o.name)
	}
	c.Check(o.begin(c.rt))
	return 0
}

// sessionStop implements s:stop(reason). In the main chunk it ends the session in order and returns the summary; elsewhere it requests the end,
// which s:run or the end of the script performs.
func sessionStop(c *call) int {
	o := selfSession(c)
	reason := c.OptionalStr(1, "reason", "stopped by the script")
	if c.rt.Task != o.owner || c.rt.place != inMain || c.L != c.rt.threads.Current() || !o.Started() {
		o.s.Stop(reason)
		return 0
	}
	o.end(c, reason)
	return c.Push(c.summary(o))
}

// sessionRun implements s:run{seconds, bytes, packets, from, to}: it starts the session, serves handlers until a limit is reached or a stop is
// requested, ends the session in order and returns the summary.
func sessionRun(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	c.ownSession(o)
	c.canWait()
	o.unfinished(c)
	if opts.Has("from") {
		at, err := c.rt.timestamp(opts.Get("from"))
		if err != nil {
			opts.Wrong("from", "%v", err)
		}
		c.waitFor(int64(at), func(*task.Item) bool { _, stopping := o.s.Stopping(); return stopping })
	}
	lim := opts.limits(c)
	lim.start = o.s.Ledger() // taken before the start, to count the first packets
	c.Check(o.begin(c.rt))
	for _, text := range o.s.Warnings() {
		c.rt.Log("warn", text, nil)
	}
	defer o.abandon(c.rt)
	reason := o.serve(c, lim)
	o.end(c, reason)
	return c.Push(c.summary(o))
}

// abandon ends the session when an error propagates through a run: bursts queued for handlers are dropped and counted, files are closed.
func (o *RunningSession) abandon(rt *Runtime) {
	r := recover()
	if r == nil {
		return
	}
	reason := "an error in the script"
	if e, ok := r.(*lua.ApiError); ok {
		if text, ok := e.Object.(lua.LString); ok {
			reason += ": " + string(text)
		}
	}
	if cause := rt.interrupted(); cause != nil {
		reason = cause.Error()
	}
	_ = o.finish(reason, nil) // the summary keeps the writers' errors
	panic(r)
}

func (o *options) limits(c *call) *limits {
	lim := &limits{until: task.Never}
	if ns, given := o.Seconds("seconds"); given {
		lim.until = c.rt.Task.In(ns)
	}
	if o.Has("to") {
		at, err := c.rt.timestamp(o.Get("to"))
		if err != nil {
			o.Wrong("to", "%v", err)
		}
		lim.until = min(lim.until, int64(at))
	}
	lim.packets = uint64(o.Whole("packets", 0, 1, row.MaxInt))
	lim.bytes = uint64(o.Size("bytes"))
	return lim
}

// serve runs handlers until the session must end, and returns the reason.
func (o *RunningSession) serve(c *call, lim *limits) string {
	rt := c.rt
	replays, _ := o.s.Replays()
	looks := replays || lim.packets > 0 || lim.bytes > 0 || o.s.Thresholds().Aborts() || o.s.StopsWhenFull()
	next, now := int64(0), rt.Task.Look()
	lim.movedAt = now
	for ; ; now = rt.Task.Seen() {
		if reason, ok := o.s.Stopping(); ok {
			return reason
		}
		looks = looks || o.s.UsesDevices() // a handler may start a kernel
		if looks && now >= next {
			if reason := o.look(lim, now); reason != "" {
				return reason
			}
			next = o.nextLook(now)
		}
		if now >= lim.until {
			return "time is up"
		}
		wait := lim.until
		if looks {
			wait = min(wait, next)
		}
		it, err := rt.Task.WaitAgain(wait)
		switch {
		case errors.Is(err, task.ErrIdle):
			return "nothing more can happen"
		case err != nil:
			row.RaiseError(c.L, err)
		case it != nil:
			burst := it.Kind == task.Burst
			if burst {
				next = min(next, now+int64(lookSoon)) // counters may reach a limit
			}
			if rt.dispatch(c.L, it); rt.stopped != "" {
				return rt.stopped
			}
			if !burst { // burst handlers have read the clock already
				rt.Task.Look()
			}
			c.Check(rt.interrupted())
		}
	}
}

// nextLook returns the next time to check the counters. On the virtual clock it skips gaps in a capture, however long.
func (o *RunningSession) nextLook(now int64) int64 {
	next := now + int64(lookEvery)
	if o.replaying() {
		if event := o.s.NextTime(); event != task.Never {
			return max(next, event)
		}
	}
	return next
}

// replaying reports whether packets of a capture remain to be replayed on the virtual clock.
func (o *RunningSession) replaying() bool {
	replays, over := o.s.Replays()
	return o.s.Virtual() && replays && !over
}

// look compares the counters with the limits and the aborting thresholds; it returns the reason to stop, or "".
func (o *RunningSession) look(lim *limits, now int64) string {
	if err := o.s.DeviceError(); err != nil {
		return err.Error()
	}
	l := o.s.Ledger()
	packets, bytes := received(l)
	p0, b0 := received(lim.start)
	did := "received"
	if !receives(l) {
		did = "sent"
	}
	switch {
	case lim.packets > 0 && packets-p0 >= lim.packets:
		return fmt.Sprintf("%d packets were %s", lim.packets, did)
	case lim.bytes > 0 && bytes-b0 >= lim.bytes:
		return fmt.Sprintf("%d bytes were %s", lim.bytes, did)
	}
	if r, violated := o.s.Thresholds().Abort(l); violated {
		o.mu.Lock()
		o.failed = []string{r.String()}
		o.mu.Unlock()
		return "threshold " + r.String()
	}
	if full := fullWriter(l); full != "" {
		return full + " has as much as it was to write"
	}
	if o.exhausted(l, lim) {
		return "source exhausted"
	}
	if o.s.Virtual() && lim.until == task.Never && !o.replaying() {
		if packets != lim.moved {
			lim.moved, lim.movedAt = packets, now
		} else if now-lim.movedAt > int64(idleAfter) {
			return "nothing more was " + did
		}
	}
	return ""
}

// fullWriter returns the name of a writer with when_full = "stop" whose quota is used up, or "".
func fullWriter(l *stats.Ledger) string {
	for i := range l.Lines {
		if l.Lines[i].Dropped.Get("enough") > 0 {
			return l.Lines[i].Name
		}
	}
	return ""
}

// exhausted reports whether all captures were replayed and the session is quiet at two consecutive checks: a packet moving between queues is
// counted in neither.
func (o *RunningSession) exhausted(l *stats.Ledger, lim *limits) bool {
	replays, over := o.s.Replays()
	was := lim.drained
	lim.drained = replays && over && o.s.Quiet(l)
	return was && lim.drained
}

// received sums the packets delivered by the session's receive queues, or sent, if it has none.
func received(l *stats.Ledger) (packets, bytes uint64) {
	kind := stats.Tx
	if receives(l) {
		kind = stats.Rx
	}
	for i := range l.Lines {
		if x := &l.Lines[i]; x.Kind == kind {
			packets += x.Out
			bytes += x.OutBytes
		}
	}
	return packets, bytes
}

// receives reports whether a session has receive queues.
func receives(l *stats.Ledger) bool {
	return slices.ContainsFunc(l.Lines, func(x stats.Line) bool { return x.Kind == stats.Rx })
}

// end finishes the session; its handlers process what was received.
func (o *RunningSession) end(c *call, reason string) {
	_ = o.finish(reason, c.rt.serveReady(c.L)) // the summary reports the writers' errors
}

// serveReady returns a function that dispatches all items available before a time.
func (rt *Runtime) serveReady(L *lua.LState) func(until int64) {
	return func(until int64) {
		for {
			it, err := rt.Task.Wait(until)
			if err != nil || it == nil {
				return // cancelled: remaining items are dropped and counted
			}
			rt.dispatch(L, it)
		}
	}
}

// sessionMeasure implements s:measure{seconds}: it serves handlers for that time and returns the change of the ledger.
func sessionMeasure(c *call) int {
	o := selfSession(c)
	opts := c.options(1)
	opts.Need("seconds")
	c.ownSession(o)
	c.canWait()
	o.running(c)
	ns, _ := opts.Seconds("seconds")
	before := o.s.Ledger()
	o.serve(c, &limits{until: c.rt.Task.In(ns), start: before})
	l := o.s.Ledger().Since(before)
	return c.Push(value.Ledger(c.rt.root, l, l.Seconds()))
}

// sessionStats implements s:stats(): the current ledger.
func sessionStats(c *call) int {
	o := selfSession(c)
	return c.Push(value.Ledger(c.rt.root, o.Ledger(), o.RunTime()))
}

// summary returns the ledger with reason, files and failed.
func (c *call) summary(o *RunningSession) lua.LValue {
	t := value.Ledger(c.rt.root, o.Ledger(), o.RunTime())
	setMissing := func(name string, v lua.LValue) {
		if t.RawGetString(name) == lua.LNil {
			t.RawSetString(name, v)
		}
	}
	setMissing("reason", lua.LString(o.Reason()))
	setMissing("failed", value.List(c.rt.root, o.Failed()))
	setMissing("files", value.List(c.rt.root, o.Files()))
	if err := o.Err(); err != nil {
		setMissing("error", lua.LString(err.Error()))
	}
	return t
}

// mostTrials bounds a search with a precision far below its range.
const mostTrials = 64

// moduleFindLimit implements daqiri.find_limit{low, high, precision, trial}: bisection between a rate that passes and one that fails, as in RFC
// 2544 section 26.1 for throughput.
func moduleFindLimit(c *call) int {
	o := c.options(1)
	for _, key := range []string{"low", "high", "trial"} {
		o.Need(key)
	}
	low, high := float64(o.Rate("low")), float64(o.Rate("high"))
	if low <= 0 || high <= low {
		o.Wrong("high", "it has to be above low, which has to be above 0")
	}
	precision := (high - low) / 100
	if o.Has("precision") {
		precision = float64(o.Rate("precision"))
	}
	if precision <= 0 {
		o.Wrong("precision", "it has to be above 0")
	}
	fn, ok := o.Get("trial").(*lua.LFunction)
	if !ok {
		o.Wrong("trial", "a function(rate) expected, got %s", row.Describe(o.Get("trial")))
	}
	c.canWait()
	trials := c.rt.root.NewTable()
	try := func(rate float64) bool {
		c.L.Push(fn)
		c.L.Push(lua.LNumber(rate))
		c.L.Call(1, 1)
		verdict := c.L.Get(-1)
		c.L.Pop(1)
		if verdict != lua.LTrue && verdict != lua.LFalse && verdict != lua.LString("invalid") {
			o.Wrong("trial", "it returns true, false or \"invalid\", not %s", row.Describe(verdict))
		}
		t := c.rt.root.NewTable()
		t.RawSetString("rate", lua.LNumber(rate))
		t.RawSetString("verdict", verdict)
		trials.Append(t)
		return verdict == lua.LTrue
	}
	limit, found := high, try(high)
	if !found {
		if limit, found = low, try(low); found {
			for high-limit > precision && trials.Len() < mostTrials {
				if middle := limit + (high-limit)/2; try(middle) {
					limit = middle
				} else {
					high = middle
				}
			}
		}
	}
	if !found {
		c.L.Push(lua.LNil)
	} else {
		c.L.Push(lua.LNumber(limit))
	}
	c.L.Push(trials)
	return 2
}
