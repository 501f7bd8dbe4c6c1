package expr

import "math"

// Scale splits a scale of packets, text, into a constant factor and a number over fields, as text: the scale is the factor times the number, or with
// power the factor times 2 to the power of the number. Constants are factors, divisors and bases of 2 around one number of integers: "gain / 4096",
// "2 ^ -shift". A text without a name is an error.
func Scale(text string) (factor float64, number string, power bool, err error) {
	e, err := Parse(text)
	if err != nil {
		return 0, "", false, err
	}
	if len(e.Names()) == 0 || e.IsCondition() {
		return 0, "", false, errorAt(e.root.pos(), "a number over fields expected")
	}
	factor = 1
	at := e.root
	for {
		n, ok := at.(*binaryNode)
		if !ok {
			break
		}
		x, y := constantOf(n.x), constantOf(n.y)
		switch {
		case n.op == "*" && x != nil:
			factor, at = factor**x, n.y
			continue
		case n.op == "*" && y != nil:
			factor, at = factor**y, n.x
			continue
		case n.op == "/" && y != nil && *y != 0:
			factor, at = factor / *y, n.x
			continue
		case n.op == "^" && x != nil && *x == 2:
			power, at = true, n.y
		}
		break
	}
	if factor == 0 || math.IsInf(factor, 0) {
		return 0, "", false, errorAt(e.root.pos(), "its constant factor is %g", factor)
	}
	return factor, (&Expr{root: at}).String(), power, nil
}

// constantOf returns the value of a constant; nil: it has names, or no value.
func constantOf(n node) *float64 {
	v, err := fold(n)
	if v == nil || err != nil {
		return nil
	}
	f, _ := v.Float64()
	return &f
}
