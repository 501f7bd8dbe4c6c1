// Package report generates a page of a run: its ledger, rates and losses over time, histograms and sources, as a self-contained HTML file or live
// in a browser.
//
// It may import host/summary, bindings, runtime/stats and go-analyze/charts, which draws charts as SVG. A Recorder is used by one goroutine at a
// time; a Server has its own lock.
package report

import (
	"time"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// mostPoints is the maximum number of points per session. Above it, neighboring points are merged, so that memory use does not depend on the run
// time.
const mostPoints = 480

// Recorder records the activity of the lines of all ledgers over time.
type Recorder struct {
	process *bindings.Process
	of      map[*bindings.RunningSession]*history
	order   []*bindings.RunningSession
}

// history has the points of a session's lines, of equal duration except the last.
type history struct {
	last    *stats.Ledger
	step    int       // samples per point
	looks   int       // samples in the current point
	seconds []float64 // time at the end of each point, since the start
	from    *stats.Ledger
	lines   []*track
	by      map[string]*track
}

// track has the values of one line by point.
type track struct {
	title                  string
	kind                   stats.Kind
	packets, bits, dropped []float64 // per second
}

// NewRecorder returns a recorder for the sessions of a process.
func NewRecorder(process *bindings.Process) *Recorder {
	return &Recorder{process: process, of: map[*bindings.RunningSession]*history{}}
}

// Look samples the ledgers; it is called once per second and at the end.
func (r *Recorder) Look() {
	for _, o := range r.process.Sessions() {
		if !o.Started() || o.Closed() {
			continue
		}
		h := r.of[o]
		if h == nil {
			h = &history{step: 1, by: map[string]*track{}}
			r.of[o] = h
			r.order = append(r.order, o)
		}
		h.look(o.Ledger())
	}
}

func (h *history) look(l *stats.Ledger) {
	if h.from == nil {
		h.from = &stats.Ledger{EndNS: l.StartNS}
	}
	h.last = l
	h.looks++
	if l.EndNS-h.from.EndNS < int64(time.Millisecond) || h.looks < h.step {
		return
	}
	h.point(l.Since(h.from), float64(l.EndNS-l.StartNS)/1e9)
	h.from, h.looks = l, 0
	if len(h.seconds) > mostPoints {
		h.thin()
	}
}

// point appends the difference d of two samples as a point.
func (h *history) point(d *stats.Ledger, at float64) {
	dt := d.Seconds()
	h.seconds = append(h.seconds, at)
	for i := range d.Lines {
		x := &d.Lines[i]
		t := h.by[x.Title()]
		if t == nil {
			t = &track{title: x.Title(), kind: x.Kind, packets: make([]float64, len(h.seconds)-1), bits: make([]float64, len(h.seconds)-1),
				dropped: make([]float64, len(h.seconds)-1)}
			h.by[t.title] = t
			h.lines = append(h.lines, t)
		}
		packets, bytes := x.In, x.InBytes
		if x.Kind == stats.Tx {
			packets, bytes = x.Out, x.OutBytes
		}
		t.packets = append(t.packets, float64(packets)/dt)
		t.bits = append(t.bits, 8*float64(bytes)/dt)
		t.dropped = append(t.dropped, float64(x.Dropped.Sum())/dt)
	}
	for _, t := range h.lines { // lines that no longer exist
		for _, list := range []*[]float64{&t.packets, &t.bits, &t.dropped} {
			for len(*list) < len(h.seconds) {
				*list = append(*list, 0)
			}
		}
	}
}

// thin merges pairs of points.
func (h *history) thin() {
	pairs := len(h.seconds) / 2
	lengths := make([]float64, 2*pairs)
	before := 0.0
	for i := range lengths {
		lengths[i] = h.seconds[i] - before
		before = h.seconds[i]
	}
	for _, t := range h.lines {
		for _, list := range []*[]float64{&t.packets, &t.bits, &t.dropped} {
			v := *list
			for i := range pairs {
				a, b := lengths[2*i], lengths[2*i+1]
				v[i] = (v[2*i]*a + v[2*i+1]*b) / (a + b)
			}
			*list = append(v[:pairs], v[2*pairs:]...)
		}
	}
	for i := range pairs {
		h.seconds[i] = h.seconds[2*i+1]
	}
	h.seconds = append(h.seconds[:pairs], h.seconds[2*pairs:]...)
	h.step *= 2
}
