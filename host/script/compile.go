package script

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/daqiri/daqiri-run/bindings"
)

// compile compiles Lua source to a function. All code passes through it: constructs that gopher-lua's compiler (1.1.2) miscompiles are rewritten
// or refused, and its output is checked.
func compile(L *lua.LState, name, source string) (*lua.LFunction, error) {
	return compileWith(L, name, source, nil)
}

// compileWith is compile with a function that modifies the chunk first; change may be nil.
func compileWith(L *lua.LState, name, source string, change func([]ast.Stmt) []ast.Stmt) (fn *lua.LFunction, err error) {
	defer func() {
		if v := recover(); v != nil { // panic of the compiler
			err = fmt.Errorf("%s: cannot be compiled: %v", name, v)
		}
		if err != nil {
			fn, err = nil, &lua.ApiError{Type: lua.ApiErrorSyntax, Object: lua.LString(err.Error()), Cause: err}
		}
	}()
	chunk, err := parseSource(contextOf(L), name, source)
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
	bindings.NoteGlobals(L, proto)
	return L.NewFunctionFromProto(proto), nil
}

// contextOf returns the context of a state.
func contextOf(L *lua.LState) context.Context {
	if ctx := L.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// Parse parses Lua source and checks the limits of nesting.
func Parse(name, source string) ([]ast.Stmt, error) {
	return parseSource(context.Background(), name, source)
}

// parseSource is Parse with a context that can end it early.
func parseSource(ctx context.Context, name, source string) ([]ast.Stmt, error) {
	source = skipHead(source)
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

// syntaxError returns an error at a line in the form of the parser's errors.
func syntaxError(name string, line int, format string, args ...any) error {
	return &sourceError{Fault{Name: name, Line: line, Text: fmt.Sprintf(format, args...)}}
}

// sourceError is an error that gopher-lua's parser and compiler do not detect.
type sourceError struct{ Fault }

// asFault returns the Fault in err, if any.
func asFault(err error) (Fault, bool) {
	var e *sourceError
	if errors.As(err, &e) {
		return e.Fault, true
	}
	return Fault{}, false
}
