package cli

import (
	"fmt"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/live"
	"github.com/daqiri/daqiri-run/host/report"
	"github.com/daqiri/daqiri-run/host/summary"
)

// openPage sets up the page for --report and --web.
func (r *runner) openPage() error {
	if r.flags.report == "" && r.flags.web == "" {
		return nil
	}
	r.recorder = report.NewRecorder(r.program.Shared())
	if r.flags.web == "" {
		return nil
	}
	page, err := live.Listen(r.flags.web)
	if err != nil {
		return exit.Fail(exit.Usage, fmt.Errorf("--web: %w", err))
	}
	r.page = page
	if err := r.showPage(); err != nil {
		return exit.Fail(exit.Internal, err)
	}
	r.g.Logger.Info("the run can be watched at " + page.URL())
	return nil
}

// record samples the run, once per second.
func (r *runner) record() {
	if r.recorder == nil {
		return
	}
	r.recorder.Look()
	if r.page != nil && r.page.Watched() {
		if err := r.showPage(); err != nil {
			r.g.Logger.Warn(err.Error())
		}
	}
}

// showPage updates the live page.
func (r *runner) showPage() error {
	now := summary.Collect(r.program.Shared().Sessions())
	r.describe(now, exit.OK)
	now.Cause = ""
	return r.recorder.Show(r.page, now)
}

// closePage writes the final page and ends the live one.
func (r *runner) closePage(whole *summary.Report) error {
	if r.recorder == nil {
		return nil
	}
	r.recorder.Look()
	if r.page != nil {
		if err := r.recorder.Show(r.page, whole); err != nil {
			r.g.Logger.Warn(err.Error())
		}
		r.page.Close()
	}
	if r.flags.report == "" {
		return nil
	}
	text, err := r.recorder.HTML(whole)
	if err == nil {
		err = writeOutput(r.flags.report, text)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
