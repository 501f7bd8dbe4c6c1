package expr

import (
	"math/bits"
	"slices"
)

// Deriver is a Resolver that also resolves names whose values need more than one load.
type Deriver interface {
	// Derived resolves a name whose number is computed. It is called before Field.
	Derived(name string) (Derived, bool)
	// Constant resolves a name of a constant, such as a named value of a field.
	Constant(name string) (uint64, bool)
}

// Derived is a computed number of a packet. It is absent unless all of Checks and When hold. Its expressions may use other derived names, but not
// depend on the name itself.
type Derived struct {
	Field  Field   // field to read, at Place bits after its offset
	Place  []Term  // nil: no additional offset
	Find   *Find   // instead of Field: a list item; Field is the start of the list
	Bytes  bool    // instead: the byte offset of Field
	Text   *Expr   // instead: the value of this expression
	Checks []Check // required values of other fields
	When   []*Expr // conditions
	Refuse string  // error message if the name is not a number; empty if it is
}

// Term is a summand of a place: Bits times Count (nil: 1) if all of When hold, else 0.
type Term struct {
	Bits  int64
	Count *Expr
	When  []*Expr
}

// Check is a field and its required value.
type Check struct {
	Field Field
	Value uint64
}

// Find is a lookup in a list of Count items of Bytes bytes each: the value is in the last ValueBits bits of the first item that begins with Key.
type Find struct {
	Bytes, ValueBits int
	Key              uint64
	Count            *Expr
}

// maxNested is the maximum nesting depth of derived names.
const maxNested = 16

// derived emits the number of a derived name.
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

// guards makes the number on the stack absent unless all checks and conditions hold.
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

// place emits the sum of all terms, in bits.
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

// flags combines several terms: an offset of bits for each set bit of a masked number, such as the indicators of VITA 49.
type flags struct {
	of   *name
	mask uint64
	bits int64
}

// gather separates the terms that test flags of the same number, if there are several.
func gather(place []Term) (terms []Term, several []flags) {
	var groups []flags
	var alone []Term // the first term of each group
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

// flag converts a term whose only condition is `name & bit ~= 0`.
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

// flags emits the offset of flags; it is 0 if their number is absent.
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

// CompilePlace compiles the position of a field into a program that computes its distance in bits from Field's offset. The program's result is absent
// if the packet lacks the field; the program is nil for a field at a fixed position. Its errors are of type *Error.
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
