package format

import (
	"maps"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// A Format is a checked packet header.
type Format struct {
	Spec    Spec
	Fields  []*Field // in order, including those of groups
	Lists   []*List
	byName  map[string]*Field
	items   map[string]item
	where   *expr.Expr
	length  *expr.Expr   // of the payload; nil: the rest of the packet
	data    *expr.Expr   // selects packets that carry data; nil: all
	samples *sampleTexts // nil: none
	header  place        // end of the header
	checks  []expr.Check
}

// A place is a position in bits from the start of the header.
type place struct {
	bit   int64
	terms []expr.Term
}

// A Field is a row with its position.
type Field struct {
	Row
	place
	when  []*expr.Expr // conditions, including those of its groups
	is    *expr.Expr
	apart bool   // positioned by At and not part of the header
	of    *Field // the field of which it is a named bit; nil: none
}

// A List is a row of items with its position.
type List struct {
	Row
	place
	when     []*expr.Expr
	count    *expr.Expr
	itemBits int64
	order    int // number of Fields before it
}

// item is a named item of a list.
type item struct {
	list *List
	key  uint64
}

// Fixed returns the length of the header in bytes. It returns false if the length depends on the packet, or if packets of the format must be
// identified by constants or conditions.
func (f *Format) Fixed() (int, bool) {
	return int(f.header.bit / 8), len(f.header.terms) == 0 && len(f.checks) == 0 && f.where == nil
}

// Moves reports whether the header's length depends on the packet.
func (f *Format) Moves() bool { return len(f.header.terms) > 0 }

// PayloadText returns the expression of the payload's length; empty if it is the rest of the packet.
func (f *Format) PayloadText() string { return f.Spec.Payload }

// Names returns the names of fields and items, in order.
func (f *Format) Names() []string {
	var names []string
	for _, x := range f.Fields {
		if !x.Reserved {
			names = append(names, x.Name)
		}
	}
	for _, l := range f.Lists {
		for _, i := range l.Items {
			names = append(names, i.Name)
		}
	}
	return names
}

// Named returns a field, or nil if name is unknown or an item's.
func (f *Format) Named(name string) *Field { return f.byName[name] }

// WithItems returns the format with additional named items of its list. Errors name the invalid item.
func (f *Format) WithItems(more []Value, o Options) (*Format, error) {
	s := f.Spec
	s.Rows = slices.Clone(s.Rows)
	for i := range s.Rows {
		if s.Rows[i].List != "" {
			s.Rows[i].Items = slices.Concat(s.Rows[i].Items, more)
			return Compile(s, o)
		}
	}
	return nil, &Error{Format: s.Name, Msg: "it has no list of items"}
}

// HasItems reports whether the format has a list, whose items can be named.
func (f *Format) HasItems() bool { return len(f.Lists) > 0 }

// ItemBits returns the length of an item.
func (l *List) ItemBits() int { return int(l.itemBits) }

// ItemKey returns the key of a named item, or false if the name is unknown.
func (f *Format) ItemKey(name string) (uint64, bool) {
	i, ok := f.items[name]
	return i.key, ok
}

// ListBytes returns the name of the distance from the start of the header to a list, in bytes.
func ListBytes(list string) string { return list + "." + HeaderBytes }

// base returns the base of the fields' bit offsets.
func (f *Format) base() uint8 {
	return [...]uint8{expr.BaseStart, expr.BaseL3, expr.BaseL4, expr.BasePayload}[max(0, slices.Index(Layers, f.Spec.Layer))]
}

// native returns the field in the engine's form, at the constant part of its position.
func (f *Format) native(x *Field) expr.Field {
	out := expr.Field{Base: f.base(), BitWidth: uint16(x.Bits), BitOffset: uint32(x.bit)}
	if x.Little {
		out.Flags |= expr.FieldLittleEndian
	}
	if x.Kind == Signed {
		out.Flags |= expr.FieldSigned
	}
	return out
}

// conditions returns a field's own conditions and that of the format.
func (f *Format) conditions(own []*expr.Expr) []*expr.Expr {
	if f.where == nil {
		return own
	}
	return append([]*expr.Expr{f.where}, own...)
}

// Names that every format defines in addition to its fields: the number of bytes of its header and of the payload. DataHeaderBytes is for stages:
// HeaderBytes of the packets that carry data, absent in others.
const (
	HeaderBytes     = "header_bytes"
	PayloadBytes    = "payload_bytes"
	DataHeaderBytes = "data." + HeaderBytes
)

var payloadRest = must(expr.Parse("payload_len - header_bytes"))

func must(e *expr.Expr, err error) *expr.Expr {
	if err != nil {
		panic(err)
	}
	return e
}

// Field resolves a field at a fixed position of every packet.
func (f *Format) Field(name string) (expr.Field, bool) {
	x := f.byName[name]
	if x == nil || !f.plain(x) {
		return expr.Field{}, false
	}
	return f.native(x), true
}

func (f *Format) plain(x *Field) bool {
	return x.Kind.number() && len(x.terms) == 0 && len(x.when) == 0 && f.where == nil && len(f.checks) == 0
}

// Derived resolves a name whose value or position depends on the packet.
func (f *Format) Derived(name string) (expr.Derived, bool) {
	checks := f.checks
	switch name {
	case HeaderBytes:
		return expr.Derived{Field: expr.Field{BitOffset: uint32(f.header.bit)}, Place: f.header.terms, Bytes: true, Checks: checks,
			When: f.conditions(nil)}, true
	case DataHeaderBytes:
		d, _ := f.Derived(HeaderBytes)
		if f.data != nil {
			d.When = append(slices.Clone(d.When), f.data)
		}
		return d, true
	case PayloadBytes:
		text := f.length
		if text == nil {
			text = payloadRest
		}
		return expr.Derived{Text: text}, true
	}
	for _, l := range f.Lists {
		if name == ListBytes(l.List) {
			return expr.Derived{Field: expr.Field{BitOffset: uint32(l.bit)}, Place: l.terms, Bytes: true, Checks: checks, When: f.conditions(l.when)}, true
		}
	}
	if i, ok := f.items[name]; ok {
		l := i.list
		last := l.Rows[len(l.Rows)-1]
		return expr.Derived{Field: expr.Field{BitOffset: uint32(l.bit)}, Place: l.terms, Checks: checks, When: f.conditions(l.when),
			Find: &expr.Find{Bytes: int(l.itemBits / 8), ValueBits: last.Bits, Key: i.key, Count: l.count}}, true
	}
	x := f.byName[name]
	switch {
	case x == nil || f.plain(x):
		return expr.Derived{}, false
	case !x.Kind.number():
		return expr.Derived{Refuse: "'" + name + "' is " + x.Kind.words() + ", not a whole number: f:decode reads it"}, true
	}
	d := expr.Derived{Field: f.native(x), Place: x.terms, When: f.conditions(x.when), Checks: checks}
	if x.Const != nil { // the format's condition may depend on it
		d.When = x.when
	}
	return d, true
}

// Upper returns the Derived of the upper 64 bits of an IPv6 address; the lower 64 bits follow them.
func (f *Format) Upper(name string) (expr.Derived, bool) {
	x := f.byName[name]
	if x == nil || x.Kind != IPv6 {
		return expr.Derived{}, false
	}
	d := expr.Derived{Field: f.native(x), Place: x.terms, When: f.conditions(x.when), Checks: f.checks}
	d.Field.BitWidth = 64
	return d, true
}

// Constant resolves a named value: FIELD.VALUE.
func (f *Format) Constant(name string) (uint64, bool) {
	field, value, ok := strings.Cut(name, ".")
	if x := f.byName[field]; ok && x != nil {
		for _, v := range x.Values {
			if v.Name == value {
				return v.Number, true
			}
		}
	}
	return 0, false
}

// Constants returns the names of all named values.
func (f *Format) Constants() []string {
	names := map[string]bool{}
	for _, x := range f.Fields {
		for _, v := range x.Values {
			names[x.Name+"."+v.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (k Kind) words() string {
	return [...]string{"a number", "a signed number", "a floating-point number", "bytes", "an Ethernet address", "an IPv4 address", "an IPv6 address"}[k]
}
