package cli

import (
	"fmt"
	"time"

	"github.com/daqiri/daqiri-run/runtime/spec"
)

// show draws what goes on on a terminal: a line, or with --top everything.
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

// progress ticks when a line is due where there is no terminal; end ends that.
func (r *runner) progress() (due <-chan time.Time, end func()) {
	ns, err := spec.ParseDuration(r.flags.progress)
	if err != nil || r.con.screen != nil {
		return nil, func() {}
	}
	ticker := time.NewTicker(time.Duration(ns))
	return ticker.C, ticker.Stop
}

// line writes the live line as one of a log.
func (r *runner) line(now time.Time) {
	if text := r.live.Line(now); text != "" {
		fmt.Fprintln(r.con.stderr, text)
	}
}

// view writes everything, as SIGUSR2 asks for. Signals that come together are one: rates need some time.
func (r *runner) view(now time.Time) {
	if now.Sub(r.viewed) >= oneSignal {
		r.viewed = now
		fmt.Fprint(r.con.stderr, r.top.Text(now))
	}
}
