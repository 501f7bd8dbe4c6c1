package expr

import (
	"math/big"
	"net/netip"
)

// node is a node of an expression's syntax tree.
type node interface {
	pos() Pos
}

type (
	// number is a literal; val includes its unit.
	number struct {
		at   Pos
		text string
		val  *big.Rat
	}
	// address is an IPv6 address, or a prefix of either family. A single IPv4 or MAC address is a number.
	address struct {
		at     Pos
		text   string
		prefix netip.Prefix
		single bool // without a prefix length
	}
	name struct {
		at   Pos
		text string
	}
	unaryNode struct {
		at Pos // of the operator
		op string
		x  node
	}
	binaryNode struct {
		at   Pos // of the operator
		op   string
		x, y node
	}
)

func (n *number) pos() Pos     { return n.at }
func (n *address) pos() Pos    { return n.at }
func (n *name) pos() Pos       { return n.at }
func (n *unaryNode) pos() Pos  { return n.at }
func (n *binaryNode) pos() Pos { return n.at }

// Precedences of operators; higher ones bind tighter.
const (
	precOr = 1 + iota
	precAnd
	precCompare
	precBitOr
	precBitXor
	precBitAnd
	precShift
	precAdd
	precMul
	precUnary
	precPower
)

var precedence = map[string]int{
	"or": precOr, "and": precAnd,
	"==": precCompare, "~=": precCompare, "<": precCompare, "<=": precCompare,
	">": precCompare, ">=": precCompare, "in": precCompare,
	"|": precBitOr, "~": precBitXor, "&": precBitAnd, "<<": precShift, ">>": precShift,
	"+": precAdd, "-": precAdd, "*": precMul, "/": precMul, "//": precMul, "%": precMul,
	"^": precPower,
}

// walk calls visit for n and all nodes below it, from left to right.
func walk(n node, visit func(node)) {
	switch n := n.(type) {
	case *unaryNode:
		visit(n)
		walk(n.x, visit)
	case *binaryNode:
		walk(n.x, visit)
		visit(n)
		walk(n.y, visit)
	default:
		visit(n)
	}
}
