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

// compile makes a function of Lua source. Everything that runs comes through here: what gopher-lua's compiler (1.1.2)
// gets wrong is rewritten before, or refused, and what it made is looked through.
func compile(L *lua.LState, name, source string) (*lua.LFunction, error) {
	return compileWith(L, name, source, nil)
}

// compileWith also has change, where it is not nil, change the chunk before.
func compileWith(L *lua.LState, name, source string, change func([]ast.Stmt) []ast.Stmt) (fn *lua.LFunction, err error) {
	defer func() {
		if v := recover(); v != nil { // the compiler stumbled
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

// contextOf is the context that a state works under.
func contextOf(L *lua.LState) context.Context {
	if ctx := L.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// Parse parses Lua source that is not nested too deep.
func Parse(name, source string) ([]ast.Stmt, error) {
	return parseSource(context.Background(), name, source)
}

// parseSource parses Lua source that is not nested too deep. It ends early when ctx does.
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

// stoppable is a text that ends when a context does: a parser can't be interrupted otherwise.
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

// syntaxError is an error at a line, as the parser's own.
func syntaxError(name string, line int, format string, args ...any) error {
	return &sourceError{Fault{Name: name, Line: line, Text: fmt.Sprintf(format, args...)}}
}

// sourceError is a fault that neither the parser nor the compiler of gopher-lua looks for.
type sourceError struct{ Fault }

// asFault gives the fault that err is about.
func asFault(err error) (Fault, bool) {
	var e *sourceError
	if errors.As(err, &e) {
		return e.Fault, true
	}
	return Fault{}, false
}
