package stats

import (
	"math/bits"
	"sync/atomic"
)

// Recorder is a histogram of times in ns. One goroutine records, any goroutine reads, and neither blocks. Its buckets are logarithmic like the
// engine's: exact below 32 ns, then 16 per octave.
type Recorder struct {
	n   [recorderBuckets]atomic.Uint64
	sum atomic.Uint64
}

const (
	octaveParts     = 16
	recorderBuckets = 544 // the last bucket holds times above 128 s
)

// Record counts a time.
func (r *Recorder) Record(ns uint64) {
	n := &r.n[bucketOf(ns)]
	n.Store(n.Load() + 1)
	r.sum.Store(r.sum.Load() + ns)
}

// Read returns the recorded times. It may be called by any goroutine.
func (r *Recorder) Read() (buckets []Bucket, sum uint64) {
	for k := range r.n {
		if n := r.n[k].Load(); n > 0 {
			buckets = append(buckets, Bucket{Most: bucketMost(k), N: n})
		}
	}
	return buckets, r.sum.Load()
}

// bucketOf returns the bucket of v.
func bucketOf(v uint64) int {
	if v < octaveParts {
		return int(v)
	}
	shift := bits.Len64(v) - 5 // leaves 16 to 31
	return min((shift+1)*octaveParts+int(v>>shift)-octaveParts, recorderBuckets-1)
}

// bucketMost returns the largest value of bucket k.
func bucketMost(k int) uint64 {
	if k < octaveParts {
		return uint64(k)
	}
	return uint64(octaveParts+k%octaveParts+1)<<(k/octaveParts-1) - 1
}
