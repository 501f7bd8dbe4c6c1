package bindings

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Bounds the memory used for closed sessions: the records of the most recently closed sessions are kept, older records are merged into one.

const (
	keptRecords = 100
	keptLines   = 100 // maximum length of each list of a merged record
)

// closedSession is the record kept of a closed session; the session itself is freed with the script's handles.
type closedSession struct {
	reason     string
	notes      []string
	thresholds []stats.Result
	files      []string
	endless    map[string]bool
	sum        int // number of merged records
}

// addUp merges the oldest closed record into the sum if there are more than keptRecords.
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

// plus returns the merge of both records: counters and times are added, lists concatenated up to keptLines.
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

// join appends y to x; the last line gives the number of omitted lines.
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
