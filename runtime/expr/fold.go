package expr

import (
	"math"
	"math/big"
)

var (
	minInt64  = new(big.Int).SetInt64(math.MinInt64)
	maxUint64 = new(big.Int).SetUint64(math.MaxUint64)
)

// maxConstantBits is the maximum size of constants that folding computes exactly.
const maxConstantBits = 4096

// fold computes a constant number exactly. It returns nil if the number depends on a name.
func fold(n node) (*big.Rat, error) {
	switch n := n.(type) {
	case *number:
		return n.val, nil
	case *unaryNode:
		x, err := fold(n.x)
		if x == nil || err != nil {
			return nil, err
		}
		if n.op == "-" {
			return new(big.Rat).Neg(x), nil
		}
		i, err := wholeConstant(n.x, x)
		if err != nil {
			return nil, err
		}
		return new(big.Rat).SetInt(new(big.Int).Not(i)), nil
	case *binaryNode:
		x, err := fold(n.x)
		if x == nil || err != nil {
			return nil, err
		}
		y, err := fold(n.y)
		if y == nil || err != nil {
			return nil, err
		}
		return foldBinary(n, x, y)
	}
	return nil, nil
}

func foldBinary(n *binaryNode, x, y *big.Rat) (*big.Rat, error) {
	if x.Num().BitLen()+y.Num().BitLen()+x.Denom().BitLen()+y.Denom().BitLen() > maxConstantBits {
		return nil, errorAt(n.at, "the constant is too large")
	}
	switch n.op {
	case "+":
		return new(big.Rat).Add(x, y), nil
	case "-":
		return new(big.Rat).Sub(x, y), nil
	case "*":
		return new(big.Rat).Mul(x, y), nil
	case "^":
		return foldPower(n, x, y)
	case "/", "//", "%":
		return foldDivision(n, x, y)
	}
	return foldBits(n, x, y)
}

func foldDivision(n *binaryNode, x, y *big.Rat) (*big.Rat, error) {
	if y.Sign() == 0 {
		return nil, errorAt(n.at, "division by zero")
	}
	q := new(big.Rat).Quo(x, y)
	if n.op == "/" {
		return q, nil
	}
	// Euclidean division by a positive number rounds to the floor.
	floor := new(big.Rat).SetInt(new(big.Int).Div(q.Num(), q.Denom()))
	if n.op == "//" {
		return floor, nil
	}
	return new(big.Rat).Sub(x, floor.Mul(floor, y)), nil
}

func foldPower(n *binaryNode, x, y *big.Rat) (*big.Rat, error) {
	if !y.IsInt() || !y.Num().IsInt64() || y.Num().Int64() > maxExponent || y.Num().Int64() < -maxExponent {
		return nil, errorAt(n.at, "the exponent is not a whole number in -%d..%d", maxExponent, maxExponent)
	}
	e := y.Num().Int64()
	if e < 0 && x.Sign() == 0 {
		return nil, errorAt(n.at, "division by zero")
	}
	if (x.Num().BitLen()+x.Denom().BitLen())*int(max(e, -e)) > maxConstantBits {
		return nil, errorAt(n.at, "the constant is too large")
	}
	power := big.NewInt(max(e, -e))
	num, den := new(big.Int).Exp(x.Num(), power, nil), new(big.Int).Exp(x.Denom(), power, nil)
	if e < 0 {
		num, den = den, num
	}
	return new(big.Rat).SetFrac(num, den), nil
}

// foldBits computes on 64 bits, as the compiled program would.
func foldBits(n *binaryNode, x, y *big.Rat) (*big.Rat, error) {
	a, err := wholeConstant(n.x, x)
	if err != nil {
		return nil, err
	}
	b, err := wholeConstant(n.y, y)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "|":
		return new(big.Rat).SetInt(new(big.Int).Or(a, b)), nil
	case "~":
		return new(big.Rat).SetInt(new(big.Int).Xor(a, b)), nil
	case "&":
		return new(big.Rat).SetInt(new(big.Int).And(a, b)), nil
	}
	count := int64(64)
	if b.IsInt64() {
		count = b.Int64()
	}
	shifted := shiftRight(bits64(a), count)
	if n.op == "<<" {
		shifted = shiftLeft(bits64(a), count)
	}
	if a.Sign() < 0 { // the result stays signed
		return new(big.Rat).SetInt64(int64(shifted)), nil
	}
	return new(big.Rat).SetUint64(shifted), nil
}

// wholeConstant returns a constant as an integer of at most 64 bits.
func wholeConstant(n node, val *big.Rat) (*big.Int, error) {
	if !val.IsInt() {
		return nil, errorAt(n.pos(), "%s is not a whole number: packet conditions work in whole numbers", val.RatString())
	}
	if val.Num().Cmp(minInt64) < 0 || val.Num().Cmp(maxUint64) > 0 {
		return nil, errorAt(n.pos(), "the constant does not fit 64 bits")
	}
	return val.Num(), nil
}

// bits64 returns the two's complement of an integer constant.
func bits64(i *big.Int) uint64 {
	if i.Sign() < 0 {
		return uint64(i.Int64())
	}
	return i.Uint64()
}
