package check

import (
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/session/words"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// threshold checks the syntax and, if the session's configuration is known, reports names that never get a value.
func threshold(w *walker, c *callee, text string) error {
	var alone stats.Thresholds
	if err := alone.Add(stats.Threshold{Expr: text}); err != nil {
		return err
	}
	if c.self.cfg == nil || w.walk != walkFaults {
		return nil
	}
	l := w.ledger(c.self.cfg)
	for _, r := range alone.Check(l) {
		for _, missing := range r.Missing { // each text begins with the name
			name, _, _ := strings.Cut(missing, " ")
			if w.never(l, c.self.cfg, name) {
				return fmt.Errorf("threshold %q: %s", text, missing)
			}
		}
	}
	return nil
}

// never reports whether no figure of that name can exist: its first part is an interface or a stage, or it resembles a known name.
func (w *walker) never(l *stats.Ledger, cfg *spec.Config, name string) bool {
	of, _, dotted := strings.Cut(name, ".")
	switch {
	case stats.OfSome(name):
		return false
	case dotted && (of == "process" || of == "session" || cfg.Interface(of) != nil || w.names.stages[of]):
		return true
	}
	return !w.names.others && suggest.Nearest(name, l.Names()) != ""
}

// ledger returns a ledger with every figure that a session with this configuration may have.
func (w *walker) ledger(cfg *spec.Config) *stats.Ledger {
	l := &stats.Ledger{Metrics: map[string]float64{}}
	for _, i := range cfg.Interfaces {
		for _, q := range i.Queues() {
			for _, kind := range []stats.Kind{stats.Rx, stats.Tx, stats.Wire} {
				l.Lines = append(l.Lines, line(kind, i.Name, q.ID))
			}
		}
	}
	for _, name := range w.stageNames(cfg) {
		l.Lines = append(l.Lines, line(stats.Stage, name, 0), line(stats.Writer, name, 0))
	}
	for name := range w.names.metrics {
		l.Metrics[name] = 0
	}
	return l
}

func line(kind stats.Kind, name string, queue int) stats.Line {
	x := stats.Line{Kind: kind, Name: name, QueueID: queue}
	for _, r := range words.Reasons() {
		x.Dropped = append(x.Dropped, stats.Count{Name: r.Name})
	}
	for _, e := range words.Extras() {
		x.Extra = append(x.Extra, stats.Count{Name: e.Name})
	}
	for _, h := range words.Histograms() {
		x.Histograms = append(x.Histograms, &stats.Histogram{Name: h.Name})
	}
	return x
}
