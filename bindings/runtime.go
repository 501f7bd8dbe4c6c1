// Package bindings is the API of Lua scripts: one file for each Lua module or type. It imports runtime, gopher-lua and gopher-luar. The host
// creates a Lua state, fills a Runtime and calls Register; scripts then load the API with require "daqiri".
//
// A Lua state belongs to one task and is used only on that task's thread. Values of this package belong to their state; Process holds what all
// states of a process share and is safe for concurrent use.
//
// Types used in a script's inner loop (burst, packet, column, queue, connection, session) have hand-written metatables; cold data goes through
// gopher-luar (the configuration) or plain tables. A burst is a lease: it is valid until it is sent, freed or its handler ends. Later use raises
// an error with the script line that ended it.
package bindings

import (
	"io"
	"io/fs"
	"slices"

	lua "github.com/yuin/gopher-lua"

	luaformat "github.com/daqiri/daqiri-run/bindings/format"
	"github.com/daqiri/daqiri-run/bindings/lua51"
	"github.com/daqiri/daqiri-run/bindings/row"
	"github.com/daqiri/daqiri-run/runtime/memory"
	"github.com/daqiri/daqiri-run/runtime/picture"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Runtime connects one Lua state, and thereby one task, to its host. The exported fields are set before Register. All fields belong to the task's
// thread.
type Runtime struct {
	Task       *task.Task
	Scheduler  *task.Scheduler
	Main       bool // whether the task runs the main chunk
	Stdout     io.Writer
	Screen     func() picture.Screen // the terminal behind Stdout; nil: none
	Log        func(level, text string, fields map[string]any)
	LogLevel   func(set string) (was string) // set: new minimum level of log lines, "": unchanged
	Script     string
	ScriptArgs []string
	Env        map[string]string // -e KEY=VALUE
	Open       OpenOptions
	Shared     *Process

	// AtPrompt is set while a line typed at the prompt runs: a new function for a queue with one handler replaces that handler's.
	AtPrompt bool

	// NewState creates the state of a further task: libraries, module loader, Register. It is called on that task's thread; this package closes
	// the state.
	NewState func(rt *Runtime) (*lua.LState, error)
	// LoadModule finds and compiles the module that require(name) would load. May be nil.
	LoadModule func(L *lua.LState, name string) (*lua.LFunction, error)

	root      *lua.LState          // the state's main thread; a coroutine is another
	defs      map[string]*typeDef  // by LuaType
	types     map[string]*liveType // registered so far
	leases    *session.Leases      // held by the state
	random    random
	exported  int               // values in the message being copied
	opened    []*RunningSession // by this state
	memory    string            // memory option of the last session; empty: as configured
	place     place             // what the task runs; determines which calls may wait
	parent    *task.Task        // of a spawned task
	readySent bool              // ready was sent to the parent
	inbox     *lua.LFunction    // on_message of a spawned task
	tasks     map[*task.Task]*taskHandle
	mail      []any  // queued for daqiri.receive
	stopped   string // reason of a requested stop
	selectors map[string]*session.Selector
	numbers   map[string]*session.Number
	formats   map[string]*luaformat.Format // declared by the script, by name
	used      map[string]*luaformat.Format // cache of formats used by name
	listeners map[*session.Interface]*listener
	calls     *lua51.Calls    // errors for calls of values that are not functions
	threads   *lua51.Threads  // of pcall and coroutines
	handlers  []*burstHandler // of this task
	listening int             // number of handlers of any kind, which keep a spawned task running
	began     int64           // scheduler time at Register

	columnValues []uint64 // see columnRoom
	columnHas    []uint8
}

// OpenOptions are command-line options that apply to every daqiri.open.
type OpenOptions struct {
	Set                   []spec.Override
	Sources               []spec.SourceFile
	Engine, Memory, Cores string
	DefaultConfig         bool // file names are ignored: always the default session
	KeepLogLevel          bool // the command line set the level; log_level of configurations is ignored
	Overwrite             bool // default of every option 'overwrite'
	// Shipped holds the files of a script that is part of the program, including the script; nil: the script is a file.
	Shipped fs.FS
}

// Register installs the API in a state with open standard libraries, and binds the state to the task's context.
func Register(L *lua.LState, rt *Runtime) {
	rt.root = L
	rt.defs, rt.types = map[string]*typeDef{}, map[string]*liveType{}
	for _, def := range typeDefs {
		rt.defs[def.name] = def
	}
	rt.tasks = map[*task.Task]*taskHandle{}
	rt.leases = session.NewLeases()
	rt.began = rt.Scheduler.Now()
	watched := memory.New(rt.Task.Context())
	rt.Task.AtExit(watched.Release)
	L.SetContext(watched)
	rt.preload()
	rt.replaceGlobals()
	lua51.ReplaceStrings(L)
	rt.threads = lua51.NewThreads(L)
	rt.calls = lua51.ExplainCalls(L, row.Describe, rt.fieldCalled)
	rt.strictGlobals()
}

// End must be called on the task's thread after the main chunk, the prompt or a task's function has ended and before the state is closed. It
// stops this state's sessions in order, running handlers for what was received, and frees the state's bursts.
func (rt *Runtime) End(L *lua.LState) {
	serve := rt.serveReady(L)
	if rt.Task.Context().Err() != nil {
		serve = nil
	}
	for _, o := range rt.opened {
		err := rt.protect(L, func() { _ = o.finish("the script ended", serve) })
		if err != nil {
			rt.Shared.Fail(err)
			_ = o.finish("an error in a handler", nil) // reported by the summary
		}
	}
	if n := rt.leases.ReleaseAll(); n > 0 {
		rt.Log("debug", "bursts that the script still held were freed", map[string]any{"task": rt.Task.Name(), "bursts": n})
	}
}

// forget closes a session of this state and removes the state's references to it.
func (rt *Runtime) forget(o *RunningSession) {
	rt.Shared.close(o)
	rt.opened = slices.DeleteFunc(rt.opened, func(x *RunningSession) bool { return x == o })
	rt.handlers = slices.DeleteFunc(rt.handlers, func(h *burstHandler) bool { return h.of == o })
	for i := range rt.listeners {
		if i.Session() == o.s {
			delete(rt.listeners, i)
		}
	}
}
