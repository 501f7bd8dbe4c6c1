package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Type is an element type of arrays, in the host's byte order.
type Type struct {
	Name   string
	Bytes  int
	NumPy  string             // type name in numpy files; empty: none
	source []string           // corresponding C types
	get    func(b []byte) any // float64, int64 or uint64
	put    func(b []byte, f float64)
	least  float64 // range of an integer type
	most   float64
}

// whole reports whether the type is an integer.
func (t *Type) whole() bool { return t.most > 0 }

var order = binary.NativeEndian

// types lists the element types.
var types = []*Type{
	{Name: "int8", Bytes: 1, NumPy: "|i1", source: []string{"char", "signed char", "int8_t"}, least: math.MinInt8, most: math.MaxInt8,
		get: func(b []byte) any { return int64(int8(b[0])) }, put: func(b []byte, f float64) { b[0] = byte(int64(f)) }},
	{Name: "uint8", Bytes: 1, NumPy: "|u1", source: []string{"unsigned char", "uint8_t", "char"}, most: math.MaxUint8,
		get: func(b []byte) any { return uint64(b[0]) }, put: func(b []byte, f float64) { b[0] = byte(int64(f)) }},
	{Name: "int16", Bytes: 2, NumPy: "i2", source: []string{"short", "int16_t"}, least: math.MinInt16, most: math.MaxInt16,
		get: func(b []byte) any { return int64(int16(order.Uint16(b))) }, put: func(b []byte, f float64) { order.PutUint16(b, uint16(int64(f))) }},
	{Name: "uint16", Bytes: 2, NumPy: "u2", source: []string{"unsigned short", "uint16_t"}, most: math.MaxUint16,
		get: func(b []byte) any { return uint64(order.Uint16(b)) }, put: func(b []byte, f float64) { order.PutUint16(b, uint16(int64(f))) }},
	{Name: "fp16", Bytes: 2, NumPy: "f2", source: []string{"__half", "half"},
		get: func(b []byte) any { return fromHalf(order.Uint16(b)) }, put: func(b []byte, f float64) { order.PutUint16(b, toHalf(f)) }},
	{Name: "bf16", Bytes: 2, source: []string{"__nv_bfloat16"},
		get: func(b []byte) any { return float64(math.Float32frombits(uint32(order.Uint16(b)) << 16)) },
		put: func(b []byte, f float64) { order.PutUint16(b, toBrain(float32(f))) }},
	{Name: "int32", Bytes: 4, NumPy: "i4", source: []string{"int", "int32_t"}, least: math.MinInt32, most: math.MaxInt32,
		get: func(b []byte) any { return int64(int32(order.Uint32(b))) }, put: func(b []byte, f float64) { order.PutUint32(b, uint32(int64(f))) }},
	{Name: "uint32", Bytes: 4, NumPy: "u4", source: []string{"unsigned int", "unsigned", "uint32_t"}, most: math.MaxUint32,
		get: func(b []byte) any { return uint64(order.Uint32(b)) }, put: func(b []byte, f float64) { order.PutUint32(b, uint32(int64(f))) }},
	{Name: "fp32", Bytes: 4, NumPy: "f4", source: []string{"float"},
		get: func(b []byte) any { return float64(math.Float32frombits(order.Uint32(b))) },
		put: func(b []byte, f float64) { order.PutUint32(b, math.Float32bits(float32(f))) }},
	{Name: "int64", Bytes: 8, NumPy: "i8", source: []string{"long long", "long", "int64_t"}, least: -1 << 53, most: 1 << 53,
		get: func(b []byte) any { return int64(order.Uint64(b)) }, put: func(b []byte, f float64) { order.PutUint64(b, uint64(int64(f))) }},
	{Name: "uint64", Bytes: 8, NumPy: "u8", source: []string{"unsigned long long", "unsigned long", "uint64_t", "size_t"}, most: 1 << 53,
		get: func(b []byte) any { return order.Uint64(b) }, put: func(b []byte, f float64) { order.PutUint64(b, uint64(f)) }},
	{Name: "fp64", Bytes: 8, NumPy: "f8", source: []string{"double"},
		get: func(b []byte) any { return math.Float64frombits(order.Uint64(b)) }, put: func(b []byte, f float64) { order.PutUint64(b, math.Float64bits(f)) }},
}

// TypeNames returns the names of all element types.
func TypeNames() (names []string) {
	for _, t := range types {
		names = append(names, t.Name)
	}
	return names
}

func typeNamed(name string) *Type {
	i := slices.IndexFunc(types, func(t *Type) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return types[i]
}

// store encodes a number as an element.
func (t *Type) store(b []byte, f float64) error {
	if t.whole() && (f != math.Trunc(f) || f < t.least || f > t.most) {
		return fmt.Errorf("%v is no %s", f, t.Name)
	}
	t.put(b, f)
	return nil
}

func fromHalf(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 != 0 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// toHalf converts to half precision, rounding to nearest, ties to even; too large values become infinite.
func toHalf(f float64) uint16 {
	sign := uint16(math.Float64bits(f) >> 48 & 0x8000)
	switch f = math.Abs(f); {
	case math.IsNaN(f):
		return sign | 0x7e00
	case f >= 65520:
		return sign | 0x7c00
	case f < 1.0/(1<<14):
		return sign | uint16(math.RoundToEven(math.Ldexp(f, 24)))
	}
	fraction, exponent := math.Frexp(f) // 0.5 <= fraction < 1
	return sign + uint16(exponent+14)<<10 + uint16(math.RoundToEven(math.Ldexp(fraction, 11))-1024)
}

func toBrain(f float32) uint16 {
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
