package format

import (
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/runtime/expr"
)

// A Given is a field value to encode.
type Given struct {
	Raw   uint64
	Bytes []byte              // of kinds that are not numbers, except Float
	Items []map[string]uint64 // items of a list
}

// writer encodes one packet.
type writer struct {
	f       *Format
	given   map[string]Given
	payload int
	busy    map[string]bool // fields being computed
}

func (f *Format) writer(given map[string]Given, payload int) *writer {
	return &writer{f: f, given: given, payload: payload, busy: map[string]bool{}}
}

// Encode returns a packet: header, payload, and fields that lie after the payload. Fields that are not given have the value of Const or Is, or 0.
// Errors name the field.
func (f *Format) Encode(given map[string]Given, payload []byte) ([]byte, error) {
	w := f.writer(given, len(payload))
	for name, g := range given {
		if err := w.check(name, g); err != nil {
			return nil, err
		}
	}
	bits, ok := w.bits(f.header)
	if !ok || bits > 8*mostBytes {
		return nil, fmt.Errorf("the length of the header is unknown, or above %d bytes", mostBytes)
	}
	out := append(make([]byte, bits/8), payload...)
	for _, l := range f.Lists {
		if err := w.list(out, l); err != nil {
			return nil, err
		}
	}
	for _, x := range f.Fields {
		var err error
		if out, err = w.field(out, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// check returns an error for values that a field cannot hold.
func (w *writer) check(name string, g Given) error {
	if i, ok := w.f.items[name]; ok {
		if last := i.list.Rows[len(i.list.Rows)-1]; !fits(g.Raw, last) {
			return fmt.Errorf("%s = %s does not fit %d bits", name, shown(g.Raw, last), last.Bits)
		}
		return nil
	}
	for _, l := range w.f.Lists {
		if l.List == name {
			return w.checkItems(l, g.Items)
		}
	}
	x := w.f.byName[name]
	switch {
	case x == nil:
		return fmt.Errorf("unknown field '%s'", name)
	case !x.Kind.number() && x.Kind != Float:
		if len(g.Bytes)*8 != x.Bits {
			return fmt.Errorf("%s has %d bytes, not %d", name, x.Bits/8, len(g.Bytes))
		}
	case x.Kind != Float && !fits(g.Raw, x.Row):
		return fmt.Errorf("%s = %s does not fit %d bits", name, shown(g.Raw, x.Row), x.Bits)
	case x.Const != nil && *x.Const != g.Raw:
		return fmt.Errorf("%s is always %s", name, shown(*x.Const, x.Row))
	}
	return nil
}

func (w *writer) checkItems(l *List, items []map[string]uint64) error {
	for k, one := range items {
		for name, v := range one {
			found := false
			for _, r := range l.Rows {
				if r.Name == name {
					found = true
					if !fits(v, r) {
						return fmt.Errorf("%s[%d].%s = %d does not fit %d bits", l.List, k+1, name, v, r.Bits)
					}
				}
			}
			if !found {
				return fmt.Errorf("%s[%d]: an item has no field '%s'", l.List, k+1, name)
			}
		}
	}
	return w.checkNamed(l, items)
}

// checkNamed returns an error if a list item and a given value of the same name differ.
func (w *writer) checkNamed(l *List, items []map[string]uint64) error {
	last := l.Rows[len(l.Rows)-1]
	for _, i := range l.Items {
		g, ok := w.given[i.Name]
		k := slices.IndexFunc(items, func(one map[string]uint64) bool { return l.isNamed(one, i) })
		if ok && k >= 0 && items[k][last.Name] != g.Raw {
			return fmt.Errorf("%s is %s, and %s[%d], which has that name, is %s", i.Name, shown(g.Raw, last), l.List, k+1, shown(items[k][last.Name], last))
		}
	}
	return nil
}

// counted returns the number of items of a list.
func (w *writer) counted(l *List) int { return len(w.given[l.List].Items) + len(w.named(l)) }

// named returns the items that are given by name only, not in the list.
func (w *writer) named(l *List) (list []Value) {
	for _, i := range l.Items {
		if _, ok := w.given[i.Name]; !ok {
			continue
		}
		if !slices.ContainsFunc(w.given[l.List].Items, func(one map[string]uint64) bool { return l.isNamed(one, i) }) {
			list = append(list, i)
		}
	}
	return list
}

// isNamed reports whether an item matches a named item.
func (l *List) isNamed(item map[string]uint64, name Value) bool {
	for _, x := range l.Rows[:len(l.Rows)-1] {
		want := l.Match[x.Name]
		if x.Name == l.Key {
			want = name.Number
		}
		if item[x.Name] != want {
			return false
		}
	}
	return true
}

// value returns the value of a field. Named bits that are given replace those of their field.
func (w *writer) value(x *Field) uint64 {
	if x.of != nil {
		return w.value(x.of) >> x.bitOf() & 1
	}
	v := w.whole(x)
	for _, b := range x.BitNames {
		if g, ok := w.given[b.Name]; ok {
			v = v&^(1<<b.Number) | g.Raw<<b.Number
		}
	}
	return v
}

// bitOf returns the number of a named bit in its field.
func (x *Field) bitOf() uint64 {
	for _, b := range x.of.BitNames {
		if b.Name == x.Name {
			return b.Number
		}
	}
	return 0
}

// whole returns the value of a field, without its named bits.
func (w *writer) whole(x *Field) uint64 {
	if g, ok := w.given[x.Name]; ok && x.Name != "" {
		return g.Raw
	}
	switch {
	case x.Const != nil:
		return *x.Const
	case x.is != nil && !w.busy[x.Name]:
		w.busy[x.Name] = true
		v, _ := x.is.Whole(w.env)
		delete(w.busy, x.Name)
		return v
	}
	for _, l := range w.f.Lists { // the field is the count of a list
		if l.Count == x.Name {
			return uint64(w.counted(l))
		}
	}
	return 0
}

func (w *writer) env(name string) (v uint64, unsigned, ok bool) {
	if v, ok := w.f.Constant(name); ok {
		return v, false, true
	}
	switch name {
	case HeaderBytes:
		bits, ok := w.bits(w.f.header)
		return uint64(bits / 8), false, ok
	case PayloadBytes:
		return uint64(w.payload), false, true
	}
	x := w.f.byName[name]
	if g, ok := w.given[name]; ok && (x == nil || len(x.BitNames) == 0) {
		return g.Raw, x != nil && x.Bits == 64 && x.Kind != Signed, true
	}
	if x == nil || !w.holds(x.when) {
		return 0, false, false
	}
	return w.value(x), x.Bits == 64 && x.Kind != Signed, true
}

func (w *writer) holds(when []*expr.Expr) bool {
	for _, e := range when {
		if !e.Holds(w.env) {
			return false
		}
	}
	return true
}

func (w *writer) bits(p place) (int64, bool) {
	at := p.bit
	for _, t := range p.terms {
		if !w.holds(t.When) {
			continue
		}
		n, ok := w.times(t)
		if !ok {
			return 0, false
		}
		at += t.Bits * n
	}
	return at, at >= 0
}

// times returns the number of repetitions of a term. For a list it is the number of given items, from which the count field may be computed.
func (w *writer) times(t expr.Term) (int64, bool) {
	if t.Count == nil {
		return 1, true
	}
	for _, l := range w.f.Lists {
		if l.count == t.Count {
			return int64(w.counted(l)), true
		}
	}
	n, ok := t.Count.Whole(w.env)
	return int64(n), ok && n <= 1<<24
}

func (w *writer) field(out []byte, x *Field) ([]byte, error) {
	g, given := w.given[x.Name]
	given = given && x.Name != ""
	if !w.holds(x.when) {
		if given {
			return nil, fmt.Errorf("a packet has '%s' only where %s", x.Name, x.when[len(x.when)-1])
		}
		return out, nil
	}
	at, ok := w.bits(x.place)
	if !ok || at+int64(x.Bits) > 8*mostBytes*2 {
		return nil, fmt.Errorf("the position of '%s' is unknown", x.Name)
	}
	for int64(len(out))*8 < at+int64(x.Bits) {
		out = append(out, 0)
	}
	switch {
	case x.Reserved, x.of != nil: // the field of a bit includes it
	case x.Kind.number() || x.Kind == Float:
		v := w.value(x)
		if !fits(v, x.Row) {
			return nil, fmt.Errorf("%s = %s, the value of %q, does not fit %d bits", x.Name, shown(v, x.Row), x.Is, x.Bits)
		}
		putBits(out, at, x.Bits, x.Little, v)
	case given:
		copy(out[at/8:], g.Bytes)
	}
	return out, nil
}

// list writes the named items in the order of their rows, then the given ones.
func (w *writer) list(out []byte, l *List) error {
	items := w.given[l.List].Items
	if !w.holds(l.when) {
		if w.counted(l) > 0 {
			return fmt.Errorf("a packet has '%s' only where %s", l.List, l.when[len(l.when)-1])
		}
		return nil
	}
	count, ok := l.count.Whole(w.env)
	if !ok || count != uint64(w.counted(l)) {
		return fmt.Errorf("%s has %d items, and %s is %d", l.List, w.counted(l), l.Count, count)
	}
	at, ok := w.bits(l.place)
	if !ok || at+int64(count)*l.itemBits > int64(len(out))*8 {
		return fmt.Errorf("the position of '%s' is unknown", l.List)
	}
	last := l.Rows[len(l.Rows)-1].Bits
	for _, i := range w.named(l) {
		putBits(out, at, int(l.itemBits)-last, false, w.f.items[i.Name].key)
		putBits(out, at+l.itemBits-int64(last), last, false, w.given[i.Name].Raw)
		at += l.itemBits
	}
	for _, one := range items {
		for _, x := range l.Rows {
			putBits(out, at, x.Bits, false, one[x.Name])
			at += int64(x.Bits)
		}
	}
	return nil
}
