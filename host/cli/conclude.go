package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/summary"
)

// conclude prints errors and notes, builds the summary and returns the exit code.
func (r *runner) conclude() exit.Code {
	if r.con.screen != nil {
		r.con.screen.Clear()
	}
	stderr := r.con.stderr
	failures := r.program.Failures()
	for _, f := range failures {
		if !f.Shown {
			fmt.Fprintln(stderr, f.Text)
		}
	}
	if at := r.program.CancelledAt(); at != "" {
		fmt.Fprintf(stderr, "%s: the script was still busy here %v after the stop, and was ended\n", at, stopGrace)
	}
	if len(r.abandoned) > 0 {
		fmt.Fprintf(stderr, "task %s did not come back and was left behind: a call that waits outside of Lua, for a file or a program, can't be interrupted\n",
			strings.Join(r.abandoned, ", "))
	}
	report := summary.Collect(r.program.Shared().Sessions())
	if r.flags.summary == "none" {
		for _, text := range report.StorageErrors() {
			fmt.Fprintln(stderr, text)
		}
	}
	code := r.exitCode(failures, report)
	r.describe(report, code)
	for _, f := range failures {
		report.Errors = append(report.Errors, f.Text)
	}
	if err := r.printSummary(report); err != nil {
		code = exit.Worse(code, exit.Storage)
		report.Errors = append(report.Errors, err.Error())
		r.describe(report, code)
	}
	if err := r.writeSummary(report); err != nil {
		fmt.Fprintln(stderr, err)
		code = exit.Worse(code, exit.Storage)
	}
	if err := r.closePage(report); err != nil {
		fmt.Fprintln(stderr, err)
		code = exit.Worse(code, exit.Storage)
	}
	if len(r.abandoned) == 0 {
		r.program.Close()
	}
	return code
}

// exitCode returns the code with the highest precedence; see exit.Help.
func (r *runner) exitCode(failures []script.Failure, report *summary.Report) exit.Code {
	code := exit.OK
	asked, exits := r.program.Shared().Exit()
	if r.stoppedBy != nil && !exits {
		code = r.stoppedBy.Code()
	}
	if r.con.stdout.gone.Load() {
		code = exit.Worse(code, exit.Pipe)
	}
	if report.Violated() {
		code = exit.Worse(code, exit.Threshold)
	}
	if len(report.StorageErrors()) > 0 {
		code = exit.Worse(code, exit.Storage)
	}
	if report.DevicesFailed() {
		code = exit.Worse(code, exit.Device)
	}
	if r.prompt != nil && (r.prompt.Failed() || r.prompt.Err() != nil) {
		code = exit.Worse(code, exit.Script)
	}
	if asked != 0 {
		code = exit.Code(asked & 0xff)
	}
	for _, f := range failures {
		code = exit.Worse(code, causeCodes[f.Cause])
	}
	if !report.Balanced() {
		code = exit.Internal
	}
	return code
}

// causeCodes maps causes of failures to exit codes.
var causeCodes = map[script.Cause]exit.Code{script.CauseScript: exit.Script, script.CauseDevice: exit.Device, script.CauseStorage: exit.Storage,
	script.CauseUsage: exit.Usage, script.CauseConfig: exit.Config, script.CauseInternal: exit.Internal}

// describe adds process information to the report.
func (r *runner) describe(report *summary.Report, code exit.Code) {
	report.Version = fullVersion()
	report.Script, report.SHA256 = r.script.path, r.script.hash()
	report.ExitCode, report.Cause = int(code), code.String()
	report.Started, report.ElapsedS = r.started.UTC(), time.Since(r.started).Seconds()
	report.Abandoned = r.abandoned
	switch {
	case r.stoppedBy != nil:
		report.Reason = r.stoppedBy.Error()
	case r.con.stdout.gone.Load():
		report.Reason = "the output has no reader any more"
	}
}

// printSummary prints the summary on stderr. A closed pipe is not an error.
func (r *runner) printSummary(report *summary.Report) error {
	if r.flags.summary == "none" {
		return nil
	}
	style := summary.Style{Full: r.flags.summary == "full", Color: r.g.ColorStderr()}
	_, err := io.WriteString(r.con.stderr, report.Text(style))
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// writeSummary writes the --summary-json file.
func (r *runner) writeSummary(report *summary.Report) error {
	if r.flags.summaryJSON == "" {
		return nil
	}
	data, err := report.JSON()
	if err == nil {
		err = writeOutput(r.flags.summaryJSON, data)
	}
	if err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}
