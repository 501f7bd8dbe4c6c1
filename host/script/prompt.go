package script

import (
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// requestRoom is how many requests of the prompt may wait: a chunk, and completions that nobody waits for any more.
const requestRoom = 16

// prompting is the prompt as the main task sees it.
type prompting struct {
	p     *Program
	lua   *repl.Lua
	ready chan repl.Request // closed at the end of the input
	busy  bool              // a request is being served
}

// prompt serves the prompt, where the module daqiri is a global, and, between its chunks, the queues, timers and messages of the main task, until the
// input ends or the program stops. An error in a handler is shown and does not end it.
func (p *Program) prompt(L *lua.LState, rt *bindings.Runtime) {
	s := &prompting{p: p, lua: repl.NewLua(L), ready: make(chan repl.Request, requestRoom)}
	s.lua.Compile = func(name, source string) (*lua.LFunction, error) { return compile(L, name, source) }
	p.executor.Store(s.lua)
	if err := L.DoString(`if not rawget(_G, "daqiri") then daqiri = require "daqiri" end`); err != nil {
		fmt.Fprintln(p.opts.Stderr, Trace(L, err))
	}
	if err := p.opts.Prompt.Start(); err != nil {
		fmt.Fprintln(p.opts.Stderr, err)
	}
	over := false
	go s.forward(rt.Task, func() { over = true })
	for !over {
		switch err := rt.Serve(L, task.Never, func() bool { return over }); {
		case errors.Is(err, task.ErrIdle):
			over = s.idle() // the virtual clock stands still until something is typed
		case rt.Task.Context().Err() != nil, err != nil && stops(err):
			return
		case err != nil:
			fmt.Fprintln(p.opts.Stderr, Trace(L, err))
		}
	}
}

// forward hands the prompt's requests to the main task, each with a call that serves it; end is called there after
// the last. It runs on a goroutine of its own.
func (s *prompting) forward(t *task.Task, end func()) {
	defer close(s.ready)
	for r := range s.p.opts.Prompt.Requests() {
		s.ready <- r
		// A full inbox is no loss: what is in it are calls like this one.
		if err := t.Post(s.next); errors.Is(err, task.ErrEnded) {
			return
		}
	}
	_ = t.Post(end) // a task that has ended needs no word of it
}

// next serves the request that has waited longest, if idle has not served it already.
func (s *prompting) next() {
	select {
	case r, ok := <-s.ready:
		if ok {
			s.serve(r)
		}
	default:
	}
}

// idle waits for one request outside of the task's own wait and says whether that was the end.
func (s *prompting) idle() bool {
	select {
	case r, ok := <-s.ready:
		if !ok {
			return true
		}
		s.serve(r)
		return false
	case <-s.p.stopped:
		return true
	}
}

// serve runs a request. One that comes while a chunk waits inside another request gets no answer: a completion then,
// which gives up by itself.
func (s *prompting) serve(r repl.Request) {
	if s.busy {
		return
	}
	s.busy = true
	defer func() { s.busy = false }()
	r.Serve(s)
}

// Exec runs a chunk. That it ended with os.exit is no error.
func (s *prompting) Exec(name, source string) (string, error) {
	out, err := s.lua.Exec(name, source)
	if _, asked := s.p.shared.Exit(); asked {
		err = nil
	}
	return out, err
}

// Complete completes a name.
func (s *prompting) Complete(line string, pos int) (head string, completions []string, tail string) {
	return s.lua.Complete(line, pos)
}
