package expr

import "strings"

// String returns the canonical form of the expression: one space around binary operators and only the required parentheses. Parsing it returns an
// equal expression.
func (e *Expr) String() string {
	var b strings.Builder
	write(&b, e.root)
	return b.String()
}

func write(b *strings.Builder, n node) {
	switch n := n.(type) {
	case *number:
		b.WriteString(n.text)
	case *address:
		b.WriteString(n.text)
	case *name:
		b.WriteString(n.text)
	case *unaryNode:
		b.WriteString(n.op)
		if n.op == "not" {
			b.WriteByte(' ')
		}
		writeOperand(b, n.x, precUnary)
	case *binaryNode:
		left, right := precedence[n.op], precedence[n.op]+1
		if n.op == "^" {
			left, right = precPower+1, precUnary
		}
		writeOperand(b, n.x, left)
		b.WriteString(" " + n.op + " ")
		writeOperand(b, n.y, right)
	}
}

// writeOperand adds parentheses around operands of lower precedence than prec.
func writeOperand(b *strings.Builder, n node, prec int) {
	own := precPower + 1
	switch n := n.(type) {
	case *unaryNode:
		own = precUnary
	case *binaryNode:
		own = precedence[n.op]
	}
	if own >= prec {
		write(b, n)
		return
	}
	b.WriteByte('(')
	write(b, n)
	b.WriteByte(')')
}
