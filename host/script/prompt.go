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

// requestRoom is the maximum number of queued requests: a chunk, and completions that timed out.
const requestRoom = 16

// prompting serves a prompt on the main task.
type prompting struct {
	p     *Program
	lua   *repl.Lua
	rt    *bindings.Runtime
	names *locals
	ready chan repl.Request // closed at the end of the input
	busy  atomic.Bool       // a request is being served

	prompt   *repl.Repl          // nil: an attached client
	requests <-chan repl.Request // requests to serve
	shown    strings.Builder     // help for an attached client, part of the running chunk's output
	over     bool                // the input has ended
	ended    func()              // called at the end of the input; may be nil
}

// prompt serves the prompt and, between its chunks, the queues, timers and messages of the main task, until the input ends or the program stops.
// The module daqiri is a global. An error in a handler is printed and does not end the prompt.
func (p *Program) prompt(L *lua.LState, rt *bindings.Runtime) {
	s := p.prompting(L, rt, p.opts.Prompt)
	s.begin(L)
	s.loop(L)
}

// begin starts reading the prompt's input.
func (s *prompting) begin(L *lua.LState) {
	if err := L.DoString(`if not rawget(_G, "daqiri") then daqiri = require "daqiri" end`); err != nil {
		fmt.Fprintln(s.p.opts.Stderr, state.VisibleLines(Trace(L, err)))
	}
	if err := s.prompt.Start(); err != nil {
		fmt.Fprintln(s.p.opts.Stderr, state.VisibleLines(err.Error()))
	}
	go s.forward(s.rt.Task, func() { s.over = true })
}

// loop serves the prompt and all other items until the input ends.
func (s *prompting) loop(L *lua.LState) {
	for !s.over {
		switch err := s.rt.Serve(L, task.Never, func() bool { return s.over }); {
		case errors.Is(err, task.ErrIdle):
			s.over = s.idle() // the virtual clock waits for input
		case s.rt.Task.Context().Err() != nil, err != nil && stops(err):
			return
		case err != nil:
			fmt.Fprintln(s.p.opts.Stderr, state.VisibleLines(Trace(L, err)))
		}
	}
}

// Attach serves requests from another source while the main task waits, until their channel is closed. They neither end the program nor keep it
// running. interrupt ends the running chunk.
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

// DropIn opens a prompt on a running script: it is served while the main task waits, and continues after the script's end. ended is called on its
// own goroutine when the input has ended. It returns an error if the main task has ended or can't receive calls.
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

// prompting returns the server of a prompt on L.
func (p *Program) prompting(L *lua.LState, rt *bindings.Runtime, prompt *repl.Repl) *prompting {
	if p.names == nil {
		p.names = newLocals(L)
	}
	s := &prompting{p: p, rt: rt, prompt: prompt, lua: repl.NewLua(L), names: p.names, ready: make(chan repl.Request, requestRoom)}
	s.lua.Compile, s.lua.Env, s.lua.Names = s.names.compile, s.names.env, s.names.names
	s.lua.Call = rt.CallApart
	s.names.env.RawSetString("help", s.helpValue(L))
	if prompt != nil {
		s.requests = prompt.Requests()
		p.executor.Store(s.lua)
	}
	return s
}

// helpText is the output of help().
const helpText = `help WORDS explains a name of the API (help q:alloc, help on_burst), a key of configurations or a topic (help ledger), and finds
other words in the documents: help count lost packets. help(x) explains a value: help(q), help(q.alloc), help(daqiri).
Tab completes names; _ is the last value. Ctrl-C ends what runs, or drops the line; Ctrl-D drops a block that is not complete, or ends
the prompt.`

// helpValue returns the name help of the prompt: it can be called, and as a value it displays what it is for.
func (s *prompting) helpValue(L *lua.LState) *lua.LUserData {
	value, meta := L.NewUserData(), L.NewTable()
	meta.RawSetString("__call", L.NewFunction(func(L *lua.LState) int {
		L.Remove(1)
		return s.help(L)
	}))
	meta.RawSetString("__show", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString(helpText))
		return 1
	}))
	value.Metatable = meta
	return value
}

// help implements help(x) at the prompt: it prints the reference of a name or value, for an attached client at its side alone.
func (s *prompting) help(L *lua.LState) int {
	v := L.Get(1)
	word, text := s.rt.HelpName(v), helpText
	if name, ok := v.(lua.LString); ok {
		word = string(name)
	}
	if word != "" && s.p.opts.Help != nil {
		text = s.p.opts.Help(word)
		if text == "" && v.Type() == lua.LTString && s.p.opts.Search != nil {
			text = s.p.opts.Search(word)
		}
	} else if v != lua.LNil && L.GetTop() > 0 {
		text = ""
	}
	if text == "" {
		what := "this " + v.Type().String()
		if v.Type() == lua.LTString {
			what = repl.Format(L, v)
		}
		L.RaiseError("help: %s is not documented: try other words; help() describes what help takes", what)
	}
	text = strings.TrimRight(text, "\n") + "\n"
	if s.prompt == nil {
		s.shown.WriteString(text)
	} else {
		fmt.Fprint(s.p.opts.Stdout, text)
	}
	return 0
}

// forward passes the prompt's requests to the main task, each with a call that serves it; end is called on the task after the last request. It
// runs on its own goroutine.
func (s *prompting) forward(t *task.Task, end func()) {
	defer close(s.ready)
	defer func() {
		if s.ended != nil {
			s.ended()
		}
	}()
	for r := range s.requests {
		s.ready <- r
		// A full inbox loses nothing: it contains calls that serve the same queue.
		if err := t.Post(s.next); errors.Is(err, task.ErrEnded) {
			return
		}
	}
	_ = t.Post(end) // fails if the task has ended
}

// next serves the oldest request, if idle has not served it already.
func (s *prompting) next() {
	select {
	case r, ok := <-s.ready:
		if ok {
			s.serve(r)
		}
	default:
	}
}

// idle waits for one request outside the task's wait and reports whether the input has ended.
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

// serve runs a request. A request that arrives while a chunk waits inside another request is dropped: it is a completion, which times out.
func (s *prompting) serve(r repl.Request) {
	if s.busy.Swap(true) {
		return
	}
	defer s.busy.Store(false)
	r.Serve(s)
}

// Exec runs a chunk. Ending with os.exit is not an error.
func (s *prompting) Exec(name, source string) (string, error) {
	s.names.look()
	s.rt.AtPrompt = true
	s.shown.Reset()
	out, err := s.lua.Exec(name, source)
	s.rt.AtPrompt = false
	out = strings.TrimSuffix(s.shown.String()+out, "\n")
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
