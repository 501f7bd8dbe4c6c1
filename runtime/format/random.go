package format

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Draw returns random field values and a random payload for Encode.
func (f *Format) Draw(r *rand.Rand) (given map[string]Given, payload []byte) {
	payload = make([]byte, 8*r.IntN(5))
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	w := f.writer(map[string]Given{}, len(payload))
	counts := map[string]bool{}
	for _, l := range f.Lists {
		counts[l.Count] = true
		if !w.holds(l.when) {
			continue
		}
		items := l.random(r)
		w.given[l.List] = Given{Items: items}
		for _, i := range l.Items {
			if r.IntN(2) == 0 && !slices.ContainsFunc(items, func(one map[string]uint64) bool { return l.isNamed(one, i) }) {
				w.given[i.Name] = Given{Raw: r.Uint64() & (1<<l.Rows[len(l.Rows)-1].Bits - 1)}
			}
		}
	}
	for _, x := range f.Fields {
		if !x.Reserved && x.of == nil && x.Const == nil && x.is == nil && !counts[x.Name] && w.holds(x.when) {
			w.given[x.Name] = x.random(r)
		}
	}
	return w.given, payload
}

// Random returns a random packet and its decoded fields.
func (f *Format) Random(r *rand.Rand) ([]byte, []Read, error) {
	bytes, err := f.Encode(f.Draw(r))
	if err != nil {
		return nil, nil, err
	}
	read, err := f.Decode(bytes)
	return bytes, read, err
}

// raw returns a random number; half of the time a named one, because the presence of other fields may depend on it.
func (r Row) raw(random *rand.Rand) uint64 {
	v := random.Uint64()
	switch {
	case len(r.Values) > 0 && v%2 == 0:
		v = r.Values[random.IntN(len(r.Values))].Number
	case r.Bits == 64:
	case r.Kind == Signed:
		v = uint64(int64(v) >> (64 - r.Bits))
	default:
		v >>= 64 - r.Bits
	}
	return v
}

func (x *Field) random(r *rand.Rand) Given {
	switch {
	case x.Kind == Float && x.Bits == 32:
		return Given{Raw: uint64(math.Float32bits(float32(r.NormFloat64())))}
	case x.Kind == Float:
		return Given{Raw: math.Float64bits(r.NormFloat64())}
	case !x.Kind.number():
		b := make([]byte, x.Bits/8)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return Given{Bytes: b}
	}
	return Given{Raw: x.raw(r)}
}

func (l *List) random(r *rand.Rand) []map[string]uint64 {
	items := make([]map[string]uint64, r.IntN(4))
	for i := range items {
		items[i] = map[string]uint64{}
		for _, x := range l.Rows {
			items[i][x.Name] = x.raw(r)
		}
	}
	return items
}
