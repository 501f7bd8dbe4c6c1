// Package samples reads the samples of payloads as numbers. A Type is one of docs/samples.md.
//
// It may import native and runtime/signal. A Type is read-only and safe for concurrent use.
package samples

import (
	"fmt"
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Type is a type of samples.
type Type struct {
	sample   native.Sample
	unpack   *native.Unpacker
	bytes    int // of a unit
	elements int
}

// Parse returns the type of that name or alias. The error has the nearest valid name.
func Parse(name string) (*Type, error) {
	s, err := native.ParseSample(name)
	if err != nil {
		return nil, err
	}
	t := &Type{sample: s, unpack: s.Unpacker()}
	t.bytes, t.elements = s.Unit()
	return t, nil
}

// String returns the name of the type.
func (t *Type) String() string { return t.sample.String() }

// Range returns the range of the values. Block floating point has floating-point values.
func (t *Type) Range() signal.Range {
	r := signal.Range{Complex: t.sample.Complex()}
	if least, ok := t.sample.Codes(); ok {
		r.Bits, r.Least = t.sample.Bits(), least
	}
	return r
}

// Unit returns the length of the shortest payload of whole samples, in bytes.
func (t *Type) Unit() int { return t.bytes }

// Samples returns the number of whole samples in n bytes.
func (t *Type) Samples(n int) int { return n / t.bytes * t.elements / t.Range().Step() }

// Append appends the values of a payload to dst: codes of integers, two values per complex sample, the real part first. It returns an error if the
// payload is not whole samples.
func (t *Type) Append(dst []float32, payload []byte) ([]float32, error) {
	if len(payload)%t.bytes != 0 {
		return dst, fmt.Errorf("%d bytes are not whole samples of %s, which are multiples of %d bytes", len(payload), t, t.bytes)
	}
	n := len(payload) / t.bytes * t.elements
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	if n == 0 {
		return dst, nil
	}
	t.unpack.Run(dst[at:], payload)
	return dst, nil
}
