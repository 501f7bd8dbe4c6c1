package summary

import (
	"fmt"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Live formats the live line with the rates of all interfaces, once per second.
type Live struct {
	process *bindings.Process
	color   bool
	last    map[*bindings.RunningSession]sample
}

// sample holds the counters of a session at a time.
type sample struct {
	at    time.Time
	lines []stats.Line
}

// NewLive returns a live line for the sessions of a process. color permits red for drops.
func NewLive(process *bindings.Process, color bool) *Live {
	return &Live{process: process, color: color, last: map[*bindings.RunningSession]sample{}}
}

// Line returns the line at the time now, with rates since the last call or the session's start; "" if no session runs.
func (v *Live) Line(now time.Time) string {
	var parts []string
	before := v.last
	v.last = map[*bindings.RunningSession]sample{} // of running sessions
	for _, o := range v.process.Sessions() {
		if !o.Started() || o.Finished() {
			continue
		}
		next := sample{now, o.Ledger().Lines}
		v.last[o] = next
		last, seen := before[o]
		if !seen { // since its start
			last = sample{at: now.Add(-time.Duration(o.RunTime() * 1e9))}
		}
		if text := liveText(last, next, o.RunTime(), Style{Color: v.color}); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "  |  ")
}

// flow counts the traffic of an interface in one direction.
type flow struct{ packets, bytes uint64 }

// sides sums the queues of each interface and direction, in order, and all losses.
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

// liveText formats the rates of one session between two samples.
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
