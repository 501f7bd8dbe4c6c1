// Package samples reads the samples of payloads as numbers. A Type is one of docs/samples.md.
//
// It may import native and runtime/signal. A Type is read-only and safe for concurrent use.
package samples

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/signal"
)

// Type is a type of samples.
type Type struct {
	sample   native.Sample
	unpack   *native.Unpacker // nil: floating-point numbers
	bytes    int              // of a unit
	elements int
	float    func(b []byte) float64
	swapped  bool // of floating-point numbers: the imaginary part is first
}

// Parse returns the type of that name or alias. The error has the nearest valid name.
func Parse(name string) (*Type, error) {
	s, err := native.ParseSample(name)
	if err != nil {
		return nil, err
	}
	t := &Type{sample: s}
	t.bytes, t.elements = s.Unit()
	if unpack, ok := s.Unpacker(); ok {
		t.unpack = unpack
		return t, nil
	}
	big, brain, ok := s.Float()
	if !ok {
		return nil, fmt.Errorf("cannot read samples of type %s as numbers", s)
	}
	t.swapped, t.float = s.Swapped(), floats(s.Bits(), big, brain)
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
	if t.unpack != nil {
		t.unpack.Run(dst[at:], payload)
		return dst, nil
	}
	each := t.sample.Bits() / 8
	for i := range n {
		to := at + i
		if t.swapped {
			to = at + (i ^ 1)
		}
		dst[to] = float32(t.float(payload[i*each:]))
	}
	return dst, nil
}

// floats returns the function that reads a floating-point number.
func floats(bits int, big, brain bool) func(b []byte) float64 {
	var order binary.ByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	switch {
	case brain:
		return func(b []byte) float64 { return float64(math.Float32frombits(uint32(order.Uint16(b)) << 16)) }
	case bits == 16:
		return func(b []byte) float64 { return half(order.Uint16(b)) }
	case bits == 32:
		return func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }
	}
	return func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }
}

// half returns the value of an IEEE 754 number of 16 bits.
func half(u uint16) float64 {
	exponent, fraction := int(u>>10&31), float64(u&1023)
	v := 0.0
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 31:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(fraction+1024, exponent-25)
	}
	if u>>15 != 0 {
		v = -v
	}
	return v
}
