package bindings

import (
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/daqiri/daqiri-run/runtime/format"
)

// Version is the program's version, which daqiri.version shows.
const Version = "0.1.0"

// Process is what all tasks of a process share, and what the host reads for the live line, the
// summary and the exit code. Safe for concurrent use.
type Process struct {
	Library fs.FS // has formats/NAME.lua; nil: none. Set before any state is made

	mu          sync.Mutex
	formats     map[string]*format.Format // of Library, those that were asked for
	heapFormats sync.Map                  // by *session.Stage: the *packetFormat whose items its heaps have
	sessions    []*RunningSession
	errors      []error
	usage       string
	exit        *int
	begun       chan struct{}
}

// NewProcess makes the one Process of a program.
func NewProcess() *Process { return &Process{begun: make(chan struct{}, 1)} }

// Begun has something to receive when a session has been started since the last time.
func (p *Process) Begun() <-chan struct{} { return p.begun }

func (p *Process) began() {
	select {
	case p.begun <- struct{}{}:
	default:
	}
}

// Sessions lists the sessions in the order in which they were opened.
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

// close closes a session and keeps its record only.
func (p *Process) close(o *RunningSession) {
	record := o.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := slices.Index(p.sessions, o); k >= 0 {
		p.sessions[k] = record
		p.addUp()
	}
}

// Exit is the code that os.exit (or --help behind the script) asked for.
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

// Fail records the error of a task that the script started.
func (p *Process) Fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, err)
}

// Errors lists what Fail recorded.
func (p *Process) Errors() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]error(nil), p.errors...)
}

// Usage is the script's help text, empty until daqiri.args was called.
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

// Finish stops every session that still runs and closes its files; what waits for a task is dropped and counted. It
// needs no Lua state: the host calls it when the tasks have ended or were abandoned. It returns the
// writers' errors.
func (p *Process) Finish() error {
	var errs []error
	for _, o := range p.Sessions() {
		errs = append(errs, o.finish("the script ended", nil))
	}
	return errors.Join(errs...)
}

// Close gives back what the sessions hold, after the summary was made.
func (p *Process) Close() {
	for _, o := range p.Sessions() {
		p.close(o)
	}
}
