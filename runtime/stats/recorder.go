package stats

import (
	"math/bits"
	"sync/atomic"
)

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

// Read returns what was recorded. Any goroutine.
func (r *Recorder) Read() (buckets []Bucket, sum uint64) {
	for k := range r.n {
		if n := r.n[k].Load(); n > 0 {
			buckets = append(buckets, Bucket{Most: bucketMost(k), N: n})
		}
	}
	return buckets, r.sum.Load()
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
