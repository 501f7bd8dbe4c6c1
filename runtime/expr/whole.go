package expr

import "math/big"

// Env returns the value of a name, whether it is an unsigned 64-bit number, and whether it is present.
type Env func(name string) (v uint64, unsigned, ok bool)

// Whole evaluates a number in 64-bit integers, with the semantics of CompileNumber's program. It returns false if an operand is absent.
func (e *Expr) Whole(env Env) (uint64, bool) {
	if e.cond {
		return 0, false
	}
	x := wholeNumber(e.root, env)
	return x.v, x.ok
}

// Holds evaluates a condition with the semantics of CompilePacket's program.
func (e *Expr) Holds(env Env) bool { return e.cond && holds(e.root, env) }

type wholeValue struct {
	v            uint64
	unsigned, ok bool
}

func holds(n node, env Env) bool {
	if n, ok := n.(*unaryNode); ok {
		return !holds(n.x, env)
	}
	b := n.(*binaryNode)
	switch b.op {
	case "and":
		return holds(b.x, env) && holds(b.y, env)
	case "or":
		return holds(b.x, env) || holds(b.y, env)
	}
	x := wholeNumber(b.x, env)
	if a, ok := b.y.(*address); ok {
		if !a.prefix.Addr().Is4() {
			return false
		}
		mask := ^uint64(0) << (32 - a.prefix.Bits())
		return x.ok && x.v&mask == ipv4Bits(a.prefix.Addr())
	}
	y := wholeNumber(b.y, env)
	return x.ok && y.ok && compareWhole(b.op, x, y)
}

func compareWhole(op string, x, y wholeValue) bool {
	less, more := int64(x.v) < int64(y.v), int64(x.v) > int64(y.v)
	if x.unsigned || y.unsigned {
		less, more = x.v < y.v, x.v > y.v
	}
	switch op {
	case "==":
		return x.v == y.v
	case "~=":
		return x.v != y.v
	case "<":
		return less
	case "<=":
		return !more
	case ">":
		return more
	}
	return !less
}

func wholeNumber(n node, env Env) wholeValue {
	if val, err := fold(n); err != nil {
		return wholeValue{}
	} else if val != nil {
		i, err := wholeConstant(n, val)
		if err != nil {
			return wholeValue{}
		}
		return wholeValue{bits64(i), !i.IsInt64(), true}
	}
	switch n := n.(type) {
	case *name:
		v, unsigned, ok := env(n.text)
		return wholeValue{v, unsigned, ok}
	case *unaryNode:
		x := wholeNumber(n.x, env)
		if n.op == "-" {
			x.v = -x.v
		} else {
			x.v = ^x.v
		}
		return x
	case *binaryNode:
		return wholeBinary(n.op, wholeNumber(n.x, env), wholeNumber(n.y, env))
	}
	return wholeValue{}
}

func wholeBinary(op string, x, y wholeValue) wholeValue {
	out := wholeValue{unsigned: x.unsigned || y.unsigned, ok: x.ok && y.ok}
	if !out.ok {
		return out
	}
	switch op {
	case "+":
		out.v = x.v + y.v
	case "-":
		out.v = x.v - y.v
	case "*":
		out.v = x.v * y.v
	case "&":
		out.v = x.v & y.v
	case "|":
		out.v = x.v | y.v
	case "~":
		out.v = x.v ^ y.v
	case "<<", ">>":
		out.unsigned = x.unsigned
		switch {
		case y.v > 63:
		case op == "<<":
			out.v = x.v << y.v
		default:
			out.v = x.v >> y.v
		}
	case "//", "%":
		out.v, out.ok = wholeDivision(op, x.v, y.v, out.unsigned)
	default:
		out.ok = false
	}
	return out
}

// wholeDivision rounds to the floor.
func wholeDivision(op string, x, y uint64, unsigned bool) (uint64, bool) {
	if y == 0 {
		return 0, false
	}
	a, b := big.NewInt(int64(x)), big.NewInt(int64(y))
	if unsigned {
		a, b = new(big.Int).SetUint64(x), new(big.Int).SetUint64(y)
	}
	q, m := new(big.Int).DivMod(a, b, new(big.Int)) // Euclidean: the remainder is not negative
	if b.Sign() < 0 && m.Sign() != 0 {
		q.Sub(q, big.NewInt(1)) // to the floor
		m.Add(m, b)
	}
	if op == "%" {
		return bits64(m), true
	}
	return new(big.Int).And(q, maxUint64).Uint64(), true
}
