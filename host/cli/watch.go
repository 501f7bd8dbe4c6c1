package cli

import (
	"fmt"
	"time"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// show updates the terminal: the live line, or with --top the full view.
func (r *runner) show() {
	if r.con.screen == nil {
		return
	}
	text := ""
	if r.flags.top {
		text = r.top.Text(time.Now())
	} else {
		text = r.live.Line(time.Now())
	}
	if text != "" {
		r.con.screen.Show(text)
	}
}

// progress returns a channel that ticks when a log line is due without a terminal; end stops it.
func (r *runner) progress() (due <-chan time.Time, end func()) {
	ns, err := spec.ParseDuration(r.flags.progress)
	if err != nil || r.con.screen != nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(time.Duration(ns))
	return ticker.C, ticker.Stop
}

// line prints the live line as a log line.
func (r *runner) line(now time.Time) {
	if text := r.live.Line(now); text != "" {
		fmt.Fprintln(r.con.stderr, text)
	}
}

// view prints the full view for SIGUSR2. Signals in quick succession count as one, as rates need some time.
func (r *runner) view(now time.Time) {
	if now.Sub(r.viewed) >= oneSignal {
		r.viewed = now
		fmt.Fprint(r.con.stderr, r.top.Text(now))
	}
}
