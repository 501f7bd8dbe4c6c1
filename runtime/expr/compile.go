package expr

import (
	"encoding/binary"
	"math/big"
	"net/netip"
	"strings"
)

// CompilePacket compiles a condition into a program over packet fields. Its errors are of type *Error.
func (e *Expr) CompilePacket(fields Resolver) (Program, error) {
	if !e.cond {
		return nil, errorAt(e.root.pos(), "a packet condition must be true or false: compare the number with something")
	}
	c := &compiler{fields: fields}
	return c.shared("condition", func() error { return c.condition(e.root) })
}

// CompileNumber compiles a number into a program that computes it from the fields of a packet. signed reports whether the result is in two's
// complement. Its errors are of type *Error.
func (e *Expr) CompileNumber(fields Resolver) (prog Program, signed bool, err error) {
	if e.cond {
		return nil, false, errorAt(e.root.pos(), "a number over packet fields is wanted, and this is a condition")
	}
	c := &compiler{fields: fields}
	prog, err = c.shared("number", func() error {
		x, err := c.number(e.root)
		c.pushed(x)
		signed = !x.unsigned
		return err
	})
	return prog, signed, err
}

// finish ends the program and checks its size; what is its name in error messages.
func (c *compiler) finish(what string) (Program, error) {
	c.emit(Insn{Op: OpRet})
	if len(c.prog) > MaxInsns {
		return nil, errorAt(Pos{1, 1}, "the %s needs %d instructions, more than %d", what, len(c.prog), MaxInsns)
	}
	if c.deepest > MaxStack {
		return nil, errorAt(Pos{1, 1}, "the %s is nested too deeply: it needs a stack of %d, more than %d", what, c.deepest, MaxStack)
	}
	return c.prog, nil
}

type compiler struct {
	fields         Resolver
	prog           Program
	depth, deepest int
	nested         int // nesting depth of derived names
	sharing
}

// operand is a compiled number: a constant not yet emitted, or code that leaves it on the stack.
type operand struct {
	constant *big.Int // nil: on the stack
	unsigned bool
	n        node
}

func (c *compiler) emit(i Insn) {
	switch {
	case i.Op == OpPush || i.Op == OpLoad || i.Op == OpPick:
		c.depth++
	case i.Op >= OpAdd && i.Op <= OpSar || i.Op >= OpEq && i.Op <= OpGeU || i.Op == OpJz || i.Op == OpJnz, i.Op == OpFind, i.Op == OpKeep, i.Op == OpZero:
		c.depth--
	}
	c.deepest = max(c.deepest, c.depth)
	c.prog = append(c.prog, i)
}

func (c *compiler) op(op Op) { c.emit(Insn{Op: op}) }

func (c *compiler) push(v uint64) { c.emit(Insn{Op: OpPush, Imm: v}) }

// pushed emits a push if the operand is a constant.
func (c *compiler) pushed(o operand) {
	if o.constant != nil {
		c.push(bits64(o.constant))
	}
}

func (c *compiler) condition(n node) error {
	if n, ok := n.(*unaryNode); ok { // not
		if err := c.condition(n.x); err != nil {
			return err
		}
		c.op(OpNot)
		return nil
	}
	b := n.(*binaryNode)
	switch b.op {
	case "and":
		return c.shortcut(b, OpJz)
	case "or":
		return c.shortcut(b, OpJnz)
	}
	if a, ok := b.y.(*address); ok {
		return c.compareAddress(b, a)
	}
	return c.comparison(b)
}

// shortcut emits x and, unless x decides the result, y.
func (c *compiler) shortcut(b *binaryNode, jump Op) (err error) {
	if err = c.condition(b.x); err == nil {
		c.joined(jump, func() { err = c.condition(b.y) })
	}
	return err
}

// joined emits a jump over the code that second emits.
func (c *compiler) joined(jump Op, second func()) {
	at := len(c.prog)
	c.op(jump)
	second()
	c.prog[at].C = uint32(len(c.prog))
}

var comparisons = map[string][2]Op{ // signed, unsigned
	"==": {OpEq, OpEq}, "~=": {OpNe, OpNe}, "<": {OpLtS, OpLtU},
	"<=": {OpLeS, OpLeU}, ">": {OpGtS, OpGtU}, ">=": {OpGeS, OpGeU},
}

// mirrored maps a comparison to the one that holds with exchanged sides.
var mirrored = map[string]string{"==": "==", "~=": "~=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// comparison compiles a comparison with a constant, if any, on the right: the engine runs that form fastest.
func (c *compiler) comparison(b *binaryNode) error {
	op, first, second := b.op, b.x, b.y
	if left, err := fold(b.x); err != nil {
		return err
	} else if left != nil {
		op, first, second = mirrored[op], b.y, b.x
	}
	x, err := c.number(first)
	if err != nil {
		return err
	}
	c.pushed(x)
	y, err := c.number(second)
	if err != nil {
		return err
	}
	c.pushed(y)
	unsigned := x.unsigned || y.unsigned
	for _, o := range []operand{x, y} {
		if unsigned && o.constant != nil && o.constant.Sign() < 0 {
			return errorAt(o.n.pos(), "%s is negative, and the other side an unsigned 64-bit number", o.constant)
		}
	}
	pair := comparisons[op]
	if unsigned {
		c.op(pair[1])
	} else {
		c.op(pair[0])
	}
	return nil
}

func (c *compiler) compareAddress(b *binaryNode, a *address) error {
	if a.prefix.Addr().Is4() {
		x, err := c.number(b.x)
		if err != nil {
			return err
		}
		c.pushed(x)
		c.masked(^uint64(0)<<(32-a.prefix.Bits()), ipv4Bits(a.prefix.Addr()))
		return nil
	}
	return c.compareIPv6(b, a.prefix)
}

// masked emits a comparison of the masked number on the stack with want.
func (c *compiler) masked(mask, want uint64) {
	c.push(mask)
	c.op(OpAnd)
	c.push(want)
	c.op(OpEq)
}

// compareIPv6 compiles a comparison of both halves. `~=` is true if either half differs, and false, like every comparison, if the packet lacks the
// field.
func (c *compiler) compareIPv6(b *binaryNode, p netip.Prefix) error {
	hi, lo, err := c.halves(b.x.(*name))
	if err != nil {
		return err
	}
	addr, length := p.Addr().As16(), p.Bits()
	c.emit(hi.load())
	if b.op == "~=" {
		c.push(binary.BigEndian.Uint64(addr[:8]))
		c.op(OpNe)
		c.joined(OpJnz, func() {
			c.emit(lo.load())
			c.push(binary.BigEndian.Uint64(addr[8:]))
			c.op(OpNe)
		})
		return nil
	}
	c.masked(^uint64(0)<<max(0, 64-length), binary.BigEndian.Uint64(addr[:8]))
	if length > 64 {
		c.joined(OpJz, func() {
			c.emit(lo.load())
			c.masked(^uint64(0)<<(128-length), binary.BigEndian.Uint64(addr[8:]))
		})
	}
	return nil
}

// halves resolves the two fields of an IPv6 address.
func (c *compiler) halves(n *name) (hi, lo Field, err error) {
	hi, ok1 := c.fields.Field(n.text + "_hi")
	lo, ok2 := c.fields.Field(n.text + "_lo")
	if ok1 && ok2 {
		return hi, lo, nil
	}
	if _, ok := c.fields.Field(n.text); ok {
		return hi, lo, errorAt(n.at, "'%s' is not an IPv6 address", n.text)
	}
	var known []string
	for _, k := range c.fields.Names() {
		if whole, ok := strings.CutSuffix(k, "_hi"); ok {
			known = append(known, whole)
		}
	}
	return hi, lo, unknownName(n.at, n.text, known)
}
