package format

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// A Read is the value of a field in one packet.
type Read struct {
	Field *Field // nil: an item or a list
	Name  string
	Raw   uint64   // of a number, in two's complement if signed; IEEE bits of a Float
	Bytes []byte   // of kinds that are not numbers
	Items [][]Read // of a list
}

// Given returns the value in the form that Encode takes.
func (r Read) Given() Given {
	if r.Items == nil {
		return Given{Raw: r.Raw, Bytes: r.Bytes}
	}
	g := Given{Items: []map[string]uint64{}}
	for _, item := range r.Items {
		one := map[string]uint64{}
		for _, x := range item {
			one[x.Name] = x.Raw
		}
		g.Items = append(g.Items, one)
	}
	return g
}

// reader reads the fields of one packet on demand, because the position of one may depend on others.
type reader struct {
	f    *Format
	b    []byte // from the start of the header to the end of the packet
	memo map[string]known
	held map[*expr.Expr]bool // results of conditions, which many fields share
}

func (f *Format) reader(b []byte) *reader {
	return &reader{f: f, b: b, memo: map[string]known{}, held: map[*expr.Expr]bool{}}
}

type known struct{ v, ok uint64 }

// Decode returns the fields of a packet in order; b starts at the header and ends with the packet. Fields beyond the end of a short packet are
// omitted. It returns an error if a constant differs or is missing.
func (f *Format) Decode(b []byte) ([]Read, error) {
	r := f.reader(b)
	if err := r.constants(); err != nil {
		return nil, err
	}
	var out []Read
	lists := f.Lists
	for i, x := range f.Fields {
		for len(lists) > 0 && lists[0].order == i {
			out, lists = r.list(out, lists[0]), lists[1:]
		}
		if x.Reserved {
			continue
		}
		if x.Kind.number() {
			if v, ok := r.number(x); ok {
				out = append(out, Read{Field: x, Name: x.Name, Raw: v})
			}
		} else if b, ok := r.bytes(x); ok {
			one := Read{Field: x, Name: x.Name, Bytes: b}
			if x.Kind == Float {
				one.Raw = getBits(b, 0, x.Bits, x.Little)
			}
			out = append(out, one)
		}
	}
	for _, l := range lists {
		out = r.list(out, l)
	}
	return out, nil
}

// constants returns an error if a constant of the format differs or is missing.
func (r *reader) constants() error {
	f := r.f
	for _, x := range f.Fields {
		if x.Const == nil || x.Reserved {
			continue
		}
		v, ok := r.number(x)
		if !ok && len(x.when) == 0 && len(x.terms) == 0 {
			return fmt.Errorf("it ends after %d bytes, before %s, by which packets of %s are recognized", len(r.b), x.Name, f.label())
		}
		if ok && v != *x.Const {
			return fmt.Errorf("%s is %s, and of %s it is %s", x.Name, shown(v, x.Row), f.label(), shown(*x.Const, x.Row))
		}
	}
	return nil
}

// Packet is one packet of a format, whose values are read singly.
type Packet struct{ r *reader }

// Packet returns the packet in b, which starts at the header and ends with the packet. It returns an error if a constant differs or is missing.
func (f *Format) Packet(b []byte) (Packet, error) {
	r := f.reader(b)
	return Packet{r}, r.constants()
}

// Number returns the value of a field or item that is a number, or false if the packet lacks it.
func (p Packet) Number(name string) (uint64, bool) {
	v, _, ok := p.r.env(name)
	return v, ok
}

// Payload returns the data behind the header, a part of the packet. It returns false if the packet carries none, or is shorter than it states.
func (p Packet) Payload() ([]byte, bool) {
	r := p.r
	if r.f.data != nil && !r.f.data.Holds(r.env) {
		return nil, false
	}
	bits, ok := r.bits(r.f.header)
	at := int(bits / 8)
	if !ok || at > len(r.b) {
		return nil, false
	}
	n := len(r.b) - at
	if r.f.length != nil {
		v, ok := r.f.length.Whole(r.env)
		if !ok || v > uint64(n) {
			return nil, false
		}
		n = int(v)
	}
	return r.b[at : at+n], true
}

func (f *Format) label() string {
	if f.Spec.Name == "" {
		return "this format"
	}
	return f.Spec.Name
}

// HeaderBytes returns the length of a packet's header, or false if the packet is shorter.
func (f *Format) HeaderBytes(b []byte) (int, bool) {
	r := f.reader(b)
	bits, ok := r.bits(f.header)
	return int(bits / 8), ok && bits <= int64(len(b))*8
}

// Place returns the position of a field in a packet, in bits from the start of the header, or false if the packet lacks it.
func (f *Format) Place(b []byte, name string) (int64, bool) {
	r := f.reader(b)
	if i, ok := f.items[name]; ok {
		return r.itemPlace(i)
	}
	x := f.byName[name]
	if x == nil {
		return 0, false
	}
	return r.where(x)
}

func (r *reader) env(name string) (v uint64, unsigned, ok bool) {
	if v, ok := r.f.Constant(name); ok {
		return v, false, true
	}
	switch name {
	case HeaderBytes:
		bits, ok := r.bits(r.f.header)
		return uint64(bits / 8), false, ok
	case PayloadBytes:
		bits, ok := r.bits(r.f.header)
		return uint64(int64(len(r.b)) - bits/8), false, ok
	}
	if i, ok := r.f.items[name]; ok {
		v, ok := r.item(i)
		return v, false, ok
	}
	x := r.f.byName[name]
	if x == nil {
		return 0, false, false
	}
	v, ok = r.number(x)
	return v, x.Bits == 64 && x.Kind != Signed, ok
}

func (r *reader) holds(when []*expr.Expr) bool {
	for _, w := range when {
		is, known := r.held[w]
		if !known {
			is = w.Holds(r.env)
			r.held[w] = is
		}
		if !is {
			return false
		}
	}
	return true
}

// bits evaluates a position. It returns false if a field that the position depends on is absent.
func (r *reader) bits(p place) (int64, bool) {
	at := p.bit
	for _, t := range p.terms {
		if !r.holds(t.When) {
			continue
		}
		n := int64(1)
		if t.Count != nil {
			v, ok := t.Count.Whole(r.env)
			if !ok || int64(v) < 0 || v > 1<<31 {
				return 0, false
			}
			n = int64(v)
		}
		at += t.Bits * n
	}
	return at, true
}

// where returns the first bit of a field, or false if the packet lacks the field.
func (r *reader) where(x *Field) (int64, bool) {
	if !r.holds(x.when) {
		return 0, false
	}
	at, ok := r.bits(x.place)
	return at, ok && at >= 0 && at+int64(x.Bits) <= int64(len(r.b))*8
}

func (r *reader) number(x *Field) (uint64, bool) {
	if k, ok := r.memo[x.Name]; ok && x.Name != "" {
		return k.v, k.ok != 0
	}
	at, ok := r.where(x)
	var v uint64
	if ok {
		v = getBits(r.b, at, x.Bits, x.Little)
		if x.Kind == Signed && x.Bits < 64 && v>>(x.Bits-1) != 0 {
			v |= ^uint64(0) << x.Bits
		}
		r.memo[x.Name] = known{v, 1}
	} else {
		r.memo[x.Name] = known{}
	}
	return v, ok
}

func (r *reader) bytes(x *Field) ([]byte, bool) {
	at, ok := r.where(x)
	if !ok {
		return nil, false
	}
	return r.b[at/8 : (at+int64(x.Bits))/8], true
}

// span returns the position of a list and the number of its items in the packet.
func (r *reader) span(l *List) (at int64, n int64) {
	at, ok := r.bits(l.place)
	count, counted := l.count.Whole(r.env)
	if !ok || !counted || !r.holds(l.when) || at < 0 {
		return 0, 0
	}
	return at, int64(min(count, uint64(max(0, int64(len(r.b))*8-at)/l.itemBits)))
}

func (r *reader) item(i item) (uint64, bool) {
	at, ok := r.itemPlace(i)
	if !ok {
		return 0, false
	}
	return getBits(r.b, at, i.list.Rows[len(i.list.Rows)-1].Bits, false), true
}

// itemPlace returns the position of the value of the first item with i's key.
func (r *reader) itemPlace(i item) (int64, bool) {
	at, n := r.span(i.list)
	before := int(i.list.itemBits) - i.list.Rows[len(i.list.Rows)-1].Bits
	for ; n > 0; n, at = n-1, at+i.list.itemBits {
		if getBits(r.b, at, before, false) == i.key {
			return at + int64(before), true
		}
	}
	return 0, false
}

// list appends the list and its named items to out.
func (r *reader) list(out []Read, l *List) []Read {
	at, n := r.span(l)
	items := [][]Read{}
	for range n {
		var one []Read
		for _, x := range l.Rows {
			v := getBits(r.b, at, x.Bits, false)
			if x.Kind == Signed && x.Bits < 64 && v>>(x.Bits-1) != 0 {
				v |= ^uint64(0) << x.Bits
			}
			one = append(one, Read{Field: &Field{Row: x}, Name: x.Name, Raw: v})
			at += int64(x.Bits)
		}
		items = append(items, one)
	}
	out = append(out, Read{Name: l.List, Items: items})
	for _, i := range l.Items {
		if v, ok := r.item(r.f.items[i.Name]); ok {
			out = append(out, Read{Name: i.Name, Raw: v})
		}
	}
	return out
}

// Bits reads up to 64 bits at bit position at. It returns 0 if they exceed b.
func Bits(b []byte, at int64, width int, little bool) uint64 {
	if at < 0 || at+int64(width) > int64(len(b))*8 {
		return 0
	}
	return getBits(b, at, width, little)
}

// getBits reads up to 64 bits, which must be within b.
func getBits(b []byte, at int64, width int, little bool) uint64 {
	var v uint64
	for i := range int64(width) {
		bit := at + i
		if little {
			v |= uint64(b[bit/8]>>(bit%8)&1) << i
		} else {
			v = v<<1 | uint64(b[bit/8]>>(7-bit%8)&1)
		}
	}
	return v
}

// putBits writes up to 64 bits, which must be within b.
func putBits(b []byte, at int64, width int, little bool, v uint64) {
	for i := range int64(width) {
		bit, mask := at+i, byte(0)
		one := v >> (int64(width) - 1 - i) & 1
		if mask = 0x80 >> (bit % 8); little {
			mask, one = 1<<(bit%8), v>>i&1
		}
		b[bit/8] &^= mask
		if one != 0 {
			b[bit/8] |= mask
		}
	}
}
