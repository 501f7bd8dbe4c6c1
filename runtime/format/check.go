package format

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// checkRow checks a field independently of other fields.
func (c *compiler) checkRow(r Row) error {
	if r.Name == "" && !r.Reserved {
		return c.errorf(r, "a field has a name; bits without one are { reserved = BITS }")
	}
	if r.Name != "" {
		if err := c.checkName(r, r.Name); err != nil {
			return err
		}
	}
	if err := c.checkWidth(r); err != nil {
		return err
	}
	for what, v := range map[string]*uint64{"const": r.Const} {
		if v != nil && !fits(*v, r) {
			return c.errorf(r, "%s = %s does not fit %d bits", what, shown(*v, r), r.Bits)
		}
	}
	for _, v := range r.Values {
		if !fits(v.Number, r) {
			return c.errorf(r, "the value '%s', %s, does not fit %d bits", v.Name, shown(v.Number, r), r.Bits)
		}
		if v.Name == "" {
			return c.errorf(r, "the value %s has no name", shown(v.Number, r))
		}
	}
	return c.checkUnit(r)
}

func (c *compiler) checkName(r Row, name string) error {
	switch {
	case !identifier.MatchString(name):
		return c.errorf(r, "'%s' is not a valid name: letters, digits and '_', not a digit first", name)
	case slices.Contains([]string{"and", "or", "not", "in", HeaderBytes, PayloadBytes}, name):
		return c.errorf(r, "'%s' has a meaning of its own in conditions: choose another name", name)
	case c.f.byName[name] != nil || c.f.items[name].list != nil:
		return c.errorf(r, "there are two fields of this name")
	}
	if c.o.Reserved != nil {
		if why := c.o.Reserved(name); why != "" {
			return c.errorf(r, "%s: choose another name", why)
		}
	}
	return nil
}

func (c *compiler) checkWidth(r Row) error {
	most := 64
	switch r.Kind {
	case Bytes:
		most = 8 * mostBytes
	case MAC:
		most = 48
	case IPv4:
		most = 32
	case IPv6:
		most = 128
	}
	switch {
	case r.Reserved && r.Bits >= 1 && r.Bits <= 8*mostBytes:
		return nil
	case r.Kind == Float && r.Bits != 32 && r.Bits != 64:
		return c.errorf(r, "a floating-point number has 32 or 64 bits, not %d", r.Bits)
	case r.Bits < 1 || r.Bits > most:
		return c.errorf(r, "a width of %d bits is outside 1 to %d", r.Bits, most)
	case !r.Kind.number() && (r.Bits%8 != 0 || c.at.bit%8 != 0):
		return c.errorf(r, "%s begin and end with a byte", r.Kind.words())
	case r.Kind == Signed && r.Bits == 1:
		return c.errorf(r, "a signed number has at least 2 bits")
	}
	return nil
}

func (c *compiler) checkUnit(r Row) error {
	scaled := r.Scale != 0 || r.Offset != 0 || r.Unit != ""
	switch {
	case scaled && r.Kind != Unsigned && r.Kind != Signed && r.Kind != Float:
		return c.errorf(r, "it is %s and has no unit or scale", r.Kind.words())
	case !r.Kind.number() && len(r.Values) > 0:
		return c.errorf(r, "it is %s and has no names for its values", r.Kind.words())
	case r.Const != nil && (r.Kind == Bytes || r.Kind == IPv6):
		return c.errorf(r, "it is %s and has no const: let the script compare it", r.Kind.words())
	case r.Hex && (r.Kind != Unsigned || scaled):
		return c.errorf(r, "base \"hex\" is for unsigned numbers without unit and scale")
	case scaled && len(r.Values) > 0:
		return c.errorf(r, "its values have names: it has no unit or scale")
	case math.IsNaN(r.Scale) || math.IsInf(r.Scale, 0) || math.IsNaN(r.Offset) || math.IsInf(r.Offset, 0):
		return c.errorf(r, "scale and offset are finite numbers")
	case len(r.Unit) > 16 || strings.ContainsFunc(r.Unit, func(x rune) bool { return !unicode.IsPrint(x) || x == ' ' }):
		return c.errorf(r, "unit %q: at most 16 characters without spaces", r.Unit)
	}
	return nil
}

// list assigns a position to a list of items.
func (c *compiler) list(r Row, when []*expr.Expr, names []string) error {
	if err := c.checkName(Row{Line: r.Line, List: r.List}, r.List); err != nil {
		return err
	}
	if r.Count == "" || len(r.Rows) < 1 {
		return c.errorf(r, "a list has 'count' and the fields of an item")
	}
	l := &List{Row: r, place: c.at, when: when, order: len(c.f.Fields)}
	var err error
	if l.count, err = c.text(r, "count", r.Count, false); err != nil {
		return err
	}
	for _, x := range r.Rows {
		if x.Group || x.List != "" || x.At != "" || x.When != "" || x.Little || !x.Kind.number() || x.Bits < 1 || x.Bits > 64 {
			return c.errorf(x, "an item has big-endian whole numbers of 1 to 64 bits, one behind the other")
		}
		l.itemBits += int64(x.Bits)
	}
	if l.itemBits%8 != 0 || c.at.bit%8 != 0 {
		return c.errorf(r, "items are whole bytes, and these have %d bits", l.itemBits)
	}
	c.f.Lists = append(c.f.Lists, l)
	for _, v := range r.Items {
		if err := c.item(l, v); err != nil {
			return err
		}
	}
	for _, n := range l.count.Names() {
		names = append(slices.Clone(names), n.Text)
	}
	for _, v := range r.Items {
		c.sources[v.Name] = append(slices.Clone(c.moved), names...)
	}
	c.optional(l.itemBits, l.count, when, names)
	return nil
}

// item checks a named item, which is identified by the bits in front of its value.
func (c *compiler) item(l *List, v Value) error {
	r := Row{Line: l.Line, Name: v.Name}
	if err := c.checkName(r, v.Name); err != nil {
		return err
	}
	if l.itemBits > 64 || len(l.Rows) < 2 {
		return c.errorf(r, "only items of at most 64 bits, with a value behind their key, have names")
	}
	if l.Rows[len(l.Rows)-1].Kind == Signed {
		return c.errorf(r, "a value with a name is unsigned: read the list '%s' for its signed ones", l.List)
	}
	var key uint64
	for _, x := range l.Rows[:len(l.Rows)-1] {
		part, ok := l.Match[x.Name]
		if x.Name == l.Key {
			part, ok = v.Number, true
		}
		if !ok {
			return c.errorf(r, "the field '%s' of an item is neither its key nor in 'match'", x.Name)
		}
		if !fits(part, x) {
			return c.errorf(r, "%s = %d does not fit %d bits", x.Name, part, x.Bits)
		}
		key = key<<x.Bits | part
	}
	c.f.items[v.Name] = item{l, key}
	return nil
}

// cycles returns an error if the position or presence of a name depends on the name itself.
func (c *compiler) cycles() error {
	state := map[string]int{} // 1: in progress, 2: done
	var way []string
	var visit func(string) error
	visit = func(name string) error {
		switch state[name] {
		case 1:
			way = append(way, name)
			r := Row{Name: name}
			if x := c.f.byName[name]; x != nil {
				r = x.Row
			}
			return c.errorf(r, "where it is depends on itself: %s", strings.Join(way[slices.Index(way, name):], " -> "))
		case 2:
			return nil
		}
		state[name] = 1
		way = append(way, name)
		for _, n := range c.sources[name] {
			if err := visit(n); err != nil {
				return err
			}
		}
		way = way[:len(way)-1]
		state[name] = 2
		return nil
	}
	for _, name := range c.f.Names() {
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether a raw number, in two's complement if signed, fits the row's bits.
func fits(v uint64, r Row) bool {
	if r.Bits >= 64 {
		return true
	}
	if r.Kind == Signed {
		half := int64(1) << (r.Bits - 1)
		return int64(v) >= -half && int64(v) < half
	}
	return v>>r.Bits == 0
}

func shown(v uint64, r Row) string {
	if r.Kind == Signed {
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprint(v)
}
