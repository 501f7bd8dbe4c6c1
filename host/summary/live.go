package summary

import (
	"fmt"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Live makes the line that shows, once a second, what the interfaces do.
type Live struct {
	process *bindings.Process
	color   bool
	last    map[*bindings.RunningSession]sample
}

// sample is what a session had counted at a time.
type sample struct {
	at    time.Time
	lines []stats.Line
}

// NewLive returns a live line over the sessions of a process. color: drops may be red.
func NewLive(process *bindings.Process, color bool) *Live {
	return &Live{process: process, color: color, last: map[*bindings.RunningSession]sample{}}
}

// Line returns the line at the time now: the rates since the last call, or since a session began; "" while none runs.
func (v *Live) Line(now time.Time) string {
	var parts []string
	before := v.last
	v.last = map[*bindings.RunningSession]sample{} // of those that run
	for _, o := range v.process.Sessions() {
		if !o.Started() || o.Finished() {
			continue
		}
		next := sample{now, o.Ledger().Lines}
		v.last[o] = next
		last, seen := before[o]
		if !seen { // since it began
			last = sample{at: now.Add(-time.Duration(o.RunTime() * 1e9))}
		}
		if text := liveText(last, next, o.RunTime(), Style{Color: v.color}); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "  |  ")
}

// flow is what a side of an interface has moved.
type flow struct{ packets, bytes uint64 }

// sides adds up the queues of each side of each interface, in order, and everything that was lost.
func sides(lines []stats.Line) (order []string, moves map[string]flow, dropped uint64) {
	moves = map[string]flow{}
	for i := range lines {
		l := &lines[i]
		dropped += lost(l)
		if l.Kind != stats.Rx && l.Kind != stats.Tx {
			continue
		}
		side := l.Name + "." + string(l.Kind)
		sum, seen := moves[side]
		if !seen {
			order = append(order, side)
		}
		packets, bytes := moved(l)
		moves[side] = flow{sum.packets + packets, sum.bytes + bytes}
	}
	return order, moves, dropped
}

// liveText is the rates of one session between two samples.
func liveText(last, next sample, runS float64, st Style) string {
	dt := next.at.Sub(last.at).Seconds()
	if dt <= 0 {
		return ""
	}
	_, before, _ := sides(last.lines)
	order, after, dropped := sides(next.lines)
	parts := []string{fmt.Sprintf("%4.0f s", runS)}
	for _, side := range order {
		a, b := after[side], before[side]
		parts = append(parts, fmt.Sprintf("%s %s %s", side, scaled(float64(a.packets-b.packets)/dt, "pps"),
			scaled(8*float64(a.bytes-b.bytes)/dt, "bit/s")))
	}
	drops := "dropped " + count(dropped)
	if dropped > 0 {
		drops = st.paint(red, drops)
	}
	return strings.Join(append(parts, drops), "  ")
}
