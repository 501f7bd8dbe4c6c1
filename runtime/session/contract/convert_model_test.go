package contract

import (
	"encoding/binary"
	"math"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// A slow model of conversions: a small float is the nearest of two neighbors.

var elementBits = map[string]int{"int4": 4, "int8": 8, "int16": 16, "int32": 32, "o4": 4, "u12/16le": 16}

// elementOf returns element i of a payload.
func elementOf(d *session.DataTypes, p []byte, i int) int64 {
	var order binary.ByteOrder = binary.NativeEndian
	if d.Network {
		order = binary.BigEndian
	}
	switch d.Input {
	case "int4":
		half := int64(p[i/2] >> 4)
		if i%2 == 1 {
			half = int64(p[i/2] & 15)
		}
		if half >= 8 {
			half -= 16
		}
		return half
	case "int8":
		return int64(int8(p[i]))
	case "o4":
		return int64(p[i/2]>>(4-i%2*4)&15) - 8
	case "u12/16le":
		return int64(binary.LittleEndian.Uint16(p[2*i:]) & 0xfff)
	case "int16":
		return int64(int16(order.Uint16(p[2*i:])))
	}
	return int64(int32(order.Uint32(p[4*i:])))
}

// nearest returns the bits, up to those of infinity, whose value is nearest to x, with ties to even.
func nearest(x float64, infinity uint16, value func(bits uint16) float64) uint16 {
	lo, hi := uint16(0), infinity
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; value(mid) <= x {
			lo = mid
		} else {
			hi = mid
		}
	}
	down, up := x-value(lo), value(hi)-x
	if down < up || (down == up && lo%2 == 0) {
		return lo
	}
	return hi
}

// half returns the value of an fp16; infinity has the value that would follow the largest number.
func half(bits uint16) float64 {
	if bits>>10 == 0 {
		return math.Ldexp(float64(bits), -24)
	}
	return math.Ldexp(float64(1024+bits&1023), int(bits>>10)-25)
}

func brain(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }

// appendElement appends a converted element.
func appendElement(d *session.DataTypes, out []byte, v int64) []byte {
	f := float64(float32(v))
	sign := uint16(0)
	if v < 0 {
		sign = 1 << 15
	}
	switch d.Output {
	case "int8":
		return append(out, byte(min(max(v, -128), 127)))
	case "int16":
		return binary.NativeEndian.AppendUint16(out, uint16(min(max(v, -32768), 32767)))
	case "int32":
		return binary.NativeEndian.AppendUint32(out, uint32(v))
	case "fp16":
		return binary.NativeEndian.AppendUint16(out, sign|nearest(math.Abs(f), 0x7c00, half))
	case "bf16":
		return binary.NativeEndian.AppendUint16(out, sign|nearest(math.Abs(f), 0x7f80, brain))
	case "fp32":
		f := float32(v)
		if d.Scale != 0 {
			f = (f + float32(d.Offset)) * float32(d.Scale)
		}
		return binary.NativeEndian.AppendUint32(out, math.Float32bits(f))
	}
	return binary.NativeEndian.AppendUint64(out, math.Float64bits(float64(v)))
}

// converted returns a converted payload, or false if it is not a whole number of elements.
func converted(d *session.DataTypes, p []byte) ([]byte, bool) {
	if d == nil {
		return p, true
	}
	bits := elementBits[d.Input]
	if 8*len(p)%bits != 0 {
		return nil, false
	}
	var out []byte
	for i := range 8 * len(p) / bits {
		out = appendElement(d, out, elementOf(d, p, i))
	}
	return out, true
}
