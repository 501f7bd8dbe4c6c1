package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/crashreport"
)

// diedReason is the reason in the JSON summary of a process that was killed.
const diedReason = "the process died: these are its last figures"

// remember passes the current ledger to the crash reporter, from the start of the first session.
func (r *runner) remember() {
	report := summary.Collect(r.program.Shared().Sessions())
	if !report.Ran() {
		return
	}
	if r.reporter == nil {
		stderr, ok := r.g.Stderr.(*os.File)
		if !ok || r.unreported {
			return
		}
		var err error
		if r.reporter, err = crashreport.Start(stderr); err != nil {
			r.unreported = true
			r.g.Logger.Debug(err.Error())
			return
		}
	}
	if err := r.reporter.Keep(r.lastRecord(report)); err != nil {
		r.g.Logger.Debug(err.Error())
	}
}

// lastRecord converts a report to the record that the crash reporter would print.
func (r *runner) lastRecord(report *summary.Report) *crashreport.Record {
	last := &crashreport.Record{}
	for _, s := range report.Sessions {
		last.Files = append(last.Files, s.Files...)
	}
	if r.flags.summary != "none" {
		last.Text = report.Text(summary.Style{Full: r.flags.summary == "full", Color: r.g.ColorStderr(), Cut: true})
	}
	if r.flags.summaryJSON == "" {
		return last
	}
	report.Died = true
	last.Path = filepath.Join(r.g.WorkDir, r.flags.summaryJSON)
	if filepath.IsAbs(r.flags.summaryJSON) {
		last.Path = r.flags.summaryJSON
	}
	for code, text := range map[exit.Code]*[]byte{exit.Internal: &last.Fatal, exit.Killed: &last.Killed} {
		r.describe(report, code)
		report.Reason = diedReason
		if data, err := report.JSON(); err == nil {
			*text = data
		}
	}
	return last
}

// forget ends the crash reporter without a report, after an orderly end.
func (r *runner) forget() {
	if r.reporter != nil {
		r.reporter.End()
	}
}

// showStacks prints the stacks of all goroutines, for SIGQUIT.
func (r *runner) showStacks() {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	fmt.Fprintf(r.con.stderr, "SIGQUIT at %s\n%s\n", time.Now().UTC().Format(time.RFC3339Nano), bytes.TrimSpace(stacks))
}
