package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Top formats the full view: the activity of each ledger line since the last view, fill levels, and what limits the run.
type Top struct {
	process *bindings.Process
	style   Style
	last    map[*bindings.RunningSession]*stats.Ledger
	threads map[int]thread
	at      time.Time
}

// NewTop returns a view for the sessions of a process.
func NewTop(process *bindings.Process, st Style) *Top { return &Top{process: process, style: st} }

// Text returns the view at the time now, with rates since the last call, at first since the start; "" if no session runs.
func (v *Top) Text(now time.Time) string {
	before, threads := v.last, engineThreads()
	v.last = map[*bindings.RunningSession]*stats.Ledger{}
	var b strings.Builder
	for _, o := range v.process.Sessions() {
		if !o.Started() || o.Finished() {
			continue
		}
		l := visible(o.Ledger())
		v.last[o] = l
		was := before[o]
		if was == nil {
			was = &stats.Ledger{EndNS: l.StartNS}
		}
		v.session(&b, o, l, l.Since(was))
	}
	if b.Len() > 0 {
		v.busy(&b, threads, now)
	}
	v.threads, v.at = threads, now
	return b.String()
}

// session formats the view of one session; d is the difference since the last view.
func (v *Top) session(b *strings.Builder, o *bindings.RunningSession, l, d *stats.Ledger) {
	dt := d.Seconds()
	if dt <= 0 {
		return
	}
	fmt.Fprintf(b, "%s  %s  %.2f CPUs  %s resident\n", v.style.paint(bold, state.Visible(o.Name())), span(time.Duration(o.RunTime()*1e9)), d.Process.CPUSeconds/dt,
		size(l.Process.RSS))
	t := table{right: 6}
	t.row("", "packets/s", "bit/s", "held", "dropped", "/s", "")
	for i := range l.Lines {
		x, now := &l.Lines[i], &d.Lines[i]
		packets, bytes := moved(now)
		t.row(x.Title(), strings.TrimSuffix(scaled(float64(packets)/dt, ""), " "), strings.TrimSuffix(scaled(8*float64(bytes)/dt, ""), " "),
			count(x.Held), count(x.Dropped.Sum()), strings.TrimSuffix(scaled(float64(now.Dropped.Sum())/dt, ""), " "), lineNotes(x, now, dt))
	}
	t.write(b, "  ")
	for i := range l.Lines {
		v.reasons(b, &l.Lines[i])
	}
	for _, r := range o.Regions() {
		fmt.Fprintf(b, "  region %s: %s of %s buffers in use (%s)\n", state.Visible(r.Name), count(uint64(r.Buffers-r.Free)), count(uint64(r.Buffers)),
			share(uint64(r.Buffers-r.Free), uint64(r.Buffers)))
	}
	for i := range d.Lines {
		worst, _ := d.Lines[i].Sources.Worst(mostSources)
		for k := range worst {
			fmt.Fprintf(b, "  source %s of %s: %s\n", worst[k].Name, d.Lines[i].Title(), losses(&worst[k]))
		}
	}
	for _, text := range limits(d.Lines, dt, o.Endless()) {
		fmt.Fprintf(b, "  %s %s\n", v.style.paint(red, "limit:"), text)
	}
}

// lineNotes formats a line's further data: files, and the load of a handler or the wait of a writer.
func lineNotes(x, now *stats.Line, dt float64) string {
	var notes []string
	if h := now.Histograms.Get("handler_time"); h.N() > 0 {
		notes = append(notes, fmt.Sprintf("busy %.0f %%", min(100, float64(h.Sum)/1e7/dt)))
	}
	if x.Kind == stats.Writer && !x.Store {
		notes = append(notes, counted(x.Extra.Get("files"), "file"), size(x.Extra.Get("file_bytes")))
		if stall := float64(now.Extra.Get("stall_ns")) / 1e7 / dt; stall >= 1 {
			notes = append(notes, fmt.Sprintf("waits %.0f %%", min(100, stall)))
		}
	}
	return strings.Join(notes, ", ")
}

// reasons lists the drop reasons of a line.
func (v *Top) reasons(b *strings.Builder, x *stats.Line) {
	var parts []string
	for _, r := range x.Dropped {
		if r.N > 0 {
			parts = append(parts, r.Name+" "+count(r.N))
		}
	}
	if len(parts) == 0 {
		return
	}
	text := "dropped by " + x.Title() + ":"
	if lost(x) > 0 {
		text = v.style.paint(red, text)
	}
	fmt.Fprintf(b, "  %s %s\n", text, strings.Join(parts, ", "))
}

// busy formats the share of time that each engine thread worked.
func (v *Top) busy(b *strings.Builder, threads map[int]thread, now time.Time) {
	dt := now.Sub(v.at).Seconds()
	if v.at.IsZero() || dt <= 0 {
		return
	}
	var parts []string
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		t := threads[id]
		if was, ok := v.threads[id]; ok {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", t.name, min(100, max(0, 100*(t.cpuS-was.cpuS)/dt))))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "threads busy: %s\n", strings.Join(parts, ", "))
	}
}
