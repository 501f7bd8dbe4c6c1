package expr

import "math"

// Value is the result of evaluating an expression.
type Value struct {
	Known bool    // false: a name has no value yet, or an operation has no result
	Num   float64 // of a number
	True  bool    // of a condition
}

// Eval evaluates the expression in floating point. env returns the value of a name, or false if it has none.
func (e *Expr) Eval(env func(name string) (float64, bool)) Value {
	return eval(e.root, env)
}

func known(num float64) Value { return Value{Known: !math.IsNaN(num), Num: num} }

func truth(t bool) Value { return Value{Known: true, True: t} }

func eval(n node, env func(string) (float64, bool)) Value {
	switch n := n.(type) {
	case *number:
		f, _ := n.val.Float64()
		return known(f)
	case *name:
		if f, ok := env(n.text); ok {
			return known(f)
		}
	case *unaryNode:
		return evalUnary(n.op, eval(n.x, env))
	case *binaryNode:
		if a, ok := n.y.(*address); ok {
			return evalIn(eval(n.x, env), a)
		}
		return evalBinary(n.op, eval(n.x, env), eval(n.y, env))
	}
	return Value{}
}

func evalUnary(op string, x Value) Value {
	switch {
	case !x.Known:
		return Value{}
	case op == "not":
		return truth(!x.True)
	case op == "-":
		return known(-x.Num)
	}
	i, ok := whole(x.Num)
	if !ok {
		return Value{}
	}
	return known(float64(^i))
}

// evalIn tests membership in an IPv4 prefix. For an IPv6 prefix it returns an unknown value.
func evalIn(x Value, a *address) Value {
	i, ok := whole(x.Num)
	if !x.Known || !ok || !a.prefix.Addr().Is4() {
		return Value{}
	}
	mask := ^uint64(0) << (32 - a.prefix.Bits())
	return truth(uint64(i)&mask == ipv4Bits(a.prefix.Addr()))
}

func evalBinary(op string, x, y Value) Value {
	switch op {
	case "and":
		if x.Known && !x.True || y.Known && !y.True {
			return truth(false)
		}
		return Value{Known: x.Known && y.Known, True: x.Known && y.Known}
	case "or":
		if x.Known && x.True || y.Known && y.True {
			return truth(true)
		}
		return Value{Known: x.Known && y.Known}
	}
	if !x.Known || !y.Known {
		return Value{}
	}
	if precedence[op] == precCompare {
		return truth(compare(op, x.Num, y.Num))
	}
	if p := precedence[op]; p >= precBitOr && p <= precShift {
		return evalBits(op, x.Num, y.Num)
	}
	return known(arithmetic(op, x.Num, y.Num))
}

func compare(op string, x, y float64) bool {
	switch op {
	case "==":
		return x == y
	case "~=":
		return x != y
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}

func arithmetic(op string, x, y float64) float64 {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	case "^":
		return math.Pow(x, y)
	}
	r := math.Mod(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// whole returns x as an integer, or false if it is a fraction or too large to be exact.
func whole(x float64) (int64, bool) {
	return int64(x), x == math.Trunc(x) && math.Abs(x) <= 1<<53
}

func evalBits(op string, x, y float64) Value {
	a, ok1 := whole(x)
	b, ok2 := whole(y)
	if !ok1 || !ok2 {
		return Value{}
	}
	switch op {
	case "|":
		return known(float64(a | b))
	case "~":
		return known(float64(a ^ b))
	case "&":
		return known(float64(a & b))
	case "<<":
		return known(float64(int64(shiftLeft(uint64(a), b))))
	}
	return known(float64(shiftRight(uint64(a), b)))
}

func shiftLeft(v uint64, n int64) uint64 {
	if n < 0 || n > 63 {
		return 0
	}
	return v << n
}

func shiftRight(v uint64, n int64) uint64 {
	if n < 0 || n > 63 {
		return 0
	}
	return v >> n
}
