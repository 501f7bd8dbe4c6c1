package expr

import (
	"encoding/binary"
	"math/big"
	"net/netip"
	"strings"
)

// CompilePacket compiles a condition into a program over packet fields. Errors are *Error.
func (e *Expr) CompilePacket(fields Resolver) (Program, error) {
	if !e.cond {
		return nil, errorAt(e.root.pos(), "a packet condition must be true or false: compare the number with something")
	}
	c := &compiler{fields: fields}
	return c.shared("condition", func() error { return c.condition(e.root) })
}

// CompileNumber compiles a number into a program over packet fields that leaves it for each
// packet; signed: as two's complement. Errors are *Error.
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

// finish ends the program and checks its size; what names it.
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
	nested         int // derived names inside each other
	sharing
}

// operand is what a number compiles to: a constant not yet emitted, or code on the stack.
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

// pushed makes sure that an operand is on the stack.
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

// shortcut leaves x as the result when that settles it, else y.
func (c *compiler) shortcut(b *binaryNode, jump Op) (err error) {
	if err = c.condition(b.x); err == nil {
		c.joined(jump, func() { err = c.condition(b.y) })
	}
	return err
}

// joined emits a jump over what second emits.
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

// mirrored is the comparison that holds when the sides are exchanged.
var mirrored = map[string]string{"==": "==", "~=": "~=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// comparison puts a constant on the right: the engine runs a field against a number fastest.
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

// masked compares some bits of the number on the stack.
func (c *compiler) masked(mask, want uint64) {
	c.push(mask)
	c.op(OpAnd)
	c.push(want)
	c.op(OpEq)
}

// compareIPv6 compares the halves. `~=` asks whether one of them differs: false, like every
// comparison, where the packet has no such field.
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

// halves resolves the two fields that make an IPv6 address.
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
