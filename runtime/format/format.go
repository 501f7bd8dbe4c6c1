package format

import (
	"maps"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// A Format is a checked header.
type Format struct {
	Spec   Spec
	Fields []*Field // in order, those of groups too
	Lists  []*List
	byName map[string]*Field
	items  map[string]item
	where  *expr.Expr
	length *expr.Expr // of the payload; nil: all that is there
	data   *expr.Expr // which packets carry data; nil: all
	header place      // where the header ends
	checks []expr.Check
}

// A place is bits from the header's start.
type place struct {
	bit   int64
	terms []expr.Term
}

// A Field is a row with its place.
type Field struct {
	Row
	place
	when  []*expr.Expr // conditions, its group's too
	is    *expr.Expr
	apart bool // it lies where its At says, and is no part of the header
}

// A List is a row of items with its place.
type List struct {
	Row
	place
	when     []*expr.Expr
	count    *expr.Expr
	itemBits int64
	order    int // of Fields, how many are before it
}

// item is a named item of a list.
type item struct {
	list *List
	key  uint64
}

// Fixed is how many bytes the header has in every packet; false: it depends on the packet, or its packets have to be told
// from others.
func (f *Format) Fixed() (int, bool) {
	return int(f.header.bit / 8), len(f.header.terms) == 0 && len(f.checks) == 0 && f.where == nil
}

// Moves says whether the header's length depends on the packet.
func (f *Format) Moves() bool { return len(f.header.terms) > 0 }

// PayloadText is the payload's length, a number as text over the names; empty: all that is there.
func (f *Format) PayloadText() string { return f.Spec.Payload }

// Names lists the names of fields and items, in order.
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

// Named finds a field; nil: there is none, or an item has that name.
func (f *Format) Named(name string) *Field { return f.byName[name] }

// WithItems is the format with further names for the items of its list. Errors name what can't be.
func (f *Format) WithItems(more []Value, o Options) (*Format, error) {
	s := f.Spec
	s.Rows = slices.Clone(s.Rows)
	for i := range s.Rows {
		if s.Rows[i].List != "" {
			s.Rows[i].Items = slices.Concat(s.Rows[i].Items, more)
			return Compile(s, o)
		}
	}
	return nil, &Fault{Format: s.Name, Msg: "it has no list of items"}
}

// HasItems says whether it has a list whose items can be named.
func (f *Format) HasItems() bool { return len(f.Lists) > 0 }

// ItemBits is how long an item is.
func (l *List) ItemBits() int { return int(l.itemBits) }

// ItemKey is what an item with that name begins with; false: there is none of that name.
func (f *Format) ItemKey(name string) (uint64, bool) {
	i, ok := f.items[name]
	return i.key, ok
}

// ListBytes names the number of bytes from the header's start to a list.
func ListBytes(list string) string { return list + "." + HeaderBytes }

// base is what bits count from.
func (f *Format) base() uint8 {
	return [...]uint8{expr.BaseStart, expr.BaseL3, expr.BaseL4, expr.BasePayload}[max(0, slices.Index(Layers, f.Spec.Layer))]
}

// native is the field as the engine reads it, at the constant part of its place.
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

// conditions are those of a field and of the format.
func (f *Format) conditions(own []*expr.Expr) []*expr.Expr {
	if f.where == nil {
		return own
	}
	return append([]*expr.Expr{f.where}, own...)
}

// Names that every format has beside its fields: bytes of its header and of the payload behind it. DataHeaderBytes is for
// stages: HeaderBytes of the packets that carry data, absent in others.
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

// Field finds a field at a fixed place of every packet.
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

// Derived finds what depends on the packet.
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
	if x.Const != nil { // the format's condition may be about it
		d.When = x.when
	}
	return d, true
}

// Upper is Derived for the upper 64 bits of an IPv6 address; the lower ones are behind them.
func (f *Format) Upper(name string) (expr.Derived, bool) {
	x := f.byName[name]
	if x == nil || x.Kind != IPv6 {
		return expr.Derived{}, false
	}
	d := expr.Derived{Field: f.native(x), Place: x.terms, When: f.conditions(x.when), Checks: f.checks}
	d.Field.BitWidth = 64
	return d, true
}

// Constant finds a value's name: FIELD.VALUE.
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

// Constants lists the names of values.
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
