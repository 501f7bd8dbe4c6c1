package cli

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/host/attach"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/live"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/report"
	"github.com/daqiri/daqiri-run/host/script"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/crashreport"
)

const (
	// stopGrace is the time from the first signal until the script's Lua is cancelled. Writers close their files meanwhile, which may take
	// seconds on a slow disk; a second signal ends the wait.
	stopGrace = 5 * time.Second
	// cancelGrace is the time given to a cancelled task; a task blocked outside Lua can't end.
	cancelGrace = time.Second
	// oneSignal is the interval within which two signals count as one: timeout(1), for example, sends its signal twice.
	oneSignal = 300 * time.Millisecond
	// tick is the period of the live line.
	tick = time.Second
)

// runner is one run, controlled by the host's goroutine. It never runs Lua, and handles signals whenever it waits for a task.
type runner struct {
	g       *state.Global
	flags   *runFlags
	script  found
	con     *console
	program *script.Program
	prompt  *repl.Repl // nil: none
	started time.Time

	signals   <-chan os.Signal
	stoppedBy *exit.Signalled // the first signal
	stoppedAt time.Time
	abandoned []string // tasks that did not end
	live      *summary.Live
	top       *summary.Top
	recorder  *report.Recorder // with --report or --web
	page      *live.Server     // with --web
	others    *attach.Server   // with --attach
	otherLine *summary.Live    // live line for attached clients
	otherView *summary.Top
	viewed    time.Time // last view requested by SIGUSR2
	reporter  *crashreport.Reporter
	warned    map[string]bool // queue errors already logged

	unreported bool // starting the crash reporter failed

	dropped chan struct{} // receives when a prompt opened by Ctrl-\ has ended
}

// run starts the program, waits for its end, prints the summary and returns the exit code as an error.
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

// supervise implements run; settled is called when the sessions' figures are final.
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

// wait returns true when done is closed or the tasks were abandoned, and false at the second signal. stop is called at the first signal; nil:
// that signal was already handled.
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
			r.sendToClients()
			r.show()
		}
	}
}

// stop stops the program at the first signal.
func (r *runner) stop() {
	fmt.Fprintf(r.con.stderr, "%s: stopping; once more to leave at once\n", r.stoppedBy.Error())
	r.program.Stop(r.stoppedBy.Error())
}

// finish stops running sessions and closes the writers' files on a separate goroutine, so that a slow disk does not block the second signal.
func (r *runner) finish() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.program.Shared().Finish() // the report has the writers' errors
	}()
	return done
}

// leave handles the second signal: it only restores the terminal.
func (r *runner) leave() exit.Code {
	r.closePrompt()
	if r.con.screen != nil {
		r.con.screen.Clear()
	}
	return r.stoppedBy.Code()
}

// closePrompt restores the terminal and prints buffered output.
func (r *runner) closePrompt() {
	if r.prompt == nil {
		return
	}
	if err := r.prompt.Close(); err != nil {
		fmt.Fprintln(r.g.Stderr, err)
	}
}
