package bindings

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// A program may open and close sessions for days. The records of the newest that were closed are kept, those before
// them are added up in one.

const (
	keptRecords = 100
	keptLines   = 100 // of each list of a sum of records
)

// closedSession is what is left of a session that was closed; the session itself goes with the script's handles.
type closedSession struct {
	reason     string
	notes      []string
	thresholds []stats.Result
	files      []string
	endless    map[string]bool
	sum        int // so many records added up
}

// addUp keeps the number of closed records bounded.
func (p *Process) addUp() {
	first, closed := -1, 0
	for i, o := range p.sessions {
		if o.record == nil || o.record.sum > 0 {
			continue
		}
		if closed++; first < 0 {
			first = i
		}
	}
	if closed <= keptRecords {
		return
	}
	if p.sessions[0].record == nil || p.sessions[0].record.sum == 0 {
		sum := &RunningSession{finished: true, closed: true, final: &stats.Ledger{}, record: &closedSession{}}
		p.sessions = append([]*RunningSession{sum}, p.sessions...)
		first++
	}
	p.sessions[0] = p.sessions[0].plus(p.sessions[first])
	p.sessions = append(p.sessions[:first], p.sessions[first+1:]...)
}

// plus is a new record of two: counters and times are added, lists joined as far as there is room.
func (o *RunningSession) plus(x *RunningSession) *RunningSession {
	n := o.record.sum + 1
	both := &RunningSession{name: fmt.Sprintf("%d earlier sessions", n), begun: o.begun || x.begun, finished: true, closed: true,
		ended: o.ended + x.ended - x.began, failed: join(o.failed, x.failed), err: o.err, final: o.final.Plus(x.final),
		record: &closedSession{notes: o.record.notes, files: join(o.record.files, x.record.files), sum: n}}
	if both.err == nil {
		both.err = x.err
	}
	if n == 1 {
		both.record.notes = x.record.notes
	}
	return both
}

// join appends y to x; the last place says how many had none.
func join(x, y []string) []string {
	x = append(x[:len(x):len(x)], y...)
	if len(x) > keptLines {
		more := 1
		if _, err := fmt.Sscanf(x[keptLines-1], "and %d more", &more); err != nil {
			more = 1
		}
		x = append(x[:keptLines-1:keptLines-1], fmt.Sprintf("and %d more", more+len(x)-keptLines))
	}
	return x
}
