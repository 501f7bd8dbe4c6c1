package cli

import (
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/summary"
)

// TestExitCode checks that among several causes the first in exit.Help wins.
func TestExitCode(t *testing.T) {
	violated := summary.Session{Violated: []string{"a.rx.dropped == 0"}}
	unwritten := summary.Session{Error: "writer disk: no space left on device"}
	unbalanced := summary.Session{Imbalance: []string{"disk: 31 in, 30 accounted for"}}
	raised := func(c script.Cause) []script.Failure { return []script.Failure{{Cause: c}} }
	for _, c := range []struct {
		name     string
		failures []script.Failure
		sessions []summary.Session
		signal   bool
		pipe     bool
		want     exit.Code
	}{
		{"nothing", nil, []summary.Session{{}}, false, false, exit.OK},
		{"a signal", nil, nil, true, false, exit.Interrupted},
		{"a pipe over a signal", nil, nil, true, true, exit.Pipe},
		{"a threshold over a pipe", nil, []summary.Session{violated}, true, true, exit.Threshold},
		{"storage over a threshold", nil, []summary.Session{violated, unwritten}, true, true, exit.Storage},
		{"storage over a threshold, the other way round", nil, []summary.Session{unwritten, violated}, false, false, exit.Storage},
		{"a device over storage", raised(script.CauseDevice), []summary.Session{unwritten}, false, false, exit.Device},
		{"a stage that did not end", nil, []summary.Session{{Error: "stage disk did not end", Abandoned: []string{"disk"}}}, true, false, exit.Device},
		{"a configuration over a device", append(raised(script.CauseDevice), raised(script.CauseConfig)...), nil, false, false, exit.Config},
		{"usage over a configuration", append(raised(script.CauseConfig), raised(script.CauseUsage)...), nil, false, false, exit.Usage},
		{"the script over usage", append(raised(script.CauseScript), raised(script.CauseUsage)...), nil, true, false, exit.Script},
		{"a fault of ours over the script", append(raised(script.CauseInternal), raised(script.CauseScript)...), nil, false, false, exit.Internal},
		{"a ledger that does not add up", nil, []summary.Session{{}, unbalanced}, false, false, exit.Internal},
		{"the same with all else", raised(script.CauseScript), []summary.Session{violated, unwritten, unbalanced}, true, true, exit.Internal},
	} {
		p, err := script.New(script.Options{Path: "s.lua"})
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{program: p, con: &console{stdout: &stream{}}}
		if c.signal {
			r.stoppedBy = &exit.Signalled{Signal: syscall.SIGINT}
		}
		r.con.stdout.gone.Store(c.pipe)
		if got := r.exitCode(c.failures, &summary.Report{Sessions: c.sessions}); got != c.want {
			t.Errorf("%s: %d (%v), want %d", c.name, got, got, c.want)
		}
	}
}
