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
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/task"
	"github.com/daqiri/daqiri-run/runtime/textfile"
)

// Options says what to run and what it may touch.
type Options struct {
	// Path is the script, "" for none; Args are its arguments and Env its variables (-e KEY=VALUE).
	Path string
	Args []string
	Env  map[string]string
	// Open applies to every daqiri.open.
	Open bindings.OpenOptions
	// AllowExec lets os.execute and io.popen start programs.
	AllowExec bool
	// Stdlib holds the modules shipped with the program, NAME.lua in its root; nil for none.
	Stdlib fs.FS
	// SearchPath is a list of folders, searched by require after the script's own.
	SearchPath string
	// Stdout takes what the script prints, Stderr its errors. Both are safe for concurrent use.
	Stdout, Stderr io.Writer
	// Log takes the script's log lines; level is debug, info, warn or error.
	Log func(level, text string, fields map[string]any)
	// LogLevel sets the level from which on lines are logged, unless it is empty, and returns what it was.
	LogLevel func(set string) (was string)
	// Prompt, when not nil, goes on after the script, until its input ends.
	Prompt *repl.Repl
	// Interactive says that a person is at the prompt, who gets hints.
	Interactive bool
	// Help is what is written of a name, for help(x) at the prompt; empty: nothing.
	Help func(word string) string
}

// Program is one run of a script, or of a prompt: the main task and those that it makes.
type Program struct {
	opts   Options
	loader *loader
	sched  *task.Scheduler
	shared *bindings.Process
	main   *task.Task
	done   chan struct{}

	stopOnce sync.Once
	stopped  chan struct{}            // closed by Stop
	executor atomic.Pointer[repl.Lua] // of the prompt

	// Of the main task's thread:
	names   *locals     // that a prompt sees
	state   *lua.LState // while the task runs
	rt      *bindings.Runtime
	dropped *prompting // a prompt that was opened while the script ran

	mu       sync.Mutex
	failures []Failure
	at       string // where a task was that had to be cancelled
}

// New makes a program that does not run yet.
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

// Start runs the script, and the prompt after it, on the main task.
func (p *Program) Start() {
	p.main.Start(p.run)
	go p.join()
}

// Done is closed when every task has ended.
func (p *Program) Done() <-chan struct{} { return p.done }

// Stop asks every task to end, orderly: what waits returns, what was received is dealt with.
func (p *Program) Stop(reason string) {
	p.stopOnce.Do(func() { close(p.stopped) })
	for _, o := range p.shared.Sessions() {
		o.Stop(reason)
	}
	p.sched.StopAll(reason)
}

// Cancel ends the Lua of every task that has not come back from Stop.
func (p *Program) Cancel() { p.sched.CancelAll(ErrCancelled) }

// Interrupt ends the chunk of the prompt that runs, also one that waits.
func (p *Program) Interrupt() {
	if x := p.executor.Load(); x != nil {
		x.Interrupt()
		_ = p.main.Post(func() {}) // a task that has ended waits no more
	}
}

// Abandon gives up on the tasks that are not back after grace and returns their names.
func (p *Program) Abandon(grace time.Duration) []string {
	var names []string
	for _, t := range p.sched.JoinAll(grace) {
		names = append(names, t.Name())
	}
	return names
}

// Shared is what the tasks have in common: their sessions, their exit code, their errors.
func (p *Program) Shared() *bindings.Process { return p.shared }

// Failures lists what ended tasks with an error, the main task's first. It is final once the tasks are over.
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

// CancelledAt is where in the script the main task was when it had to be cancelled, "" when it ended by itself.
func (p *Program) CancelledAt() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// Close frees what is left. No task may run any more.
func (p *Program) Close() {
	p.shared.Close()
	p.sched.Close()
}

// join waits for the main task, asks the others to end, and waits for those.
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

// run is the main task: a state, the script, the prompt. Panics of Lua's callers come out of it as errors already;
// any other is caught here, so that sessions are closed and accounted for all the same.
func (p *Program) run(t *task.Task) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v\n%s", r, debug.Stack())
			p.record(Failure{Cause: CauseInternal, Text: atFault + err.Error()})
		}
	}()
	rt := &bindings.Runtime{Task: t, Scheduler: p.sched, Main: true, Stdout: p.opts.Stdout, Log: p.opts.Log, LogLevel: p.opts.LogLevel,
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

// chunk runs the script's main chunk.
func (p *Program) chunk(L *lua.LState) error {
	text, err := p.read()
	var fault *fs.PathError
	switch {
	case errors.As(err, &fault):
		return fmt.Errorf("script %s: %w", p.opts.Path, fault.Err)
	case err != nil:
		return fmt.Errorf("script %s: %w", p.opts.Path, err)
	case bytes.IndexByte(text, 0) >= 0:
		return fmt.Errorf("script %s: this is no Lua text but a binary file", p.opts.Path)
	}
	var change func([]ast.Stmt) []ast.Stmt
	if p.opts.Prompt != nil || p.opts.Interactive { // which sees the script's locals
		p.names = newLocals(L)
		p.names.install()
		change = p.names.handOver
	}
	fn, err := compileWith(L, p.opts.Path, string(text), change)
	if err != nil {
		return err
	}
	L.SetGlobal("arg", scriptArgs(L, p.opts.Path, p.opts.Args))
	L.Push(fn)
	for _, word := range p.opts.Args { // "...", as lua has it
		L.Push(lua.LString(word))
	}
	return L.PCall(len(p.opts.Args), 0, nil)
}

// read is the text of the script.
func (p *Program) read() ([]byte, error) {
	if shipped := p.opts.Open.Shipped; shipped != nil {
		return fs.ReadFile(shipped, p.opts.Path)
	}
	return textfile.Read(p.opts.Path)
}

// scriptArgs is Lua's table arg: the script at 0, its arguments from 1.
func scriptArgs(L *lua.LState, path string, args []string) *lua.LTable {
	t := L.NewTable()
	t.RawSetInt(0, lua.LString(path))
	for i, a := range args {
		t.RawSetInt(i+1, lua.LString(a))
	}
	return t
}

// ended records how the main chunk ended and shows its error at once: closing sessions may take a while.
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
