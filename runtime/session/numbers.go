package session

import (
	"encoding/binary"

	"github.com/daqiri/daqiri-run/native"
)

// Numbers is a compact list of 64-bit numbers, stored in 1, 2, 4 or 8 bytes each; common upper bits are stored once. A field's values in a burst are
// usually of one range, and a script may keep a column of every burst.
type Numbers struct {
	upper uint64
	bytes int // bytes per number
	low   []byte
}

// NewNumbers returns a compact copy of v.
func NewNumbers(v []uint64) Numbers {
	if len(v) == 0 {
		return Numbers{bytes: 1}
	}
	differs, bytes := native.Spread(v), 1
	for bytes < 8 && differs>>(8*bytes) != 0 {
		bytes *= 2
	}
	n := Numbers{upper: v[0] &^ (1<<(8*bytes) - 1), bytes: bytes, low: make([]byte, bytes*len(v))}
	native.Narrow(v, n.low)
	return n
}

// Len returns the number of elements.
func (n *Numbers) Len() int { return len(n.low) / n.bytes }

// At returns element i, from 0.
func (n *Numbers) At(i int) uint64 {
	switch n.bytes {
	case 1:
		return n.upper | uint64(n.low[i])
	case 2:
		return n.upper | uint64(binary.NativeEndian.Uint16(n.low[2*i:]))
	case 4:
		return n.upper | uint64(binary.NativeEndian.Uint32(n.low[4*i:]))
	}
	return binary.NativeEndian.Uint64(n.low[8*i:])
}

// List returns all elements.
func (n *Numbers) List() []uint64 {
	out := make([]uint64, n.Len())
	for i := range out {
		out[i] = n.At(i)
	}
	return out
}
