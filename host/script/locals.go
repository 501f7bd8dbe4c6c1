package script

import (
	"fmt"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/bindings/lua51"
)

// Locals at the prompt: a local of one line is visible in later lines, as are the script's locals. The locals of a line become fields of a table
// that is the environment of all lines. The script's locals remain registers, accessed by a closure appended to its main chunk that reads and
// sets them.

// accessName is the global through which the main chunk passes that closure; script names can't contain parentheses.
const accessName = "(locals)"

// locals are the names visible at a prompt besides the globals.
type locals struct {
	L      *lua.LState
	env    *lua.LTable     // environment of every line
	own    map[string]bool // names declared by a line
	access *lua.LFunction  // closure of the script: (number, set, value) -> value
	number map[string]int  // numbers of the script's locals for it
	frame  *lua.Debug      // frame of a main chunk that is still running
	hinted bool
}

func newLocals(L *lua.LState) *locals {
	l := &locals{L: L, env: L.NewTable(), own: map[string]bool{}, number: map[string]int{}}
	meta := L.NewTable()
	meta.RawSetString("__index", L.NewFunction(l.get))
	meta.RawSetString("__newindex", L.NewFunction(l.set))
	l.env.Metatable = meta
	return l
}

func (l *locals) get(L *lua.LState) int {
	key := L.Get(2)
	if v, ok := l.script(L, key.String(), false, lua.LNil); ok {
		L.Push(v)
	} else if l.own[key.String()] {
		L.Push(lua.LNil)
	} else {
		L.Push(L.GetTable(L.Get(lua.GlobalsIndex), key))
	}
	return 1
}

func (l *locals) set(L *lua.LState) int {
	key, v := L.Get(2), L.Get(3)
	if l.own[key.String()] {
		l.env.RawSet(key, v)
	} else if _, ok := l.script(L, key.String(), true, v); !ok {
		L.SetTable(L.Get(lua.GlobalsIndex), key, v)
	}
	return 0
}

// script reads or sets a local of the script; ok reports whether there is one of that name.
func (l *locals) script(L *lua.LState, name string, set bool, v lua.LValue) (value lua.LValue, ok bool) {
	if l.own[name] {
		return nil, false
	}
	if n := l.number[name]; n > 0 && l.access != nil {
		L.Push(l.access)
		L.Push(lua.LNumber(n))
		L.Push(lua.LBool(set))
		L.Push(v)
		L.Call(3, 1)
		defer L.Pop(1)
		return L.Get(-1), true
	}
	if l.frame == nil {
		return nil, false
	}
	at := 0
	for n := 1; ; n++ { // the last of that name is the visible one
		found, now := l.L.GetLocal(l.frame, n) // the line runs on another thread
		if found == "" {
			break
		}
		if found == name {
			at, value, ok = n, now, true
		}
	}
	if ok && set {
		l.L.SetLocal(l.frame, at, v)
	}
	return value, ok
}

// names lists the script's locals.
func (l *locals) names() (names []string) {
	for name := range l.number {
		names = append(names, name)
	}
	for n := 1; l.frame != nil; n++ {
		name, _ := l.L.GetLocal(l.frame, n)
		if name == "" {
			break
		}
		if !strings.HasPrefix(name, "(") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// look finds the frame of a running main chunk below the next line.
func (l *locals) look() {
	l.frame = nil
	for level := 0; l.access == nil; level++ {
		frame, ok := l.L.GetStack(level)
		if !ok {
			return
		}
		if _, err := l.L.GetInfo("S", frame, lua.LNil); err == nil && frame.What == "main" {
			l.frame = frame
		}
	}
}

// keep turns the top-level locals of a line into fields of the environment and returns their names.
func (l *locals) keep(chunk []ast.Stmt) (kept []string) {
	for i, stmt := range chunk {
		local, ok := stmt.(*ast.LocalAssignStmt)
		if !ok {
			continue
		}
		assign := &ast.AssignStmt{Rhs: local.Exprs}
		assign.SetLine(local.Line())
		assign.SetLastLine(local.LastLine())
		for _, name := range local.Names {
			ident := &ast.IdentExpr{Value: name}
			ident.SetLine(local.Line())
			ident.SetLastLine(local.Line())
			assign.Lhs = append(assign.Lhs, ident)
		}
		if len(assign.Rhs) == 0 {
			none := &ast.NilExpr{}
			none.SetLine(local.Line())
			assign.Rhs = []ast.Expr{none}
		}
		chunk[i] = assign
		kept = append(kept, local.Names...)
	}
	return kept
}

// compile compiles a line in the environment of all lines.
func (l *locals) compile(name, source string) (*lua.LFunction, error) {
	var kept []string
	fn, err := lua51.CompileChanged(l.L, name, source, func(chunk []ast.Stmt) []ast.Stmt {
		kept = l.keep(chunk)
		return chunk
	})
	if err != nil {
		return nil, err
	}
	for _, k := range kept {
		l.own[k] = true
	}
	fn.Env = l.env
	return fn, nil
}

// hint returns, once, a note on locals of lines.
func (l *locals) hint() string {
	if l.hinted || len(l.own) == 0 {
		return ""
	}
	l.hinted = true
	return "(a local stays for the next lines here; in a script it ends with its block)"
}

// handOver appends the closure for the main chunk's locals to a script.
func (l *locals) handOver(chunk []ast.Stmt) []ast.Stmt {
	var names []string
	for _, stmt := range chunk {
		if local, ok := stmt.(*ast.LocalAssignStmt); ok {
			for _, name := range local.Names {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	if len(names) == 0 {
		return chunk
	}
	var b strings.Builder
	b.WriteString("access(function(number_, set_, value_) ")
	for i, name := range names {
		l.number[name] = i + 1
		fmt.Fprintf(&b, "if number_ == %d then if set_ then %s = value_ end return %[2]s end ", i+1, name)
	}
	b.WriteString("end)")
	more, err := lua51.ParseContext(lua51.ContextOf(l.L), "prompt", b.String())
	if err != nil {
		return chunk
	}
	more[0].(*ast.FuncCallStmt).Expr.(*ast.FuncCallExpr).Func.(*ast.IdentExpr).Value = accessName
	if last := len(chunk) - 1; last >= 0 {
		if _, ends := chunk[last].(*ast.ReturnStmt); ends {
			return append(chunk[:last:last], more[0], chunk[last])
		}
	}
	return append(chunk, more...)
}

// install defines the global that receives the closure.
func (l *locals) install() {
	l.L.G.Global.RawSetString(accessName, l.L.NewFunction(func(L *lua.LState) int {
		l.access = L.CheckFunction(1)
		return 0
	}))
}
