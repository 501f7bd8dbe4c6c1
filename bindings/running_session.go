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

// stuckTime is how long a stop waits for tasks and writers that take nothing.
const stuckTime = time.Second

// RunningSession is a session as the script opened it. What is exported is for the host and safe for
// concurrent use.
type RunningSession struct {
	name  string
	s     *session.Session
	owner *task.Task

	live atomic.Bool // begun, and neither finished nor closed

	mu       sync.Mutex
	begun    bool
	began    int64 // session clock
	ended    int64
	finished bool
	closed   bool
	failed   []string      // violated thresholds
	err      error         // of writers
	final    *stats.Ledger // when finished
	gone     map[*session.Queue]string
	getters  map[*session.Queue]*getter // each of the task that has the queue
	timers   map[*timer]bool            // owner's thread
	record   *closedSession             // when closed: what the summary still wants of s
}

// Name is the configuration's file name, "default", "text" or "table".
func (o *RunningSession) Name() string { return o.name }

// Stop asks the session to end, unless it was closed.
func (o *RunningSession) Stop(reason string) {
	if o.s != nil {
		o.s.Stop(reason)
	}
}

// Ledger is the account of all packets: as it stands, or as it was when the session had finished.
func (o *RunningSession) Ledger() *stats.Ledger {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.final != nil {
		return o.final
	}
	return o.s.Ledger()
}

// Started reports whether packets could move already.
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

// Closed reports whether the script closed the session, of which the record is left.
func (o *RunningSession) Closed() bool { return o.isClosed() }

// RunTime is how long it has run, or ran, in seconds of its clock.
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

// RegionLevel is how much of a memory region is in use.
type RegionLevel struct {
	Name          string
	Buffers, Free int
}

// Regions are the levels of the session's memory regions; none when it was closed.
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

// Reason says why the session stopped, empty while it runs.
func (o *RunningSession) Reason() string {
	if p := o.closing(); p != nil {
		return p.reason
	}
	reason, _ := o.s.Stopping()
	return reason
}

// Notes say line by line what is hardware, software or copy, and why.
func (o *RunningSession) Notes() []string {
	if p := o.closing(); p != nil {
		return p.notes
	}
	return o.s.Report()
}

// Thresholds holds the ledger against the script's conditions.
func (o *RunningSession) Thresholds() []stats.Result {
	if p := o.closing(); p != nil {
		return p.thresholds
	}
	return o.s.Thresholds().Check(o.Ledger())
}

// Endless finds the queues that were sending without end when the session stopped, by the title of their line.
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

// Failed lists the thresholds that did not hold, in words.
func (o *RunningSession) Failed() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.failed...)
}

// Err is what the writers met, nil while all is well.
func (o *RunningSession) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// DeviceErrors lists the stages that did not end, or whose device failed.
func (o *RunningSession) DeviceErrors() []*session.DeviceError { return session.DeviceErrors(o.Err()) }

// Files lists the files that the session's writers wrote last.
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

// check raises where the script has closed the session.
func (o *RunningSession) check(c *call) {
	if !o.live.Load() && o.isClosed() {
		c.raise("session %s was closed", o.name)
	}
}

func (o *RunningSession) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// unfinished raises where nothing can happen any more.
func (o *RunningSession) unfinished(c *call) {
	o.check(c)
	if o.Finished() {
		c.raise("session %s has stopped: %s", o.name, o.Reason())
	}
}

// running raises unless the session has started and not ended.
func (o *RunningSession) running(c *call) {
	if o.live.Load() {
		return
	}
	o.unfinished(c)
	if !o.Started() {
		c.raise("session %s has not started: nothing moves before s:start() or s:run{}", o.name)
	}
}

// begin starts the session, once.
func (o *RunningSession) begin(rt *Runtime) error {
	if o.Started() {
		return nil
	}
	if err := o.stray(rt, o.s.Thresholds()); err != nil {
		return err
	}
	rt.hearOfServers(o)
	if err := o.s.Start(rt.Task); err != nil {
		return &OpenError{err}
	}
	for _, st := range o.s.Stages() {
		rt.tellAside(st)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun, o.began = true, o.s.Now()
	o.live.Store(true)
	rt.Shared.began()
	return nil
}

// finish ends the session in order, once: it sends what waits to be sent, ends receiving, lets serve deal until
// some time with what waits for this task while others deal with theirs (nil: what waits is dropped and
// counted), and closes the files.
func (o *RunningSession) finish(reason string, serve func(until int64)) error {
	if o.Finished() || !o.Started() {
		return nil
	}
	o.s.Stop(reason)
	drain := time.Duration(o.s.Config().DrainNS)
	answers := drain // for what handlers send last
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

// judge holds the final ledger against the thresholds. One that stopped the run stays as it was then.
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

// drain lets what waits to be sent go until the limit (session clock), ends receiving, and lets the tasks take what was
// received for them, until nothing is left, or nobody takes any more. Whether all was sent at some time.
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

// dealtWith is how many packets tasks and writers have taken and dealt with, and queues have sent.
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

// held is how many packets wait in lines of a kind.
func held(l *stats.Ledger, kind stats.Kind) (n uint64) {
	for i := range l.Lines {
		if l.Lines[i].Kind == kind {
			n += l.Lines[i].Held
		}
	}
	return n
}

// close frees what the session holds, once, and returns what is to be kept in its place: a record without it.
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

// handedOver notes that a queue has gone to another task, which makes a getter of its own: that of the one that had it.
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

// getter is what get_burst of a queue goes on with, whichever of its Lua values is asked.
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

// queue makes a Lua value of a queue; one that was handed over stays gone.
func (o *RunningSession) queue(q *session.Queue) *queue {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &queue{q: q, of: o, gone: o.gone[q]}
}
