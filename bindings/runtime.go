package bindings

import (
	"io"
	"io/fs"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/runtime/memory"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Runtime is what one Lua state, and so one task, needs from its host. The exported fields are set
// before Register; all of it belongs to the task's own thread.
type Runtime struct {
	Task       *task.Task
	Scheduler  *task.Scheduler
	Main       bool // the task that runs the main chunk
	Stdout     io.Writer
	Log        func(level, text string, fields map[string]any)
	LogLevel   func(set string) (was string) // set: the level from which on lines are logged, "": as it is
	Script     string
	ScriptArgs []string
	Env        map[string]string // -e KEY=VALUE
	Open       OpenOptions
	Shared     *Process

	// AtPrompt says that what runs was typed: a function for a queue with one handler takes that one's place.
	AtPrompt bool

	// NewState makes a state for a further task: libraries, module loader, Register. It is called on
	// that task's thread; this package closes the state.
	NewState func(rt *Runtime) (*lua.LState, error)
	// LoadModule finds and compiles what require(name) would load. May be nil.
	LoadModule func(L *lua.LState, name string) (*lua.LFunction, error)

	root      *lua.LState          // the state's main thread; a coroutine is another
	defs      map[string]*typeDef  // by luaType
	types     map[string]*liveType // those in use
	leases    *session.Leases      // what the state holds
	random    random
	exported  int               // values of a message that is being copied
	opened    []*RunningSession // by this state
	memory    string            // that the last of them was to have; empty: as its configuration says
	place     place             // of the task: what may wait
	parent    *task.Task        // of a spawned task
	told      bool              // that it is ready
	inbox     *lua.LFunction    // on_message of a spawned task
	tasks     map[*task.Task]*taskHandle
	mail      []any  // messages that wait for daqiri.receive
	stopped   string // why the task is to end, once it was told
	selectors map[string]*session.Selector
	numbers   map[string]*session.Number
	formats   map[string]*packetFormat // that the script declared, by name
	used      map[string]*packetFormat // those whose names stood where a format is taken
	listeners map[*session.Interface]*listener
	noCall    *lua.LFunction  // __call of what can't be called
	bare      *lua.LTable     // the metatable of values that have none, for noCall
	current   *lua.LState     // the thread on which a call may wait: root, or the innermost pcall's
	threads   []*lua.LState   // for pcall
	nested    int             // calls of pcall and resume inside each other
	handlers  []*burstHandler // of this task
	listening int             // handlers of any kind: a spawned task goes on for them
	began     int64           // scheduler's time at Register

	columnValues []uint64 // see columnRoom
	columnHas    []uint8
}

// OpenOptions come from the command line and apply to every daqiri.open.
type OpenOptions struct {
	Set                   []spec.Override
	Sources               []spec.SourceFile
	Engine, Memory, Cores string
	DefaultConfig         bool // file names are ignored: everything runs on the default session
	KeepLogLevel          bool // whatever log_level a configuration has: the command line gave one
	Overwrite             bool // the default of every option 'overwrite'
	// Shipped has the files of a script that is part of the program, itself among them; nil: the script is a file.
	Shipped fs.FS
}

// Register makes the API known to a state whose standard libraries are open, and ties the state to
// the task: its context is the task's.
func Register(L *lua.LState, rt *Runtime) {
	rt.root, rt.current = L, L
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
	rt.replaceStrings()
	rt.replaceCoroutines()
	rt.explainCalls()
	rt.strictGlobals()
}

// End is called when the main chunk, the prompt or a task's function has ended, on the task's own thread and before
// the state is closed: it stops this state's sessions in order, where handlers still get what was
// received, and frees what the state held.
func (rt *Runtime) End(L *lua.LState) {
	serve := rt.serveReady(L)
	if rt.Task.Context().Err() != nil {
		serve = nil
	}
	for _, o := range rt.opened {
		err := rt.protect(L, func() { _ = o.finish("the script ended", serve) })
		if err != nil {
			rt.Shared.Fail(err)
			_ = o.finish("an error in a handler", nil) // its writers' errors are the summary's
		}
	}
	if n := rt.leases.ReleaseAll(); n > 0 {
		rt.Log("debug", "bursts that the script still held were freed", map[string]any{"task": rt.Task.Name(), "bursts": n})
	}
}

// forget closes a session of this state; what the state keeps of it goes with the script's own handles.
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
