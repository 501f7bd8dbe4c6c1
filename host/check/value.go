package check

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// kinds of values besides the types of the reference
const (
	isModule    = "module"
	isArguments = "arguments" // result of daqiri.args
	isList      = "list"
	isFunction  = "function"
	isTable     = "table"
	isConstant  = "constant"
)

// value is the static knowledge about a value.
type value struct {
	kind     string // empty: unknown
	name     string // of a module
	elem     typ    // element type of a list
	constant lua.LValue
	byUser   bool             // constant is an argument's default
	declared map[string]value // arguments by name
	function *ast.FunctionExpr
	cfg      *spec.Config   // of the value's session; nil: unknown
	fields   session.Fields // of a format; nil: unknown
}

// constant evaluates a constant expression; tables are created for each call.
func (w *walker) constant(e ast.Expr, s *scope) (v lua.LValue, byUser, ok bool) {
	switch e := e.(type) {
	case *ast.TableExpr:
		return w.constantTable(e, s)
	case *ast.UnaryMinusOpExpr:
		v, byUser, ok = w.constant(e.Expr, s)
		n, number := v.(lua.LNumber)
		return -n, byUser, ok && number
	case *ast.ArithmeticOpExpr:
		a, user1, ok1 := w.constant(e.Lhs, s)
		b, user2, ok2 := w.constant(e.Rhs, s)
		v, ok = arithmetic(e.Operator, a, b)
		return v, user1 || user2, ok && ok1 && ok2
	case *ast.StringConcatOpExpr:
		a, user1, ok1 := w.constant(e.Lhs, s)
		b, user2, ok2 := w.constant(e.Rhs, s)
		if !ok1 || !ok2 || !lua.LVCanConvToString(a) || !lua.LVCanConvToString(b) {
			return nil, false, false
		}
		return lua.LString(a.String() + b.String()), user1 || user2, true
	}
	known := w.infer(e, s)
	return known.constant, known.byUser, known.constant != nil
}

func (w *walker) constantTable(e *ast.TableExpr, s *scope) (v lua.LValue, byUser, ok bool) {
	t := &lua.LTable{Metatable: lua.LNil}
	for _, f := range e.Fields {
		inner, user, ok := w.constant(f.Value, s)
		if !ok {
			return nil, false, false
		}
		byUser = byUser || user
		if f.Key == nil {
			t.Append(inner)
			continue
		}
		key, user, ok := w.constant(f.Key, s)
		if _, text := key.(lua.LString); !ok || !text {
			return nil, false, false
		}
		byUser = byUser || user
		t.RawSet(key, inner)
	}
	return t, byUser, true
}

func arithmetic(op string, a, b lua.LValue) (lua.LValue, bool) {
	x, ok1 := a.(lua.LNumber)
	y, ok2 := b.(lua.LNumber)
	if !ok1 || !ok2 {
		return nil, false
	}
	switch op {
	case "+":
		return x + y, true
	case "-":
		return x - y, true
	case "*":
		return x * y, true
	case "/":
		return x / y, true
	case "^":
		return lua.LNumber(math.Pow(float64(x), float64(y))), true
	}
	return nil, false
}

// describe names a value for errors, like the API.
func describe(v value) string {
	switch c := v.constant.(type) {
	case lua.LString:
		return fmt.Sprintf("the string %q", string(c))
	case lua.LNumber:
		return "the number " + c.String()
	}
	return "a " + v.kind
}
