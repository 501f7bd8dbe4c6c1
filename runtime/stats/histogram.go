package stats

import (
	"encoding/json"
	"slices"
)

// Bucket counts values of at most Most that exceed the previous bucket's Most.
type Bucket struct{ Most, N uint64 }

// Histogram counts values by size. A nil Histogram is empty.
type Histogram struct {
	Name    string   // name relative to the line: "burst_size"
	Unit    string   // unit of the values: packets or ns
	Title   string   // title in the summary, with %s for the line; empty: not shown
	Buckets []Bucket // non-empty buckets, smallest first
	Sum     uint64   // sum of the values
}

// N returns the number of values.
func (h *Histogram) N() uint64 { return h.Within(^uint64(0)) }

// Within returns the number of values that are at most most.
func (h *Histogram) Within(most uint64) (n uint64) {
	if h == nil {
		return 0
	}
	for _, b := range h.Buckets {
		if b.Most <= most {
			n += b.N
		}
	}
	return n
}

// At returns the smallest value that a share (0..1) of the values does not exceed, or 0 if the histogram is empty.
func (h *Histogram) At(share float64) uint64 {
	total := h.N()
	if total == 0 {
		return 0
	}
	var n uint64
	for _, b := range h.Buckets {
		if n += b.N; float64(n) >= share*float64(total) {
			return b.Most
		}
	}
	return 0
}

// percentiles lists the figures of a histogram by name.
var percentiles = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}}

func (h *Histogram) figures() (f []Figure) {
	for _, p := range percentiles {
		f = append(f, Figure{h.Name + "." + p.name, float64(h.At(p.share))})
	}
	return f
}

// MarshalJSON encodes the percentiles, and the buckets as pairs of the largest value and the count.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	out := map[string]any{"n": h.N(), "sum": h.Sum, "unit": h.Unit}
	for _, p := range percentiles {
		out[p.name] = h.At(p.share)
	}
	buckets := [][2]uint64{}
	for _, b := range h.Buckets {
		buckets = append(buckets, [2]uint64{b.Most, b.N})
	}
	out["buckets"] = buckets
	return json.Marshal(out)
}

func (h *Histogram) key() string { return h.Name }

// with combines two histograms by change, as Flows.with does.
func (h *Histogram) with(o *Histogram, change func(a, b uint64) uint64) *Histogram {
	out := &Histogram{Name: h.Name, Unit: h.Unit, Title: h.Title, Sum: change(h.Sum, o.Sum)}
	for _, b := range h.Buckets {
		if k := slices.IndexFunc(o.Buckets, func(x Bucket) bool { return x.Most == b.Most }); k >= 0 {
			b.N = change(b.N, o.Buckets[k].N)
		}
		if b.N > 0 {
			out.Buckets = append(out.Buckets, b)
		}
	}
	for _, b := range o.Buckets {
		if !slices.ContainsFunc(h.Buckets, func(x Bucket) bool { return x.Most == b.Most }) {
			out.Buckets = append(out.Buckets, b)
		}
	}
	slices.SortFunc(out.Buckets, func(a, b Bucket) int { return int(int64(a.Most - b.Most)) })
	return out
}

// Histograms holds the histograms of a line, in the order of the engine's table.
type Histograms []*Histogram

// Get returns the histogram of that name, or nil.
func (list Histograms) Get(name string) *Histogram {
	for _, h := range list {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// MarshalJSON encodes an object of the non-empty histograms.
func (list Histograms) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for _, h := range list {
		if len(h.Buckets) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		text, err := json.Marshal(h)
		if err != nil {
			return nil, err
		}
		out = append(append(appendString(out, h.Name), ':'), text...)
	}
	return append(out, '}'), nil
}
