package expr

type kind int

const (
	kindNumber kind = iota
	kindCondition
	kindAddress // an IPv6 address or a prefix; valid only in comparisons
)

// kindOf returns the kind of an expression, or an error for operands that an operator does not accept.
func kindOf(n node) (kind, error) {
	switch n := n.(type) {
	case *address:
		return kindAddress, nil
	case *unaryNode:
		return unaryKind(n)
	case *binaryNode:
		return binaryKind(n)
	}
	return kindNumber, nil
}

func unaryKind(n *unaryNode) (kind, error) {
	k, err := kindOf(n.x)
	switch {
	case err != nil:
		return 0, err
	case n.op == "not" && k != kindCondition:
		return 0, errorAt(n.at, "'not' takes a condition (it binds tighter than '==': put the comparison in parentheses)")
	case n.op != "not" && k != kindNumber:
		return 0, errorAt(n.at, "'%s' takes a number", n.op)
	}
	return k, nil
}

func binaryKind(n *binaryNode) (kind, error) {
	x, err := kindOf(n.x)
	if err != nil {
		return 0, err
	}
	y, err := kindOf(n.y)
	if err != nil {
		return 0, err
	}
	switch precedence[n.op] {
	case precOr, precAnd:
		if x != kindCondition || y != kindCondition {
			return 0, errorAt(n.at, "'%s' takes a condition on either side", n.op)
		}
		return kindCondition, nil
	case precCompare:
		return kindCondition, checkComparison(n, x, y)
	}
	if x != kindNumber || y != kindNumber {
		return 0, errorAt(n.at, "'%s' takes a number on either side", n.op)
	}
	return kindNumber, nil
}

func checkComparison(n *binaryNode, x, y kind) error {
	if x == kindCondition || y == kindCondition {
		return errorAt(n.at, "'%s' compares numbers (join conditions with 'and': a < b and b < c)", n.op)
	}
	if x == kindAddress {
		return errorAt(n.at, "'%s' needs the address on its right", n.op)
	}
	if n.op == "in" {
		return checkIn(n)
	}
	if y == kindNumber {
		return nil
	}
	if !n.y.(*address).single {
		return errorAt(n.y.pos(), "'%s' is a prefix: compare with 'in'", n.y.(*address).text)
	}
	if n.op != "==" && n.op != "~=" {
		return errorAt(n.at, "'%s' does not compare IPv6 addresses ('==', '~=' and 'in' do)", n.op)
	}
	return checkIPv6(n)
}

func checkIn(n *binaryNode) error {
	switch y := n.y.(type) {
	case *address:
		if y.prefix.Addr().Is6() {
			return checkIPv6(n)
		}
		return nil
	case *number:
		return errorAt(y.at, "'in' takes a prefix such as 10.0.0.0/8 on its right (compare with '==')")
	}
	return errorAt(n.y.pos(), "'in' takes a prefix such as 10.0.0.0/8 on its right")
}

// checkIPv6 requires a plain field on the left side, because numbers have at most 64 bits.
func checkIPv6(n *binaryNode) error {
	if _, ok := n.x.(*name); !ok {
		return errorAt(n.at, "only a field compares with an IPv6 address")
	}
	return nil
}
