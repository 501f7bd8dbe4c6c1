package cli

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/host/attach"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/report"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/crashreport"
)

const (
	// stopGrace is how long the script has to come back from the first signal before its Lua is cancelled. Writers close
	// their files meanwhile, which takes seconds on a slow disk; a second signal ends the waiting.
	stopGrace = 5 * time.Second
	// cancelGrace is how long a cancelled task has to end; one that waits outside of Lua can't.
	cancelGrace = time.Second
	// oneSignal is how close together two signals are one: timeout(1), for one, sends its signal twice.
	oneSignal = 300 * time.Millisecond
	// tick is the period of the live line.
	tick = time.Second
)

// runner is one run as the host's goroutine sees it. It never runs Lua and never waits for a task without also
// watching for signals.
type runner struct {
	g       *state.Global
	flags   *runFlags
	script  found
	con     *console
	program *script.Program
	prompt  *repl.Repl // nil without one
	started time.Time

	signals   <-chan os.Signal
	stoppedBy *exit.Signalled // the first signal
	stoppedAt time.Time
	abandoned []string // tasks that did not come back
	live      *summary.Live
	top       *summary.Top
	recorder  *report.Recorder // with --report or --web
	page      *report.Server   // with --web
	others    *attach.Server   // with --attach
	otherLine *summary.Live    // what they are shown
	otherView *summary.Top
	viewed    time.Time // the last time that SIGUSR2 asked for the view
	reporter  *crashreport.Reporter
	warned    map[string]bool // faults of queues that were logged

	unreported bool // the crash reporter could not be started

	dropped chan struct{} // told when a prompt that was opened by Ctrl-\ has ended
}

// run starts the program, sees it to its end, prints the summary and returns its exit code as an error.
func (r *runner) run() error {
	end, err := r.showMetrics()
	if err == nil {
		err = r.openPage()
	}
	if err == nil {
		err = r.listenForOthers()
	}
	if err != nil {
		r.closePrompt()
		return err
	}
	return exit.Ended(r.supervise(end))
}

// supervise is run's work; settled is called when the sessions' figures are final.
func (r *runner) supervise(settled func()) exit.Code {
	signals, release := r.g.Signals()
	defer release()
	r.signals = signals
	r.live = summary.NewLive(r.program.Shared(), r.g.ColorStderr())
	r.top = summary.NewTop(r.program.Shared(), summary.Style{Color: r.g.ColorStderr()})
	defer r.forget()
	defer r.closeOthers()
	r.program.Start()
	if !r.wait(r.program.Done(), r.stop) || !r.wait(r.finish(), nil) {
		return r.leave()
	}
	r.closePrompt()
	settled()
	return r.conclude()
}

// wait returns true once done is closed, or once the tasks have been abandoned, and false at the second signal.
// stop is what the first signal does; nil: that has happened.
func (r *runner) wait(done <-chan struct{}, stop func()) bool {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	progress, end := r.progress()
	defer end()
	var late <-chan time.Time
	for {
		select {
		case <-done:
			return true
		case now := <-progress:
			r.line(now)
		case s := <-r.signals:
			if s == syscall.SIGUSR2 {
				r.view(time.Now())
				continue
			}
			drops := s == syscall.SIGQUIT && stop != nil && r.stoppedBy == nil && r.g.Interactive()
			if s == syscall.SIGQUIT && r.stoppedBy == nil && !drops {
				r.showStacks()
			}
			switch {
			case drops:
				r.dropIn()
			case s == syscall.SIGINT && stop != nil && r.prompt != nil && r.prompt.Interrupt():
			case r.stoppedBy != nil && time.Since(r.stoppedAt) < oneSignal:
			case r.stoppedBy != nil:
				return false
			default:
				r.stoppedBy, r.stoppedAt = &exit.Signalled{Signal: s}, time.Now()
				if stop != nil {
					stop()
					late = time.After(stopGrace)
				}
			}
		case <-r.dropped:
			r.dropOut()
		case <-late:
			r.program.Cancel()
			r.abandoned = r.program.Abandon(cancelGrace)
			return true
		case <-r.program.Shared().Begun():
			r.remember()
		case <-ticker.C:
			r.remember()
			r.warn()
			r.record()
			r.tellOthers()
			r.show()
		}
	}
}

// stop is the answer to the first signal.
func (r *runner) stop() {
	fmt.Fprintf(r.con.stderr, "%s: stopping; once more to leave at once\n", r.stoppedBy.Error())
	r.program.Stop(r.stoppedBy.Error())
}

// finish stops what still runs and closes the writers' files, on a goroutine of its own: a slow disk must not keep
// the second signal from working.
func (r *runner) finish() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.program.Shared().Finish() // the writers' errors stand in the report
	}()
	return done
}

// leave is the answer to the second signal: nothing but the terminal is put in order.
func (r *runner) leave() exit.Code {
	r.closePrompt()
	if r.con.screen != nil {
		r.con.screen.Clear()
	}
	return r.stoppedBy.Code()
}

// closePrompt gives the terminal back and lets held output through.
func (r *runner) closePrompt() {
	if r.prompt == nil {
		return
	}
	if err := r.prompt.Close(); err != nil {
		fmt.Fprintln(r.g.Stderr, err)
	}
}
