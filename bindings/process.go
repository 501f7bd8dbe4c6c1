package bindings

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/daqiri/daqiri-run/runtime/format"
)

// Version is the program's version, also daqiri.version.
const Version = "0.1.0"

// Process is the state shared by all tasks of a process. The host reads it for the live line, the summary and the exit code. Safe for concurrent
// use.
type Process struct {
	Library fs.FS // with formats/NAME.lua; nil: none. Set before a state is created

	mu          sync.Mutex
	formats     map[string]*format.Format // formats of Library loaded so far
	heapFormats sync.Map                  // by *session.Stage: the *packetFormat of its heaps' items
	sessions    []*RunningSession
	errors      []error
	usage       string
	exit        *int
	begun       chan struct{}
}

// NewProcess returns the program's Process.
func NewProcess() *Process { return &Process{begun: make(chan struct{}, 1)} }

// Begun returns a channel that receives after a session has started.
func (p *Process) Begun() <-chan struct{} { return p.begun }

func (p *Process) began() {
	select {
	case p.begun <- struct{}{}:
	default:
	}
}

// Sessions lists the sessions in the order of opening.
func (p *Process) Sessions() []*RunningSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*RunningSession(nil), p.sessions...)
}

func (p *Process) add(o *RunningSession) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, o)
}

// close closes a session and keeps only its record.
func (p *Process) close(o *RunningSession) {
	record := o.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := slices.Index(p.sessions, o); k >= 0 {
		p.sessions[k] = record
		p.addUp()
	}
}

// Exit returns the code requested by os.exit (or by --help after the script).
func (p *Process) Exit() (code int, asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil {
		return 0, false
	}
	return *p.exit, true
}

func (p *Process) setExit(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit == nil {
		p.exit = &code
	}
}

// Fail records an error of a task started by the script.
func (p *Process) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, err)
}

// Errors lists the errors recorded by Fail.
func (p *Process) Errors() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]error(nil), p.errors...)
}

// Usage returns the script's help text, empty until daqiri.args is called.
func (p *Process) Usage() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usage
}

func (p *Process) setUsage(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.usage = text
}

// Finish stops every running session and closes its files; packets waiting for a task are dropped and counted. It needs no Lua state: the host
// calls it after the tasks have ended or were abandoned. It returns the errors of the writers.
func (p *Process) Finish() error {
	var errs []error
	for _, o := range p.Sessions() {
		errs = append(errs, o.finish("the script ended", nil))
	}
	return errors.Join(errs...)
}

// Close frees the sessions after the summary.
func (p *Process) Close() {
	for _, o := range p.Sessions() {
		p.close(o)
	}
}

// Exit is the cancellation cause of a process's tasks after os.exit.
type Exit struct{ Code int }

// Error returns a text with the exit code.
func (e *Exit) Error() string { return fmt.Sprintf("the script asked to exit with code %d", e.Code) }

// OpenError reports a valid configuration that can't be opened or started on this machine.
type OpenError struct{ Err error }

// Error returns the text of the underlying error.
func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause of the failed open.
func (e *OpenError) Unwrap() error { return e.Err }

// ArgsError reports command-line arguments of the script that daqiri.args rejects: a user error, not a script error.
type ArgsError struct{ Err error }

// Error returns the text of the rejection.
func (e *ArgsError) Error() string { return e.Err.Error() }

// Unwrap returns the rejection.
func (e *ArgsError) Unwrap() error { return e.Err }
