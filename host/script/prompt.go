package script

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// requestRoom is how many requests of the prompt may wait: a chunk, and completions that nobody waits for any more.
const requestRoom = 16

// prompting is the prompt as the main task sees it.
type prompting struct {
	p     *Program
	lua   *repl.Lua
	rt    *bindings.Runtime
	names *locals
	ready chan repl.Request // closed at the end of the input
	busy  atomic.Bool       // a request is being served

	prompt   *repl.Repl          // nil: attached
	requests <-chan repl.Request // what it asks
	over     bool                // the input has ended
	ended    func()              // called then; nil
}

// prompt serves the prompt, where the module daqiri is a global, and, between its chunks, the queues, timers and messages of the main task, until the
// input ends or the program stops. An error in a handler is shown and does not end it.
func (p *Program) prompt(L *lua.LState, rt *bindings.Runtime) {
	s := p.prompting(L, rt, p.opts.Prompt)
	s.begin(L)
	s.loop(L)
}

// begin starts the prompt.
func (s *prompting) begin(L *lua.LState) {
	if err := L.DoString(`if not rawget(_G, "daqiri") then daqiri = require "daqiri" end`); err != nil {
		fmt.Fprintln(s.p.opts.Stderr, state.VisibleLines(Trace(L, err)))
	}
	if err := s.prompt.Start(); err != nil {
		fmt.Fprintln(s.p.opts.Stderr, state.VisibleLines(err.Error()))
	}
	go s.forward(s.rt.Task, func() { s.over = true })
}

// loop serves the prompt and everything else until the input ends.
func (s *prompting) loop(L *lua.LState) {
	for !s.over {
		switch err := s.rt.Serve(L, task.Never, func() bool { return s.over }); {
		case errors.Is(err, task.ErrIdle):
			s.over = s.idle() // the virtual clock stands still until something is typed
		case s.rt.Task.Context().Err() != nil, err != nil && stops(err):
			return
		case err != nil:
			fmt.Fprintln(s.p.opts.Stderr, state.VisibleLines(Trace(L, err)))
		}
	}
}

// Attach serves requests that come from elsewhere, until their channel is closed, while the main task waits. They end nothing and keep nothing
// from ending. interrupt ends the chunk that runs.
func (p *Program) Attach(requests <-chan repl.Request) (interrupt func(), err error) {
	var s atomic.Pointer[prompting]
	interrupt = func() {
		if s := s.Load(); s != nil && s.busy.Load() {
			s.lua.Interrupt()
			_ = p.main.Post(func() {})
		}
	}
	return interrupt, p.main.Post(func() {
		if p.state == nil {
			return
		}
		made := p.prompting(p.state, p.rt, nil)
		made.requests = requests
		s.Store(made)
		go made.forward(p.rt.Task, func() {})
	})
}

// DropIn opens a prompt on a script that runs: it is served while the main task waits, and goes on after the script's end. ended is
// called, on a goroutine of its own, when its input has ended. The error is that the main task has ended, or can't be told.
func (p *Program) DropIn(prompt *repl.Repl, ended func()) error {
	return p.main.Post(func() {
		if p.state == nil || p.dropped != nil && !p.dropped.over {
			return
		}
		p.dropped = p.prompting(p.state, p.rt, prompt)
		p.dropped.ended = ended
		p.dropped.begin(p.state)
	})
}

// prompting makes what serves a prompt on L.
func (p *Program) prompting(L *lua.LState, rt *bindings.Runtime, prompt *repl.Repl) *prompting {
	if p.names == nil {
		p.names = newLocals(L)
	}
	s := &prompting{p: p, rt: rt, prompt: prompt, lua: repl.NewLua(L), names: p.names, ready: make(chan repl.Request, requestRoom)}
	s.lua.Compile, s.lua.Env, s.lua.Names = s.names.compile, s.names.env, s.names.names
	s.lua.Call = rt.CallApart
	s.names.env.RawSetString("help", L.NewFunction(s.help))
	if prompt != nil {
		s.requests = prompt.Requests()
		p.executor.Store(s.lua)
	}
	return s
}

// helpText is what help() says.
const helpText = `help(x) explains a name of the API ("q:alloc", "on_burst"), a key of configurations, a topic ("ledger"), or a value: help(q),
help(q.alloc), help(daqiri). Tab completes names; _ is the last value. Ctrl-C ends what runs, or drops the line; Ctrl-D drops a block that
is not complete, or ends the prompt.`

// help is help(x) of the prompt: it prints what the reference says of a name or a value.
func (s *prompting) help(L *lua.LState) int {
	v := L.Get(1)
	word, text := s.rt.HelpName(v), helpText
	if name, ok := v.(lua.LString); ok {
		word = string(name)
	}
	if word != "" && s.p.opts.Help != nil {
		text = s.p.opts.Help(word)
	} else if v != lua.LNil && L.GetTop() > 0 {
		text = ""
	}
	if text == "" {
		what := "this " + v.Type().String()
		if v.Type() == lua.LTString {
			what = repl.Format(L, v)
		}
		L.RaiseError("help: nothing is written of %s; help() says what there is", what)
	}
	fmt.Fprintln(s.p.opts.Stdout, strings.TrimRight(text, "\n"))
	return 0
}

// forward hands the prompt's requests to the main task, each with a call that serves it; end is called there after
// the last. It runs on a goroutine of its own.
func (s *prompting) forward(t *task.Task, end func()) {
	defer close(s.ready)
	defer func() {
		if s.ended != nil {
			s.ended()
		}
	}()
	for r := range s.requests {
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
	if s.busy.Swap(true) {
		return
	}
	defer s.busy.Store(false)
	r.Serve(s)
}

// Exec runs a chunk. That it ended with os.exit is no error.
func (s *prompting) Exec(name, source string) (string, error) {
	s.names.look()
	s.rt.AtPrompt = true
	out, err := s.lua.Exec(name, source)
	s.rt.AtPrompt = false
	if hint := s.names.hint(); hint != "" && s.p.opts.Interactive {
		out = strings.TrimPrefix(out+"\n"+hint, "\n")
	}
	if _, asked := s.p.shared.Exit(); asked {
		err = nil
	}
	return out, err
}

// Complete completes a name.
func (s *prompting) Complete(line string, pos int) (head string, completions []string, tail string) {
	s.names.look()
	return s.lua.Complete(line, pos)
}
