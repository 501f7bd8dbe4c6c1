package bindings

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// stuckTime is how long a stop waits for tasks and writers that make no progress.
const stuckTime = time.Second

// RunningSession is a session opened by a script. Exported methods are for the host and safe for concurrent use.
type RunningSession struct {
	name  string
	s     *session.Session
	owner *task.Task

	live atomic.Bool // started, and neither finished nor closed

	mu       sync.Mutex
	begun    bool
	began    int64 // session clock
	ended    int64
	finished bool
	closed   bool
	failed   []string      // violated thresholds
	err      error         // of the writers
	final    *stats.Ledger // set when finished
	gone     map[*session.Queue]string
	getters  map[*session.Queue]*getter // of the owning task
	timers   map[*timer]bool            // accessed on the owner's thread
	record   *closedSession             // set when closed: the data of s for the summary
}

// Name returns the configuration's file name, "default", "text" or "table".
func (o *RunningSession) Name() string { return o.name }

// Stop requests the end of the session, unless it is closed.
func (o *RunningSession) Stop(reason string) {
	if o.s != nil {
		o.s.Stop(reason)
	}
}

// Ledger returns the current ledger, or the final one of a finished session.
func (o *RunningSession) Ledger() *stats.Ledger {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.final != nil {
		return o.final
	}
	return o.s.Ledger()
}

// Started reports whether the session was started.
func (o *RunningSession) Started() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.begun
}

// Finished reports whether the session has stopped and its files are closed.
func (o *RunningSession) Finished() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.finished
}

// Closed reports whether the script closed the session; only its record remains.
func (o *RunningSession) Closed() bool { return o.isClosed() }

// RunTime returns the run time so far, or in total, in seconds of the session clock.
func (o *RunningSession) RunTime() float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !o.begun:
		return 0
	case o.ended == 0:
		return float64(o.s.Now()-o.began) / 1e9
	}
	return float64(o.ended-o.began) / 1e9
}

// RegionLevel is the use of a memory region.
type RegionLevel struct {
	Name          string
	Buffers, Free int
}

// Regions returns the use of the session's memory regions; none after it was closed.
func (o *RunningSession) Regions() (levels []RegionLevel) {
	if o.closing() != nil {
		return nil
	}
	for _, r := range o.s.Regions() {
		if info, err := r.Info(); err == nil {
			levels = append(levels, RegionLevel{r.Name(), int(info.NumBufs), int(info.FreeBufs)})
		}
	}
	return levels
}

// Reason returns why the session stopped; empty while it runs.
func (o *RunningSession) Reason() string {
	if p := o.closing(); p != nil {
		return p.reason
	}
	reason, _ := o.s.Stopping()
	return reason
}

// Notes reports line by line what runs in hardware, in software or by copying, and why.
func (o *RunningSession) Notes() []string {
	if p := o.closing(); p != nil {
		return p.notes
	}
	return o.s.Report()
}

// Thresholds evaluates the script's thresholds on the ledger.
func (o *RunningSession) Thresholds() []stats.Result {
	if p := o.closing(); p != nil {
		return p.thresholds
	}
	return o.s.Thresholds().Check(o.Ledger())
}

// Endless returns the queues that were transmitting without a count when the session stopped, by line title.
func (o *RunningSession) Endless() map[string]bool {
	if p := o.closing(); p != nil {
		return p.endless
	}
	found := map[string]bool{}
	for _, i := range o.s.Interfaces() {
		for _, q := range i.TxQueues() {
			if _, all := q.Remaining(); all {
				found[fmt.Sprintf("%s.tx.%d", i.Name(), q.ID())] = true
			}
		}
	}
	return found
}

func (o *RunningSession) closing() *closedSession {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.record
}

// Failed lists the violated thresholds as text.
func (o *RunningSession) Failed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.failed...)
}

// Err returns the errors of the writers, or nil.
func (o *RunningSession) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// DeviceErrors lists the stages that did not end or whose device failed.
func (o *RunningSession) DeviceErrors() []*session.DeviceError { return session.DeviceErrors(o.Err()) }

// Files lists the files written last by the session's writers.
func (o *RunningSession) Files() []string {
	if p := o.closing(); p != nil {
		return p.files
	}
	var files []string
	for _, st := range o.s.Stages() {
		files = append(files, st.Paths()...)
	}
	return files
}

// check raises if the script has closed the session.
func (o *RunningSession) check(c *call) {
	if !o.live.Load() && o.isClosed() {
		c.Raise("session %s was closed", o.name)
	}
}

func (o *RunningSession) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// unfinished raises if the session has finished.
func (o *RunningSession) unfinished(c *call) {
	o.check(c)
	if o.Finished() {
		c.Raise("session %s has stopped: %s", o.name, o.Reason())
	}
}

// running raises unless the session has started and not ended.
func (o *RunningSession) running(c *call) {
	if o.live.Load() {
		return
	}
	o.unfinished(c)
	if !o.Started() {
		c.Raise("session %s has not started: nothing moves before s:start() or s:run{}", o.name)
	}
}

// begin starts the session, at most once.
func (o *RunningSession) begin(rt *Runtime) error {
	if o.Started() {
		return nil
	}
	if err := o.stray(rt, o.s.Thresholds()); err != nil {
		return err
	}
	rt.watchServers(o)
	if err := o.s.Start(rt.Task); err != nil {
		return &OpenError{err}
	}
	for _, st := range o.s.Stages() {
		rt.warnRenamed(st)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun, o.began = true, o.s.Now()
	o.live.Store(true)
	rt.Shared.began()
	return nil
}

// finish ends the session in order, at most once: it sends what is queued, ends receiving, lets serve handle this task's items until a time while
// other tasks handle theirs (nil: queued items are dropped and counted), and closes the files.
func (o *RunningSession) finish(reason string, serve func(until int64)) error {
	if o.Finished() || !o.Started() {
		return nil
	}
	o.s.Stop(reason)
	drain := time.Duration(o.s.Config().DrainNS)
	answers := drain // timeout for packets that handlers send last
	if serve != nil {
		for t := range o.timers {
			t.cancel()
		}
		if !o.drain(serve, o.s.Now()+int64(drain)) {
			answers = 0
		}
	}
	o.s.Quiesce(answers)
	err := o.s.Finish()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished {
		return nil
	}
	o.finished, o.err = true, err
	o.live.Store(false)
	o.final = o.s.Ledger()
	o.ended = o.final.EndNS
	o.judge()
	return err
}

// judge evaluates the thresholds on the final ledger. A threshold that stopped the run keeps its result from then.
func (o *RunningSession) judge() {
	stopped := map[string]bool{}
	for _, text := range o.failed {
		expr, _, _ := strings.Cut(text, ": ")
		stopped[expr] = true
	}
	for _, r := range o.s.Thresholds().Check(o.final) {
		if !r.Passed && !stopped[r.Expr] {
			o.failed = append(o.failed, r.String())
		}
	}
}

// drain sends queued packets until the limit (session clock), ends receiving, and lets the tasks handle received packets until none are left or
// no progress is made. It reports whether the transmit queues were empty at some time.
func (o *RunningSession) drain(serve func(until int64), limit int64) (sent bool) {
	last, since := uint64(0), o.s.Now()
	for {
		waiting := o.s.Quiesce(time.Duration(max(0, limit-o.s.Now())))
		l := o.s.Ledger()
		sent = sent || held(l, stats.Tx) == 0
		serve(0)
		l = o.s.Ledger()
		if waiting += held(l, stats.Tap); waiting == 0 {
			return sent
		}
		now := o.s.Now()
		if moved := dealtWith(l); moved != last {
			last, since = moved, now
		} else if now-since > int64(stuckTime) {
			return sent
		}
		serve(o.owner.Now() + int64(time.Millisecond))
	}
}

// dealtWith returns the number of packets processed by tasks and writers and sent by queues, as a measure of progress.
func dealtWith(l *stats.Ledger) (n uint64) {
	for i := range l.Lines {
		switch x := &l.Lines[i]; x.Kind {
		case stats.Tap, stats.Writer:
			n += x.In + x.Out + x.Dropped.Sum()
		case stats.Tx:
			n += x.Out
		}
	}
	return n
}

// held returns the number of packets in flight in lines of a kind.
func held(l *stats.Ledger, kind stats.Kind) (n uint64) {
	for i := range l.Lines {
		if l.Lines[i].Kind == kind {
			n += l.Lines[i].Held
		}
	}
	return n
}

// close frees the session, at most once, and returns the record that replaces it.
func (o *RunningSession) close() *RunningSession {
	if o.closing() != nil {
		return o
	}
	p := &closedSession{reason: o.Reason(), notes: o.Notes(), thresholds: o.Thresholds(), files: o.Files(), endless: o.Endless()}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.final == nil {
		o.final = o.s.Ledger()
	}
	o.final = o.final.Bare()
	o.closed, o.record = true, p
	o.live.Store(false)
	o.s.Close()
	return &RunningSession{name: o.name, owner: o.owner, begun: o.begun, began: o.began, ended: o.ended, finished: o.finished,
		closed: true, failed: o.failed, err: o.err, final: o.final, record: p}
}

// handedOver records that a queue was passed to another task, which creates its own getter, and returns the old getter.
func (o *RunningSession) handedOver(q *session.Queue, why string) *getter {
	g := o.getter(q)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone == nil {
		o.gone = map[*session.Queue]string{}
	}
	o.gone[q] = why
	delete(o.getters, q)
	return g
}

// getter returns the getter of a queue, shared by all Lua values of the queue.
func (o *RunningSession) getter(q *session.Queue) *getter {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.getters == nil {
		o.getters = map[*session.Queue]*getter{}
	}
	if o.getters[q] == nil {
		o.getters[q] = &getter{}
	}
	return o.getters[q]
}

// queue returns a Lua value for a queue; it is invalid if the queue was handed over.
func (o *RunningSession) queue(q *session.Queue) *queue {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &queue{q: q, of: o, gone: o.gone[q]}
}
