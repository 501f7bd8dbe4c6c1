package stats

import (
	"encoding/json"
	"slices"
)

// Bucket counts values of at most Most that are above those of the bucket before it.
type Bucket struct{ Most, N uint64 }

// Histogram counts values by their size. Nil is an empty one.
type Histogram struct {
	Name    string   // below its line: "burst_size"
	Unit    string   // of the values: packets or ns
	Title   string   // in the summary, with %s for the line; empty: not there
	Buckets []Bucket // those that are not empty, the smallest first
	Sum     uint64   // of the values
}

// N is how many values it counts.
func (h *Histogram) N() uint64 { return h.Within(^uint64(0)) }

// Within is how many values are at most so large.
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

// At is the value that a share (0..1) of the values does not exceed; 0 when there is none.
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

// percentiles are the figures that a histogram offers, by name.
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

// MarshalJSON writes the percentiles, and the buckets as pairs of the largest value and the count.
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

// with adds up two histograms, or takes o away from h, which then is a later reading of the same.
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

// Histograms are those of a line, in the order of the engine's table.
type Histograms []*Histogram

// Get returns the histogram of that name, nil when there is none.
func (list Histograms) Get(name string) *Histogram {
	for _, h := range list {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// MarshalJSON writes an object of those that counted something.
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
