package lua51

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// number sets the value that Lua gives to a numeral. The compiler reads a numeral with a second leading zero as octal, and one that it cannot
// parse, such as 1e999, as NaN.
func (r *rewriter) number(e *ast.NumberExpr) ast.Expr {
	v, ok := readNumeral(e.Value)
	switch {
	case !ok:
		r.fail(e, "malformed number near '%s'", strings.TrimRightFunc(e.Value, func(c rune) bool { return c <= ' ' || c > '~' }))
	case math.IsInf(v, 0):
		one, zero := &ast.NumberExpr{Value: "1"}, &ast.NumberExpr{Value: "0"}
		inf := &ast.ArithmeticOpExpr{Operator: "/", Lhs: one, Rhs: zero}
		for _, n := range []ast.PositionHolder{one, zero, inf} {
			place(n, e)
		}
		return inf
	case !plainNumeral(e.Value):
		e.Value = strconv.FormatFloat(v, 'g', -1, 64)
	}
	r.literal(e)
	return e
}

const foldedInRow = 64

// arithmetic rewrites an operation. For each operation, the compiler searches for constants to the end of a chain of operations: long chains are
// split by "true and".
func (r *rewriter) arithmetic(e *ast.ArithmeticOpExpr) ast.Expr {
	e.Lhs = r.expr(e.Lhs)
	before := 0
	if r.fn.chain == e.Lhs {
		if before = r.fn.before + 1; before == foldedInRow {
			yes := &ast.TrueExpr{}
			cut := &ast.LogicalOpExpr{Operator: "and", Lhs: yes, Rhs: e.Lhs}
			place(yes, e)
			place(cut, e)
			e.Lhs, before = cut, 0
		}
	}
	e.Rhs = r.expr(e.Rhs)
	r.fn.chain, r.fn.before = e, before
	return r.fold(e, func(v ...float64) float64 {
		switch e.Operator {
		case "+":
			return v[0] + v[1]
		case "-":
			return v[0] - v[1]
		case "*":
			return v[0] * v[1]
		case "/":
			return v[0] / v[1]
		}
		return math.NaN() // left to the compiler
	}, e.Lhs, e.Rhs)
}

// fold evaluates an operation on constants, so that its operands are not separate constants. A result without a numeral is not replaced, and its
// operands must not be outlined, because the compiler computes with them.
func (r *rewriter) fold(e ast.Expr, compute func(...float64) float64, operands ...ast.Expr) ast.Expr {
	var values []float64
	for _, operand := range operands {
		number, ok := operand.(*ast.NumberExpr)
		if !ok && !r.fn.kept[operand] {
			return e
		}
		v := math.NaN()
		if ok {
			v, _ = readNumeral(number.Value) // read earlier
		}
		values = append(values, v)
	}
	v := compute(values...)
	if math.IsNaN(v) || math.IsInf(v, 0) || v == 0 {
		for _, operand := range operands {
			r.fn.kept[operand] = true
		}
		r.fn.kept[e] = true
		return e
	}
	number := &ast.NumberExpr{Value: strconv.FormatFloat(v, 'g', -1, 64)}
	place(number, e)
	r.literal(number)
	return number
}

// plainNumeral reports whether s consists of a few digits only.
func plainNumeral(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) < 16 && (s[0] != '0' || len(s) == 1)
}

func readNumeral(s string) (float64, bool) {
	if len(s) > 2 && (s[1] == 'x' || s[1] == 'X') {
		s += "p0"
	}
	return parseFloat(s)
}

// parseFloat parses a number; an overflow is infinite, as in C.
func parseFloat(s string) (float64, bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}
