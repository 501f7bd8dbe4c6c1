// Package report makes a page of a run: its ledger, rates and losses over time, histograms and sources, as one HTML file that needs
// nothing else, or live in a browser.
//
// It may import host/summary, bindings, runtime/stats and go-analyze/charts, which draws charts as SVG. A Recorder is used by one
// goroutine at a time; a Server locks its own.
package report

import (
	"time"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// mostPoints is how many times are kept of a session. When there are more, neighbours become one, so that a run of weeks takes no
// more memory than one of minutes.
const mostPoints = 480

// Recorder keeps what the lines of the sessions' ledgers did over time.
type Recorder struct {
	process *bindings.Process
	of      map[*bindings.RunningSession]*history
	order   []*bindings.RunningSession
}

// history is what became of a session's lines: points of equal length but for the last.
type history struct {
	last    *stats.Ledger
	step    int       // looks that make a point
	looks   int       // in the open point
	seconds []float64 // at the end of each point, since the start
	from    *stats.Ledger
	lines   []*track
	by      map[string]*track
}

// track is what one line did, by point.
type track struct {
	title                  string
	kind                   stats.Kind
	packets, bits, dropped []float64 // per second
}

// NewRecorder returns a recorder of the sessions of a process.
func NewRecorder(process *bindings.Process) *Recorder {
	return &Recorder{process: process, of: map[*bindings.RunningSession]*history{}}
}

// Look reads the ledgers, as is done once a second and at the end.
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

// point adds what happened in a time.
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
	for _, t := range h.lines { // lines that are gone
		for _, list := range []*[]float64{&t.packets, &t.bits, &t.dropped} {
			for len(*list) < len(h.seconds) {
				*list = append(*list, 0)
			}
		}
	}
}

// thin makes one point of each two.
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
