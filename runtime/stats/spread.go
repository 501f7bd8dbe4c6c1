package stats

import (
	"encoding/json"
	"slices"
)

// Bucket counts times of at most Most ns, or sizes of at most Most, that are above those of the bucket before it.
type Bucket struct{ Most, N uint64 }

// Spread is a histogram of times in ns, or of sizes: its buckets that are not empty, the smallest first.
type Spread []Bucket

// N is how many times it counts.
func (s Spread) N() uint64 {
	var n uint64
	for _, b := range s {
		n += b.N
	}
	return n
}

// At is the time in ns that a share (0..1) of the times does not exceed; 0 when there is none.
func (s Spread) At(share float64) uint64 {
	total := s.N()
	var n uint64
	for _, b := range s {
		if n += b.N; float64(n) >= share*float64(total) {
			return b.Most
		}
	}
	return 0
}

// Within is how many times are at most ns.
func (s Spread) Within(ns uint64) uint64 {
	var n uint64
	for _, b := range s {
		if b.Most <= ns {
			n += b.N
		}
	}
	return n
}

// with adds up two histograms, or takes o away from s, which then is a later reading of the same.
func (s Spread) with(o Spread, change func(a, b uint64) uint64) Spread {
	var out Spread
	for _, b := range s {
		if k := slices.IndexFunc(o, func(x Bucket) bool { return x.Most == b.Most }); k >= 0 {
			b.N = change(b.N, o[k].N)
		}
		if b.N > 0 {
			out = append(out, b)
		}
	}
	for _, b := range o {
		if !slices.ContainsFunc(s, func(x Bucket) bool { return x.Most == b.Most }) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b Bucket) int { return int(int64(a.Most - b.Most)) })
	return out
}

// percentiles are the figures that a histogram offers, by name.
var percentiles = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}}

// MarshalJSON writes the percentiles, and the buckets as pairs of the largest value and the count.
func (s Spread) MarshalJSON() ([]byte, error) { return json.Marshal(s.asMap()) }

func (s Spread) asMap() map[string]any {
	out := map[string]any{"n": s.N()}
	for _, p := range percentiles {
		out[p.name] = s.At(p.share)
	}
	buckets := [][2]uint64{}
	for _, b := range s {
		buckets = append(buckets, [2]uint64{b.Most, b.N})
	}
	out["buckets"] = buckets
	return out
}

// Timing says how a transmit queue kept to its pace and to send times.
type Timing struct {
	WantedNS  uint64 `json:"wanted_ns"`            // what the pace gave the gaps between packets
	TookNS    uint64 `json:"took_ns"`              // what they took
	OverdueNS uint64 `json:"overdue_ns,omitempty"` // for so long a packet that is there should have left
	GapError  Spread `json:"gap_error_ns"`         // gaps, by how far each is from what was wanted
	TimeError Spread `json:"time_error_ns"`        // packets with a send time, by how long after it they left
}

// minus is what happened since o; overdue is never longer than seconds, the time between the two.
func (t *Timing) minus(o *Timing, seconds float64) *Timing {
	if t == nil {
		return nil
	}
	if o == nil {
		o = &Timing{}
	}
	less := func(a, b uint64) uint64 { return a - b }
	return &Timing{t.WantedNS - o.WantedNS, t.TookNS - o.TookNS, min(t.OverdueNS, uint64(seconds*1e9)),
		t.GapError.with(o.GapError, less), t.TimeError.with(o.TimeError, less)}
}

func (t *Timing) plus(o *Timing) *Timing {
	if t == nil || o == nil {
		if t == nil {
			return o
		}
		return t
	}
	sum := func(a, b uint64) uint64 { return a + b }
	return &Timing{t.WantedNS + o.WantedNS, t.TookNS + o.TookNS, t.OverdueNS + o.OverdueNS,
		t.GapError.with(o.GapError, sum), t.TimeError.with(o.TimeError, sum)}
}

// share is the part of the pace that was achieved, from the first packet to the last; 1 when nothing was paced.
func (t *Timing) share() float64 {
	took := t.TookNS + t.OverdueNS
	if took == 0 {
		return 1
	}
	return float64(t.WantedNS) / float64(took)
}
