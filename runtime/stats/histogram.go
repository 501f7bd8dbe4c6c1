package stats

import (
	"encoding/json"
	"math/bits"
	"sync/atomic"
)

// Histogram is a spread with the sum of what it counts: of times in ns, or of sizes. Nil is an empty one.
type Histogram struct {
	Spread Spread
	Sum    uint64
}

// spread is nil's, too.
func (h *Histogram) spread() Spread {
	if h == nil {
		return nil
	}
	return h.Spread
}

// with adds up two histograms, or takes o away from h.
func (h *Histogram) with(o *Histogram, change func(a, b uint64) uint64) *Histogram {
	switch {
	case o == nil:
		return h
	case h == nil:
		return o
	}
	return &Histogram{h.Spread.with(o.Spread, change), change(h.Sum, o.Sum)}
}

// MarshalJSON writes the spread, with its sum.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	out := h.Spread.asMap()
	out["sum"] = h.Sum
	return json.Marshal(out)
}

// Recorder counts times in ns as they occur: one goroutine records, any reads, nobody waits. Its buckets are linear in
// the logarithm, as the engine's are: exact below 32 ns, then 16 to an octave.
type Recorder struct {
	n   [recorderBuckets]atomic.Uint64
	sum atomic.Uint64
}

const (
	octaveParts     = 16
	recorderBuckets = 544 // the last takes more than 128 s
)

// Record counts one time.
func (r *Recorder) Record(ns uint64) {
	n := &r.n[bucketOf(ns)]
	n.Store(n.Load() + 1)
	r.sum.Store(r.sum.Load() + ns)
}

// Read returns what was recorded, nil when nothing was. Any goroutine.
func (r *Recorder) Read() *Histogram {
	h := &Histogram{Sum: r.sum.Load()}
	for k := range r.n {
		if n := r.n[k].Load(); n > 0 {
			h.Spread = append(h.Spread, Bucket{Most: bucketMost(k), N: n})
		}
	}
	if h.Spread == nil {
		return nil
	}
	return h
}

// bucketOf is the bucket that v falls into.
func bucketOf(v uint64) int {
	if v < octaveParts {
		return int(v)
	}
	shift := bits.Len64(v) - 5 // so that 16 to 31 remain
	return min((shift+1)*octaveParts+int(v>>shift)-octaveParts, recorderBuckets-1)
}

// bucketMost is the largest number that falls into bucket k.
func bucketMost(k int) uint64 {
	if k < octaveParts {
		return uint64(k)
	}
	return uint64(octaveParts+k%octaveParts+1)<<(k/octaveParts-1) - 1
}
