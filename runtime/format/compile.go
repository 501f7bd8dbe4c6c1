package format

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Options holds what Compile needs to know of names outside the format.
type Options struct {
	Known    func(name string) bool   // reports whether name is a field of every packet
	Reserved func(name string) string // returns why a field cannot have this name; empty if it can
	Sample   func(name string) (SampleType, error)
}

const (
	mostBits  = 1 << 19 // of a header: 64 KiB
	mostRows  = 1024
	mostBytes = 1 << 16 // of one field
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// compiler builds a Format row by row.
type compiler struct {
	f       *Format
	o       Options
	at      place // end of the last row
	little  bool  // byte order of the previous row
	texts   []text
	sources map[string][]string // names that a name's position and presence depend on
	moved   []string            // names that the end of the last row depends on
}

// text is an expression to be checked once all names are known.
type text struct {
	row  Row
	what string
	e    *expr.Expr
	more []string // additional names known in this expression
}

// Compile checks a declared format. It returns a *Error for the first error in the order of the rows.
func Compile(s Spec, o Options) (*Format, error) {
	if s.Layer == "" {
		s.Layer = "payload"
	}
	f := &Format{Spec: s, byName: map[string]*Field{}, items: map[string]item{}}
	c := &compiler{f: f, o: o, sources: map[string][]string{}}
	err := c.head()
	if err == nil {
		err = c.rows(s.Rows, nil, nil, 0)
	}
	if err == nil {
		err = c.end()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (c *compiler) errorf(r Row, format string, args ...any) error {
	s := c.f.Spec
	line, name := r.Line, r.Name
	if line == 0 {
		line = s.Line
	}
	if r.List != "" {
		name = r.List
	}
	return &Error{File: s.File, Format: s.Name, Field: name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

func (c *compiler) head() (err error) {
	s := c.f.Spec
	if s.Name != "" && !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`).MatchString(s.Name) {
		return c.errorf(Row{}, "a name has small letters, digits and hyphens")
	}
	if !slices.Contains(Layers, s.Layer) {
		return c.errorf(Row{}, "layer '%s' is none of %v", s.Layer, Layers)
	}
	if len(s.Rows) == 0 {
		return c.errorf(Row{}, "it has no fields")
	}
	if c.f.where, err = c.text(Row{}, "where", s.Where, true); err == nil {
		c.f.length, err = c.text(Row{}, "payload", s.Payload, false, HeaderBytes)
	}
	if err == nil {
		c.f.data, err = c.text(Row{}, "data", s.Data, true)
	}
	if err == nil {
		err = c.samples()
	}
	return err
}

// text parses an expression of a row and queues it for a later check.
func (c *compiler) text(r Row, what, s string, condition bool, more ...string) (*expr.Expr, error) {
	if s == "" {
		return nil, nil
	}
	e, err := expr.Parse(s)
	if err != nil {
		return nil, c.errorf(r, "%s = %q: %v", what, s, err)
	}
	if e.IsCondition() != condition {
		return nil, c.errorf(r, "%s = %q: %s expected", what, s, map[bool]string{true: "a condition", false: "a number"}[condition])
	}
	c.texts = append(c.texts, text{r, what, e, more})
	return e, nil
}

func (c *compiler) rows(rows []Row, when []*expr.Expr, names []string, deep int) error {
	if deep > 4 {
		return c.errorf(rows[0], "parts are nested too deeply")
	}
	for i := range rows {
		if len(c.f.Fields) > mostRows {
			return c.errorf(rows[i], "there are more than %d fields", mostRows)
		}
		err := c.row(rows[i], when, names, deep)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) row(r Row, when []*expr.Expr, names []string, deep int) error {
	own, err := c.text(r, "when", r.When, true)
	if err != nil {
		return err
	}
	if own != nil {
		when = append(slices.Clone(when), own)
		for _, n := range own.Names() {
			names = append(slices.Clone(names), n.Text)
		}
	}
	switch {
	case r.Group:
		return c.group(r, when, names, deep)
	case r.List != "":
		return c.list(r, when, names)
	}
	return c.field(r, when, own != nil, names)
}

// group assigns positions to rows with a common condition.
func (c *compiler) group(r Row, when []*expr.Expr, names []string, deep int) error {
	if r.When == "" || len(r.Rows) == 0 {
		return c.errorf(r, "a part has 'when' and fields")
	}
	before := c.at
	if err := c.rows(r.Rows, when, names, deep+1); err != nil {
		return err
	}
	if len(c.at.terms) > len(before.terms) {
		return c.moveGroup(r, before, when, names)
	}
	bits := c.at.bit - before.bit
	if bits%8 != 0 {
		return c.errorf(r.Rows[0], "the part that begins here has %d bits, which are not whole bytes: hint: { reserved = %d }", bits, 8-bits%8)
	}
	c.at = before
	c.optional(bits, nil, when, names)
	return nil
}

// moveGroup handles a group that contains groups, whose terms already include all their conditions.
func (c *compiler) moveGroup(r Row, before place, when []*expr.Expr, names []string) error {
	bits, inner := c.at.bit-before.bit, c.at.terms[len(before.terms):]
	if bits%8 != 0 {
		return c.errorf(r.Rows[0], "the part that begins here has %d bits, which are not whole bytes", bits)
	}
	inner = slices.Clone(inner)
	c.at = before
	c.optional(bits, nil, when, names)
	c.at.terms = append(slices.Clone(c.at.terms), inner...)
	return nil
}

// optional advances the position by bits that are present under conditions, count times.
func (c *compiler) optional(bits int64, count *expr.Expr, when []*expr.Expr, names []string) {
	if bits == 0 && count == nil {
		return
	}
	c.at.terms = append(slices.Clone(c.at.terms), expr.Term{Bits: bits, Count: count, When: when})
	c.moved = append(slices.Clone(c.moved), names...)
}

func (c *compiler) field(r Row, when []*expr.Expr, optional bool, names []string) error {
	if err := c.checkRow(r); err != nil {
		return err
	}
	x := &Field{Row: r, when: when}
	at, err := c.placeOf(r)
	if err != nil {
		return err
	}
	_, fixed := strconv.ParseInt(r.At, 10, 64)
	x.place, x.apart = at, r.At != "" && fixed != nil
	if x.is, err = c.text(r, "is", r.Is, false, HeaderBytes, PayloadBytes); err != nil {
		return err
	}
	if r.Name != "" {
		c.sources[r.Name] = append(slices.Clone(c.moved), names...)
		c.f.byName[r.Name] = x
	}
	if x.apart {
		for _, n := range must(expr.Parse(r.At)).Names() {
			c.sources[r.Name] = append(c.sources[r.Name], n.Text)
		}
		c.f.Fields = append(c.f.Fields, x)
		return c.bitNames(x)
	}
	if c.at.bit%8 != 0 && r.Little != c.little {
		return c.errorf(r, "the byte order changes within a byte: bits of a little-endian word are declared from the least significant one on")
	}
	c.little = r.Little
	c.f.Fields = append(c.f.Fields, x)
	if err := c.bitNames(x); err != nil {
		return err
	}
	if r.Const != nil && len(when) == 0 && len(x.terms) == 0 {
		c.check(x)
	}
	if optional {
		if r.Bits%8 != 0 {
			return c.errorf(r, "a field with 'when' is whole bytes: put it into a part, { when = …, {…}, { reserved = %d } }", 8-r.Bits%8)
		}
		c.optional(int64(r.Bits), nil, when, names)
		return nil
	}
	if c.at.bit += int64(r.Bits); c.at.bit > mostBits {
		return c.errorf(r, "the header is longer than %d bytes", mostBits/8)
	}
	return nil
}

// bitNames adds a field for each named bit of x, at its place within x.
func (c *compiler) bitNames(x *Field) error {
	for i, v := range x.BitNames {
		bit := Row{Line: x.Line, Name: v.Name, Bits: 1, Little: x.Little, Doc: fmt.Sprintf("bit %d of `%s`", v.Number, x.Name)}
		switch {
		case x.Kind != Unsigned || x.Const != nil || x.Reserved:
			return c.errorf(x.Row, "bits: names of bits are for unsigned numbers without const")
		case v.Number >= uint64(x.Bits):
			return c.errorf(x.Row, "bits: '%s' is bit %d, and the field has bits 0 to %d", v.Name, v.Number, x.Bits-1)
		case i > 0 && x.BitNames[i-1].Number == v.Number:
			return c.errorf(x.Row, "bits: bit %d has the names '%s' and '%s'", v.Number, x.BitNames[i-1].Name, v.Name)
		}
		if err := c.checkName(bit, bit.Name); err != nil {
			return err
		}
		b := &Field{Row: bit, place: x.place, when: x.when, apart: true, of: x}
		if b.place.bit += int64(v.Number); !x.Little {
			b.place.bit = x.place.bit + int64(x.Bits) - 1 - int64(v.Number)
		}
		c.sources[bit.Name] = c.sources[x.Name]
		c.f.byName[bit.Name] = b
		c.f.Fields = append(c.f.Fields, b)
	}
	return nil
}

// check adds a constant to the checks that identify packets; adjacent constants are merged.
func (c *compiler) check(x *Field) {
	k := c.f.checks
	value := *x.Const
	if x.Bits < 64 {
		value &= 1<<x.Bits - 1
	}
	if n := len(k); n > 0 && !x.Little && k[n-1].Field.Flags == 0 {
		last := &k[n-1]
		if int(last.Field.BitOffset)+int(last.Field.BitWidth) == int(x.bit) && int(last.Field.BitWidth)+x.Bits <= 64 {
			last.Value = last.Value<<x.Bits | value
			last.Field.BitWidth += uint16(x.Bits)
			return
		}
	}
	f := c.f.native(x)
	f.Flags &^= expr.FieldSigned
	c.f.checks = append(c.f.checks, expr.Check{Field: f, Value: value})
}

// placeOf returns the position of a row: after the previous one, or at its At.
func (c *compiler) placeOf(r Row) (place, error) {
	if r.At == "" {
		return c.at, nil
	}
	bit, err := strconv.ParseInt(r.At, 10, 64)
	if err != nil {
		e, err := c.text(r, "at", r.At, false, HeaderBytes)
		if err != nil {
			return place{}, err
		}
		return place{terms: []expr.Term{{Bits: 1, Count: e}}}, nil
	}
	switch {
	case len(c.at.terms) > 0:
		return place{}, c.errorf(r, "at = %d: parts before it move it: leave 'at' out, or say a text", bit)
	case bit < c.at.bit:
		return place{}, c.errorf(r, "it overlaps what is before it, which ends at bit %d: at = %d", c.at.bit, bit)
	case bit > c.at.bit:
		return place{}, c.errorf(r, "a gap of %d bits is in front of it: say { reserved = %d }", bit-c.at.bit, bit-c.at.bit)
	}
	return c.at, nil
}

// end performs the checks that need all names.
func (c *compiler) end() error {
	f := c.f
	if c.at.bit%8 != 0 {
		return c.errorf(f.Spec.Rows[len(f.Spec.Rows)-1], "the header ends within a byte, at bit %d: say { reserved = %d }", c.at.bit, 8-c.at.bit%8)
	}
	f.header = c.at
	for _, t := range c.texts {
		if err := c.checkText(t); err != nil {
			return err
		}
	}
	if err := c.cycles(); err != nil {
		return err
	}
	return c.sequence()
}

// sequence checks that the sequence field and the fields of Per are integers.
func (c *compiler) sequence() error {
	number := func(name string) bool {
		x := c.f.byName[name]
		return x != nil && x.Kind.number() || c.f.items[name].list != nil
	}
	s := c.f.Spec
	if s.Sequence != "" && !number(s.Sequence) {
		return c.errorf(Row{}, "sequence = '%s' is not a field that is a whole number%s", s.Sequence, c.near(s.Sequence))
	}
	for _, name := range s.Per {
		if name == s.Sequence {
			return c.errorf(Row{}, "sequence: per = '%s' is the sequence itself: name the fields for each of whose values it begins again", name)
		}
		if !number(name) {
			return c.errorf(Row{}, "sequence: per = '%s' is not a field that is a whole number%s", name, c.near(name))
		}
	}
	return nil
}

func (c *compiler) near(name string) string {
	if n := suggest.Nearest(name, c.f.Names()); n != "" {
		return fmt.Sprintf(" (did you mean '%s'?)", n)
	}
	return ""
}

func (c *compiler) checkText(t text) error {
	for _, n := range t.e.Names() {
		x := c.f.byName[n.Text]
		_, constant := c.f.Constant(n.Text)
		_, isItem := c.f.items[n.Text]
		switch {
		case x != nil && !x.Kind.number():
			return c.errorf(t.row, "%s: '%s' is %s, not a whole number", t.what, n.Text, x.Kind.words())
		case x != nil, constant, isItem, slices.Contains(t.more, n.Text):
		case t.what == "where" && c.o.Known != nil && c.o.Known(n.Text):
		default:
			return c.errorf(t.row, "%s: unknown field '%s'%s", t.what, n.Text, c.near(n.Text))
		}
	}
	return nil
}
