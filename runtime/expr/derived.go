package expr

import (
	"math/bits"
	"slices"
)

// Deriver is a Resolver that knows names beyond fields at fixed places.
type Deriver interface {
	// Derived finds a name whose number takes more than a load. It is asked before Field.
	Derived(name string) (Derived, bool)
	// Constant finds a name that stands for a number, such as a value's of a field.
	Constant(name string) (uint64, bool)
}

// Derived is a number of a packet, which is absent where one of Checks or When does not hold. Its expressions may use
// other derived names; a name that depends on itself is an error.
type Derived struct {
	Field  Field   // what is read, the bits of Place further on
	Place  []Term  // nil: where Field says
	Find   *Find   // instead of Field: an item of a list that begins where Field says
	Bytes  bool    // instead: where Field begins, in bytes
	Text   *Expr   // instead: this number
	Checks []Check // what other fields must be
	When   []*Expr // conditions
	Refuse string  // why it is no number; empty: it is one
}

// Term is a part of a place: Bits, times Count (nil: 1), where all of When hold, else 0.
type Term struct {
	Bits  int64
	Count *Expr
	When  []*Expr
}

// Check is a field, and what it must be.
type Check struct {
	Field Field
	Value uint64
}

// Find is an item of a list: Count items of Bytes bytes, of which the first that begins with Key has the value in its
// last ValueBits bits.
type Find struct {
	Bytes, ValueBits int
	Key              uint64
	Count            *Expr
}

// maxNested bounds derived names inside each other.
const maxNested = 16

// derived emits a derived name's number.
func (c *compiler) derived(n *name, d Derived) (operand, error) {
	if d.Refuse != "" {
		return operand{}, errorAt(n.at, "%s", d.Refuse)
	}
	if x, ok := c.again(n); ok {
		return x, nil
	}
	if c.nested++; c.nested > maxNested {
		return operand{}, errorAt(n.at, "'%s' depends on itself, or on too many others", n.text)
	}
	defer func() { c.nested-- }()
	out, err := c.derivedValue(n, d)
	if err == nil {
		err = c.guards(d)
	}
	if err == nil && c.counting {
		c.known[n.text] = out
		c.ready = append(c.ready, n)
	}
	return out, err
}

func (c *compiler) derivedValue(n *name, d Derived) (operand, error) {
	out := operand{nil, d.Field.unsigned64(), n}
	switch {
	case d.Text != nil:
		x, err := c.number(d.Text.root)
		c.pushed(x)
		return operand{nil, x.unsigned, n}, err
	case d.Bytes:
		err := c.place(d)
		c.push(uint64(d.Field.BitOffset))
		c.op(OpAdd)
		c.push(3)
		c.op(OpShr)
		return operand{nil, false, n}, err
	case d.Find != nil:
		err := c.place(d)
		if err == nil {
			var x operand
			x, err = c.number(d.Find.Count.root)
			c.pushed(x)
		}
		c.emit(Insn{Op: OpFind, A: uint8(d.Find.Bytes), B: uint16(d.Find.ValueBits), C: d.Field.BitOffset, Imm: d.Find.Key})
		return operand{nil, false, n}, err
	case d.Place == nil:
		c.emit(d.Field.load())
		return out, nil
	}
	err := c.place(d)
	load := d.Field.load()
	load.Op = OpLoadAt
	c.emit(load)
	return out, err
}

// guards makes the number on the stack absent where the name is not there.
func (c *compiler) guards(d Derived) error {
	for _, k := range d.Checks {
		c.emit(k.Field.load())
		c.push(k.Value)
		c.op(OpEq)
		c.op(OpKeep)
	}
	for _, w := range d.When {
		if err := c.condition(w.root); err != nil {
			return err
		}
		c.op(OpKeep)
	}
	return nil
}

// place emits the bits of all terms.
func (c *compiler) place(d Derived) error {
	terms, flags := gather(d.Place)
	if len(d.Place) == 0 {
		c.push(0)
	}
	for i, t := range terms {
		if err := c.term(t); err != nil {
			return err
		}
		if i > 0 {
			c.op(OpAdd)
		}
	}
	for i, f := range flags {
		if err := c.flags(f); err != nil {
			return err
		}
		if i > 0 || len(terms) > 0 {
			c.op(OpAdd)
		}
	}
	return nil
}

// flags is several terms: bits for each one that is set of some bits of a number, such as VITA 49's indicators.
type flags struct {
	of   *name
	mask uint64
	bits int64
}

// gather takes the terms out that are flags of one number, where there are several.
func gather(place []Term) (terms []Term, several []flags) {
	var groups []flags
	var alone []Term // what each group began with
	for _, t := range place {
		f, ok := t.flag()
		if !ok {
			terms = append(terms, t)
			continue
		}
		at := slices.IndexFunc(groups, func(g flags) bool { return g.of.text == f.of.text && g.bits == f.bits && g.mask&f.mask == 0 })
		if at < 0 {
			groups, alone = append(groups, f), append(alone, t)
		} else {
			groups[at].mask |= f.mask
		}
	}
	for i, g := range groups {
		if bits.OnesCount64(g.mask) > 1 {
			several = append(several, g)
		} else {
			terms = append(terms, alone[i])
		}
	}
	return terms, several
}

// flag is a term whose only condition is `name & bit ~= 0`.
func (t Term) flag() (f flags, ok bool) {
	if t.Count != nil || len(t.When) != 1 {
		return f, false
	}
	differs, ok := t.When[0].root.(*binaryNode)
	if !ok || differs.op != "~=" || !isWhole(differs.y, 0) {
		return f, false
	}
	and, ok := differs.x.(*binaryNode)
	if !ok || and.op != "&" {
		return f, false
	}
	of, ok := and.x.(*name)
	val, err := fold(and.y)
	if !ok || err != nil || val == nil || !val.IsInt() || !val.Num().IsUint64() {
		return f, false
	}
	mask := val.Num().Uint64()
	return flags{of, mask, t.Bits}, bits.OnesCount64(mask) == 1
}

func isWhole(n node, want int64) bool {
	val, err := fold(n)
	return err == nil && val != nil && val.IsInt() && val.Num().IsInt64() && val.Num().Int64() == want
}

// flags emits the bits of flags; where their number is absent none are set.
func (c *compiler) flags(f flags) error {
	load := func() error {
		x, err := c.number(f.of)
		c.pushed(x)
		return err
	}
	if err := load(); err != nil {
		return err
	}
	c.push(f.mask)
	c.op(OpAnd)
	c.op(OpOnes)
	c.push(uint64(f.bits))
	c.op(OpMul)
	if err := load(); err != nil {
		return err
	}
	c.push(0)
	c.op(OpGeU)
	c.op(OpZero)
	return nil
}

func (c *compiler) term(t Term) error {
	c.push(uint64(t.Bits))
	if t.Count != nil {
		x, err := c.number(t.Count.root)
		if err != nil {
			return err
		}
		c.pushed(x)
		c.op(OpMul)
	}
	for _, w := range t.When {
		if err := c.condition(w.root); err != nil {
			return err
		}
		c.op(OpZero)
	}
	return nil
}

// CompilePlace compiles where a field lies: a program that leaves how many bits further on than the Field says, absent
// where the packet lacks it. For a field at a fixed place the program is nil. Errors are *Error.
func CompilePlace(text string, fields Resolver) (Program, Field, error) {
	at := Pos{1, 1}
	if r, ok := fields.(Deriver); ok {
		if d, ok := r.Derived(text); ok {
			if d.Refuse != "" || d.Find != nil || d.Bytes || d.Text != nil {
				return nil, Field{}, errorAt(at, "'%s' is computed and has no place of its own", text)
			}
			c := &compiler{fields: fields, nested: 1}
			prog, err := c.shared("place", func() error {
				if err := c.place(d); err != nil {
					return err
				}
				return c.guards(d)
			})
			return prog, d.Field, err
		}
	}
	if f, ok := fields.Field(text); ok {
		return nil, f, nil
	}
	return nil, Field{}, unknownName(at, text, fields.Names())
}
