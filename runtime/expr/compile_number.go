package expr

import (
	"math"
	"math/big"
	"math/bits"
)

// number compiles a number. Unless it returns a constant operand, the emitted code leaves the value on the stack.
func (c *compiler) number(n node) (operand, error) {
	val, err := fold(n)
	if err != nil {
		return operand{}, err
	}
	if val != nil {
		i, err := wholeConstant(n, val)
		return operand{i, err == nil && !i.IsInt64(), n}, err
	}
	switch n := n.(type) {
	case *name:
		return c.field(n)
	case *unaryNode:
		x, err := c.number(n.x)
		if n.op == "-" {
			c.op(OpNeg)
		} else {
			c.op(OpInv)
		}
		return operand{nil, x.unsigned, n}, err
	}
	return c.arithmetic(n.(*binaryNode))
}

func (c *compiler) field(n *name) (operand, error) {
	if r, ok := c.fields.(Deriver); ok {
		if d, ok := r.Derived(n.text); ok {
			return c.derived(n, d)
		}
		if v, ok := r.Constant(n.text); ok {
			return operand{new(big.Int).SetUint64(v), v > math.MaxInt64, n}, nil
		}
	}
	f, ok := c.fields.Field(n.text)
	if ok {
		c.emit(f.load())
		return operand{nil, f.unsigned64(), n}, nil
	}
	if _, wide := c.fields.Field(n.text + "_hi"); wide {
		return operand{}, errorAt(n.at, "'%s' has 128 bits: compare it with an IPv6 address, or use %s_hi and %s_lo", n.text, n.text, n.text)
	}
	return operand{}, unknownName(n.at, n.text, c.fields.Names())
}

var arithmeticOps = map[string][2]Op{ // signed, unsigned
	"+": {OpAdd, OpAdd}, "-": {OpSub, OpSub}, "*": {OpMul, OpMul},
	"//": {OpDivS, OpDivU}, "%": {OpModS, OpModU},
	"&": {OpAnd, OpAnd}, "|": {OpOr, OpOr}, "~": {OpXor, OpXor},
	"<<": {OpShl, OpShl}, ">>": {OpShr, OpShr},
}

func (c *compiler) arithmetic(b *binaryNode) (operand, error) {
	pair, ok := arithmeticOps[b.op]
	if !ok {
		hint := ""
		if b.op == "/" {
			hint = " (use '//')"
		}
		return operand{}, errorAt(b.at, "'%s' of a field may be a fraction: packet conditions work in whole numbers%s", b.op, hint)
	}
	x, err := c.number(b.x)
	if err != nil {
		return operand{}, err
	}
	c.pushed(x)
	y, err := c.number(b.y)
	if err != nil {
		return operand{}, err
	}
	unsigned := x.unsigned || y.unsigned && b.op != "<<" && b.op != ">>"
	if y.constant != nil {
		if err := c.checkConstant(b, y.constant, unsigned); err != nil {
			return operand{}, err
		}
		if c.byPowerOfTwo(b.op, y.constant, unsigned) {
			return operand{nil, unsigned, b}, nil
		}
	}
	c.pushed(y)
	if unsigned {
		c.op(pair[1])
	} else {
		c.op(pair[0])
	}
	return operand{nil, unsigned, b}, nil
}

// checkConstant rejects invalid constants on the right side.
func (c *compiler) checkConstant(b *binaryNode, y *big.Int, unsigned bool) error {
	switch b.op {
	case "//", "%":
		if y.Sign() == 0 {
			return errorAt(b.at, "division by zero")
		}
		if unsigned && y.Sign() < 0 {
			return errorAt(b.y.pos(), "an unsigned 64-bit number cannot be divided by a negative one")
		}
	case "<<", ">>":
		if y.Sign() < 0 || y.Cmp(big.NewInt(63)) > 0 {
			return errorAt(b.y.pos(), "a shift by %s is outside 0..63", y)
		}
	}
	return nil
}

// byPowerOfTwo emits a shift for a division and a mask for a remainder; both round to the floor too. It returns false if y is not a power of two.
func (c *compiler) byPowerOfTwo(op string, y *big.Int, unsigned bool) bool {
	if op != "//" && op != "%" || !y.IsUint64() || bits.OnesCount64(y.Uint64()) != 1 {
		return false
	}
	switch {
	case op == "%":
		c.push(y.Uint64() - 1)
		c.op(OpAnd)
	case unsigned:
		c.push(uint64(bits.TrailingZeros64(y.Uint64())))
		c.op(OpShr)
	default:
		c.push(uint64(bits.TrailingZeros64(y.Uint64())))
		c.op(OpSar)
	}
	return true
}
