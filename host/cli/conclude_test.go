package cli

import (
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/summary"
)

// TestExitCode: of several causes the one that exitHelp names first wins.
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
		want     ExitCode
	}{
		{"nothing", nil, []summary.Session{{}}, false, false, ExitOK},
		{"a signal", nil, nil, true, false, ExitInterrupted},
		{"a pipe over a signal", nil, nil, true, true, ExitPipe},
		{"a threshold over a pipe", nil, []summary.Session{violated}, true, true, ExitThreshold},
		{"storage over a threshold", nil, []summary.Session{violated, unwritten}, true, true, ExitStorage},
		{"storage over a threshold, the other way round", nil, []summary.Session{unwritten, violated}, false, false, ExitStorage},
		{"a device over storage", raised(script.CauseDevice), []summary.Session{unwritten}, false, false, ExitDevice},
		{"a stage that did not end", nil, []summary.Session{{Error: "stage disk did not end", Abandoned: []string{"disk"}}}, true, false, ExitDevice},
		{"a configuration over a device", append(raised(script.CauseDevice), raised(script.CauseConfig)...), nil, false, false, ExitConfig},
		{"usage over a configuration", append(raised(script.CauseConfig), raised(script.CauseUsage)...), nil, false, false, ExitUsage},
		{"the script over usage", append(raised(script.CauseScript), raised(script.CauseUsage)...), nil, true, false, ExitScript},
		{"a fault of ours over the script", append(raised(script.CauseInternal), raised(script.CauseScript)...), nil, false, false, ExitInternal},
		{"a ledger that does not add up", nil, []summary.Session{{}, unbalanced}, false, false, ExitInternal},
		{"the same with all else", raised(script.CauseScript), []summary.Session{violated, unwritten, unbalanced}, true, true, ExitInternal},
	} {
		p, err := script.New(script.Options{Path: "s.lua"})
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{program: p, con: &console{stdout: &stream{}}}
		if c.signal {
			r.stoppedBy = &signalled{syscall.SIGINT}
		}
		r.con.stdout.gone.Store(c.pipe)
		if got := r.exitCode(c.failures, &summary.Report{Sessions: c.sessions}); got != c.want {
			t.Errorf("%s: %d (%v), want %d", c.name, got, got, c.want)
		}
	}
}
