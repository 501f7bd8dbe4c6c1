// Package lua51 makes gopher-lua behave as Lua 5.1: it rewrites source before compilation, and replaces library functions that differ or have no
// bounds. It may import runtime/memory.
package lua51

import (
	"context"
	"fmt"
	"io"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// Compile compiles Lua source to a function. All code passes through it: constructs that gopher-lua's compiler (1.1.2) miscompiles are rewritten
// or refused, and its output is checked.
func Compile(L *lua.LState, name, source string) (*lua.LFunction, error) {
	return CompileChanged(L, name, source, nil)
}

// CompileChanged is Compile with a function that modifies the chunk first; change may be nil.
func CompileChanged(L *lua.LState, name, source string, change func([]ast.Stmt) []ast.Stmt) (fn *lua.LFunction, err error) {
	defer func() {
		if v := recover(); v != nil { // panic of the compiler
			err = fmt.Errorf("%s: cannot be compiled: %v", name, v)
		}
		if err != nil {
			fn, err = nil, &lua.ApiError{Type: lua.ApiErrorSyntax, Object: lua.LString(err.Error()), Cause: err}
		}
	}()
	chunk, err := ParseContext(ContextOf(L), name, source)
	if err != nil {
		return nil, err
	}
	if change != nil {
		chunk = change(chunk)
	}
	r := newRewriter(name)
	if chunk = r.chunk(chunk); r.err != nil {
		return nil, r.err
	}
	proto, err := lua.Compile(chunk, name)
	if err == nil {
		err = r.finish(proto)
	}
	if err != nil {
		return nil, err
	}
	NoteGlobals(L, proto)
	return L.NewFunctionFromProto(proto), nil
}

// ContextOf returns the context of a state.
func ContextOf(L *lua.LState) context.Context {
	if ctx := L.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// Parse parses Lua source and checks the limits of nesting.
func Parse(name, source string) ([]ast.Stmt, error) {
	return ParseContext(context.Background(), name, source)
}

// ParseContext is Parse with a context that can end it early.
func ParseContext(ctx context.Context, name, source string) ([]ast.Stmt, error) {
	source = SkipHead(source)
	if err := scan(name, source); err != nil {
		return nil, err
	}
	chunk, err := parse.Parse(&stoppable{ctx, strings.NewReader(source)}, name)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return chunk, checkLevels(name, chunk)
}

// stoppable is a reader that fails once a context ends, as the parser can't be interrupted otherwise.
type stoppable struct {
	ctx  context.Context
	text io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, io.EOF
	}
	return s.text.Read(p)
}

// SkipHead removes a byte order mark, which some editors write, and blanks a first line for the shell ("#!"), so that a script can be executable.
func SkipHead(source string) string {
	source = strings.TrimPrefix(source, "\ufeff")
	if !strings.HasPrefix(source, "#") {
		return source
	}
	if i := strings.IndexByte(source, '\n'); i >= 0 {
		return source[i:]
	}
	return ""
}
