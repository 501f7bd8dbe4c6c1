package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/task"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// Options specify what to run and its environment.
type Options struct {
	// Path is the script, "" for none; Args are its arguments, Env its variables (-e KEY=VALUE).
	Path string
	Args []string
	Env  map[string]string
	// Open applies to every daqiri.open.
	Open bindings.OpenOptions
	// AllowExec permits os.execute and io.popen.
	AllowExec bool
	// Stdlib has the shipped modules, NAME.lua in its root; nil: none.
	Stdlib fs.FS
	// SearchPath is a list of folders that require searches after the script's folder.
	SearchPath string
	// Stdout receives the script's output, Stderr its errors. Both must be safe for concurrent use.
	Stdout, Stderr io.Writer
	// Screen describes the terminal behind Stdout; nil: there is none.
	Screen func() picture.Screen
	// Log receives the script's log lines; level is debug, info, warn or error.
	Log func(level, text string, fields map[string]any)
	// LogLevel sets the minimum level of log lines, unless set is empty, and returns the previous one.
	LogLevel func(set string) (was string)
	// Prompt, if not nil, runs after the script until its input ends.
	Prompt *repl.Repl
	// Interactive enables hints for a person at the prompt.
	Interactive bool
	// Help returns the description of a name, for help(x) at the prompt; "" if there is none.
	Help func(word string) string
	// Search returns the best answers to words that Help doesn't explain; "" if there is none.
	Search func(words string) string
}

// Program is one run of a script or prompt: the main task and the tasks that it starts.
type Program struct {
	opts   Options
	loader *loader
	sched  *task.Scheduler
	shared *bindings.Process
	main   *task.Task
	done   chan struct{}

	stopOnce sync.Once
	stopped  chan struct{}            // closed by Stop
	executor atomic.Pointer[repl.Lua] // executor of the prompt

	// Used only on the main task's thread:
	names   *locals     // locals visible at a prompt
	state   *lua.LState // set while the task runs
	rt      *bindings.Runtime
	dropped *prompting // prompt opened while the script runs

	mu       sync.Mutex
	failures []Failure
	at       string // script position of a cancelled task
}

// New returns a Program that is not started.
func New(opts Options) (*Program, error) {
	folder := "."
	if opts.Path != "" {
		folder = filepath.Dir(opts.Path)
	}
	p := &Program{opts: opts, loader: newLoader(opts.Stdlib, folder, opts.SearchPath), sched: task.NewScheduler(),
		shared: bindings.NewProcess(), done: make(chan struct{}), stopped: make(chan struct{})}
	p.shared.Library = opts.Stdlib
	var err error
	p.main, err = p.sched.NewTask("main")
	return p, err
}

// Start runs the script, then the prompt, on the main task.
func (p *Program) Start() {
	p.main.Start(p.run)
	go p.join()
}

// Done returns a channel that is closed when every task has ended.
func (p *Program) Done() <-chan struct{} { return p.done }

// Stop requests an orderly end of every task: waiting calls return, and received packets are processed.
func (p *Program) Stop(reason string) {
	p.stopOnce.Do(func() { close(p.stopped) })
	for _, o := range p.shared.Sessions() {
		o.Stop(reason)
	}
	p.sched.StopAll(reason)
}

// Cancel ends the Lua code of every task that did not return after Stop.
func (p *Program) Cancel() { p.sched.CancelAll(ErrCancelled) }

// Interrupt ends the running chunk of the prompt, even if it waits.
func (p *Program) Interrupt() {
	if x := p.executor.Load(); x != nil {
		x.Interrupt()
		_ = p.main.Post(func() {}) // fails if the task has ended
	}
}

// Abandon waits for grace, then gives up on the tasks still running and returns their names.
func (p *Program) Abandon(grace time.Duration) []string {
	var names []string
	for _, t := range p.sched.JoinAll(grace) {
		names = append(names, t.Name())
	}
	return names
}

// Shared returns the state shared by the tasks: sessions, exit code, errors.
func (p *Program) Shared() *bindings.Process { return p.shared }

// Failures lists the errors that ended tasks, the main task's first. The list is final when the tasks have ended.
func (p *Program) Failures() []Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append([]Failure(nil), p.failures...)
	for _, err := range p.shared.Errors() {
		if !stops(err) {
			all = append(all, *newFailure(nil, err))
		}
	}
	return all
}

// CancelledAt returns the script position at which the main task was cancelled, or "" if it ended by itself.
func (p *Program) CancelledAt() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// Close frees the rest. All tasks must have ended.
func (p *Program) Close() {
	p.shared.Close()
	p.sched.Close()
}

// join waits for the main task, then stops the other tasks and waits for them.
func (p *Program) join() {
	defer close(p.done)
	<-p.main.Done()
	for tasks := p.sched.Tasks(); len(tasks) > 0; tasks = p.sched.Tasks() {
		p.sched.StopAll("the script ended")
		for _, t := range tasks {
			<-t.Done()
		}
	}
}

// run is the main task: it creates a state and runs the script and the prompt. Panics in Go functions called from Lua are errors already; other
// panics are recovered here, so that sessions are still closed and accounted for.
func (p *Program) run(t *task.Task) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v\n%s", r, debug.Stack())
			p.record(Failure{Cause: CauseInternal, Text: atFault + err.Error()})
		}
	}()
	rt := &bindings.Runtime{Task: t, Scheduler: p.sched, Main: true, Stdout: p.opts.Stdout, Screen: p.opts.Screen, Log: p.opts.Log, LogLevel: p.opts.LogLevel,
		Script: p.opts.Path, ScriptArgs: p.opts.Args, Env: p.opts.Env, Open: p.opts.Open, Shared: p.shared,
		NewState: p.newState, LoadModule: p.loader.load}
	L, err := p.newState(rt)
	if err != nil {
		return err
	}
	defer L.Close()
	defer rt.End(L)
	p.state, p.rt = L, rt
	defer func() { p.state = nil }()
	if p.opts.Path != "" {
		p.ended(L, t, p.chunk(L))
	}
	if _, asked := p.shared.Exit(); p.opts.Prompt != nil && !asked && t.Context().Err() == nil {
		p.prompt(L, rt)
	} else if p.dropped != nil && !asked && t.Context().Err() == nil {
		p.dropped.loop(L)
	}
	return nil
}

// chunk runs the main chunk of the script.
func (p *Program) chunk(L *lua.LState) error {
	text, err := p.read()
	var fault *fs.PathError
	switch {
	case errors.As(err, &fault):
		return fmt.Errorf("script %s: %w", p.opts.Path, fault.Err)
	case err != nil:
		return fmt.Errorf("script %s: %w", p.opts.Path, err)
	case bytes.IndexByte(text, 0) >= 0:
		return fmt.Errorf("script %s: this is not Lua text but a binary file", p.opts.Path)
	}
	var change func([]ast.Stmt) []ast.Stmt
	if p.opts.Prompt != nil || p.opts.Interactive { // the prompt can access the script's locals
		p.names = newLocals(L)
		p.names.install()
		change = p.names.handOver
	}
	fn, err := lua51.CompileChanged(L, p.opts.Path, string(text), change)
	if err != nil {
		return err
	}
	L.SetGlobal("arg", scriptArgs(L, p.opts.Path, p.opts.Args))
	L.Push(fn)
	for _, word := range p.opts.Args { // "...", as in lua
		L.Push(lua.LString(word))
	}
	return L.PCall(len(p.opts.Args), 0, nil)
}

// read returns the text of the script.
func (p *Program) read() ([]byte, error) {
	if shipped := p.opts.Open.Shipped; shipped != nil {
		return fs.ReadFile(shipped, p.opts.Path)
	}
	return textfile.Read(p.opts.Path)
}

// scriptArgs returns Lua's table arg: the script at 0, its arguments from 1.
func scriptArgs(L *lua.LState, path string, args []string) *lua.LTable {
	t := L.NewTable()
	t.RawSetInt(0, lua.LString(path))
	for i, a := range args {
		t.RawSetInt(i+1, lua.LString(a))
	}
	return t
}

// ended records how the main chunk ended and prints its error immediately, as closing sessions may take a while.
func (p *Program) ended(L *lua.LState, t *task.Task, err error) {
	f := judge(L, t.Context(), err)
	switch {
	case f != nil:
		fmt.Fprintln(p.opts.Stderr, state.VisibleLines(f.Text))
		f.Shown = true
		p.record(*f)
	case err != nil && context.Cause(t.Context()) == ErrCancelled:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.at, _, _ = strings.Cut(Trace(L, err), ": ")
	}
}

func (p *Program) record(f Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, f)
}
