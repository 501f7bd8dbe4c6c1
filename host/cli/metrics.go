package cli

import (
	"errors"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/runtime/metrics"
)

// showMetrics starts the endpoint and the export requested by flags and environment; end stops them.
func (r *runner) showMetrics() (end func(), err error) {
	o := metrics.Options{Listen: r.flags.metrics, OTLP: r.flags.otlp, Version: fullVersion(), Log: logPlain(logTo(r.g.Logger))}
	if o.OTLP == "" {
		if o.FromEnv, err = metrics.OTLPFromEnv(r.g.Env); err != nil {
			return nil, exit.Fail(exit.Usage, err)
		}
	}
	if o.Listen == "" && o.OTLP == "" && !o.FromEnv {
		return func() {}, nil
	}
	e, err := metrics.Start(o, r.openSessions)
	switch {
	case errors.Is(err, metrics.ErrOption):
		return nil, exit.Fail(exit.Usage, err)
	case err != nil:
		return nil, exit.Fail(exit.Device, err)
	}
	if url := e.URL(); url != "" {
		o.Log("info", "metrics for Prometheus are at "+url)
	}
	return e.Close, nil
}

// openSessions lists the sessions to export. A closed session is omitted: a new session of the same name counts from 0, which collectors treat as
// a counter reset.
func (r *runner) openSessions() []metrics.Session {
	var open []metrics.Session
	for _, o := range r.program.Shared().Sessions() {
		if !o.Closed() {
			open = append(open, metrics.Session{Name: o.Name(), Ledger: o.Ledger()})
		}
	}
	return open
}

func logPlain(log func(level, text string, fields map[string]any)) func(level, text string) {
	return func(level, text string) { log(level, text, nil) }
}
