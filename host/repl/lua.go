package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/daqiri/daqiri-run/runtime/memory"
)

// Lua is an Executor on one Lua state. Exec and Complete must run on the task that owns L; Interrupt may be called from any goroutine.
type Lua struct {
	L *lua.LState
	// Compile compiles a chunk; nil: L.Load.
	Compile func(name, source string) (*lua.LFunction, error)
	// Call calls a chunk's function and returns all results; nil: L.PCall.
	Call func(L *lua.LState, fn *lua.LFunction, args ...lua.LValue) ([]lua.LValue, error)
	// Env has names that chunks see before the globals; nil: none.
	Env *lua.LTable
	// Names lists names that only Env's metatable resolves; nil: none.
	Names func() []string

	mu     sync.Mutex
	parent context.Context // parent of ctx
	ctx    context.Context
	cancel context.CancelCauseFunc
}

var _ Executor = (*Lua)(nil)

// NewLua returns an Executor that runs chunks in L, under the current context of L.
func NewLua(L *lua.LState) *Lua { return &Lua{L: L} }

// Exec runs the chunk and returns its formatted values; the first value is assigned to the global _.
func (x *Lua) Exec(name, source string) (string, error) {
	L := x.L
	compile := x.Compile
	if compile == nil {
		compile = func(name, source string) (*lua.LFunction, error) { return L.Load(strings.NewReader(source), name) }
	}
	fn, err := compile(name, source)
	if err != nil {
		return "", errors.New(FormatError(L, err))
	}
	outer := L.Context()
	guard, guarded := outer.(*memory.Guard)
	var ctx context.Context
	if guarded { // continues within the chunk's context
		ctx = x.context(guard.Inner())
		L.SetContext(guard.Under(ctx))
	} else {
		ctx = x.context(outer)
		L.SetContext(ctx)
	}
	defer restoreContext(L, outer)

	results, err := x.call(fn)
	if err != nil {
		text := FormatError(L, err)
		if errors.Is(context.Cause(ctx), errInterrupted) {
			text = strings.Replace(text, context.Canceled.Error(), errInterrupted.Error(), 1)
		}
		return "", errors.New(text)
	}
	if len(results) == 0 {
		return "", nil
	}
	if globals, ok := L.Get(lua.GlobalsIndex).(*lua.LTable); ok {
		globals.RawSetString("_", results[0])
	}
	values := make([]string, len(results))
	for i, v := range results {
		values[i] = Format(L, v)
	}
	if strings.Contains(strings.Join(values, ""), "\n") {
		return strings.Join(values, "\n"), nil
	}
	return strings.Join(values, "\t"), nil
}

func (x *Lua) call(fn *lua.LFunction) ([]lua.LValue, error) {
	if x.Call != nil {
		return x.Call(x.L, fn)
	}
	top := x.L.GetTop()
	x.L.Push(fn)
	if err := x.L.PCall(0, lua.MultRet, nil); err != nil {
		return nil, err
	}
	defer x.L.SetTop(top)
	values := make([]lua.LValue, x.L.GetTop()-top)
	for i := range values {
		values[i] = x.L.Get(top + 1 + i)
	}
	return values, nil
}

// Complete is CompleteValue on L, including names that chunks see besides globals.
func (x *Lua) Complete(line string, pos int) (head string, completions []string, tail string) {
	var names []string
	if x.Names != nil {
		names = x.Names()
	}
	return completeIn(x.L, x.Env, names, line, pos)
}

// Interrupt ends the running chunk. A long call of the string library completes first.
func (x *Lua) Interrupt() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel != nil {
		x.cancel(errInterrupted)
	}
}

// context returns the context of the next chunk. Chunks share one until an interrupt cancels it: a coroutine keeps the context of the chunk that
// created it, and must outlive that chunk.
func (x *Lua) context(parent context.Context) context.Context {
	if parent == nil {
		parent = context.Background()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ctx == nil || x.ctx.Err() != nil || x.parent != parent {
		x.parent = parent
		x.ctx, x.cancel = context.WithCancelCause(parent)
	}
	return x.ctx
}

func restoreContext(L *lua.LState, ctx context.Context) {
	if ctx == nil {
		L.RemoveContext()
		return
	}
	L.SetContext(ctx)
}

// FormatError formats a Lua error: position and message, then the Lua stack. An error value that is not a string is formatted like any value.
func FormatError(L *lua.LState, err error) string {
	var raised *lua.ApiError
	if !errors.As(err, &raised) {
		return err.Error()
	}
	text := message(L, err)
	for line := range strings.Lines(raised.StackTrace) {
		line = strings.TrimSuffix(line, "\n")
		if frame, ok := strings.CutPrefix(line, "\t"); ok {
			line = "  " + frame
		}
		if line != "  [G]: ?" && line != "  [G]: in function (anonymous)" { // end of every stack; a metamethod
			text += "\n" + line
		}
	}
	return strings.TrimSuffix(text, "\nstack traceback:")
}

// message returns the error without its stack.
func message(L *lua.LState, err error) string {
	var syntax *parse.Error
	var raised *lua.ApiError
	switch {
	case !errors.As(err, &raised):
		return err.Error()
	case errors.As(raised.Cause, &syntax):
		return describeSyntax(syntax)
	case raised.Object == nil:
		return "nil"
	}
	if s, ok := raised.Object.(lua.LString); ok {
		return strings.TrimSpace(string(s))
	}
	return Format(L, raised.Object)
}

// describeSyntax formats a parse error like other messages.
func describeSyntax(e *parse.Error) string {
	if e.Pos.Line == parse.EOF {
		return fmt.Sprintf("%s: %s at the end of the chunk", e.Pos.Source, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s near '%s'", e.Pos.Source, e.Pos.Line, e.Pos.Column, e.Message, e.Token)
}
