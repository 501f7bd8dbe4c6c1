package kernel

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Kinds lists the kinds of memory of an array.
var Kinds = []string{"host", "host_pinned", "device"}

// maxArray is the maximum size of an array, in bytes.
const maxArray = 1 << 40

// Array is an n-dimensional array of elements of one type, in row-major order, that kernels and the script share.
type Array struct {
	Kind   string
	Type   *Type
	Shape  []int
	N      int // number of elements
	GPU    int // GPU with access; native.HostGPU: none
	native native.Array
}

// NewArray returns an array of zeros. gpu is the GPU of kinds host_pinned and device; with native.HostGPU all kinds are host memory.
func NewArray(kind, typeName string, shape []int, gpu int) (*Array, error) {
	a := &Array{Kind: kind, Type: typeNamed(typeName), Shape: slices.Clone(shape), N: 1, GPU: gpu}
	if a.Type == nil {
		return nil, invalid("array: there is no type %q: it is one of %s", typeName, strings.Join(TypeNames(), ", "))
	}
	for _, n := range shape {
		high, low := bits.Mul64(uint64(a.N), uint64(n))
		if n < 1 || high != 0 || low > maxArray/uint64(a.Type.Bytes) {
			return nil, invalid("array: shape %s: each number is at least 1, and the whole at most %d bytes", shapeText(shape), int64(maxArray))
		}
		a.N = int(low)
	}
	if kind == "host" {
		a.GPU = native.HostGPU
	}
	n, err := native.NewArray(a.String(), native.RegionKindNamed(kind), gpu, a.N*a.Type.Bytes)
	if err != nil {
		return nil, err
	}
	a.native = n
	runtime.AddCleanup(a, native.Array.Free, n)
	return a, nil
}

func shapeText(shape []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", " x ")
}

// String returns a description such as "array of 64 x 2 fp32 (device)".
func (a *Array) String() string {
	return fmt.Sprintf("array of %s %s (%s)", shapeText(a.Shape), a.Type.Name, a.Kind)
}

// Native returns the array's memory, valid while the array is referenced.
func (a *Array) Native() native.Array { return a.native }

// Index returns the position of an element given its indices from 0.
func (a *Array) Index(at []int) (int, error) {
	if len(at) != len(a.Shape) {
		return 0, invalid("%s: %d indices for %d dimensions", a, len(at), len(a.Shape))
	}
	k := 0
	for d, i := range at {
		if i < 0 || i >= a.Shape[d] {
			return 0, invalid("%s: index %d of dimension %d: it is 1 to %d", a, i+1, d+1, a.Shape[d])
		}
		k = k*a.Shape[d] + i
	}
	return k, nil
}

// Get returns an element as a float64, an int64 or a uint64.
func (a *Array) Get(k int) (any, error) {
	defer runtime.KeepAlive(a)
	b := make([]byte, a.Type.Bytes)
	if err := a.native.Read(k*a.Type.Bytes, b); err != nil {
		return nil, err
	}
	return a.Type.get(b), nil
}

// Set sets an element.
func (a *Array) Set(k int, f float64) error {
	b := make([]byte, a.Type.Bytes)
	if err := a.Type.store(b, f); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return a.SetBytes(k*a.Type.Bytes, b)
}

// SetWide sets element k to a whole number, which elements of type uint64 hold exactly.
func (a *Array) SetWide(k int, v uint64) error {
	if a.Type.Name != "uint64" {
		return a.Set(k, float64(v))
	}
	b := make([]byte, a.Type.Bytes)
	order.PutUint64(b, v)
	return a.SetBytes(k*a.Type.Bytes, b)
}

// SetBytes writes raw bytes from byte `at` on.
func (a *Array) SetBytes(at int, b []byte) error {
	defer runtime.KeepAlive(a)
	return a.native.Write(at, b)
}

// SetAll sets all elements in order.
func (a *Array) SetAll(values []float64) error {
	if len(values) != a.N {
		return invalid("%s: %d values for %d elements", a, len(values), a.N)
	}
	b := make([]byte, a.N*a.Type.Bytes)
	for i, f := range values {
		if err := a.Type.store(b[i*a.Type.Bytes:], f); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return a.SetBytes(0, b)
}

// Fill sets all elements to the same number.
func (a *Array) Fill(f float64) error {
	b := make([]byte, a.N*a.Type.Bytes)
	if err := a.Type.store(b, f); err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	for done := a.Type.Bytes; done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
	return a.SetBytes(0, b)
}

// Bytes returns a copy of the elements' bytes.
func (a *Array) Bytes() ([]byte, error) {
	defer runtime.KeepAlive(a)
	b := make([]byte, a.N*a.Type.Bytes)
	return b, a.native.Read(0, b)
}

// Each calls fn for each element in order.
func (a *Array) Each(fn func(v any)) error {
	b, err := a.Bytes()
	for ; err == nil && len(b) > 0; b = b[a.Type.Bytes:] {
		fn(a.Type.get(b))
	}
	return err
}

// Number converts an element to a float64, rounding wide integers.
func Number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	}
	return v.(float64)
}

// Sum returns the sum of the elements, or an error if an integer sum exceeds 64 bits.
func (a *Array) Sum() (any, error) {
	var sum float64
	var signed int64
	var unsigned uint64
	err := a.Each(func(v any) {
		switch v := v.(type) {
		case int64:
			signed += v
		case uint64:
			unsigned += v
		}
		sum += Number(v)
	})
	switch {
	case err != nil:
		return nil, err
	case !a.Type.whole():
		return sum, nil
	case a.Type.least < 0 && math.Abs(sum) < 1<<62:
		return signed, nil
	case a.Type.least == 0 && sum < 1<<63:
		return unsigned, nil
	}
	return nil, fmt.Errorf("%s: the sum does not fit into 64 bits", a)
}

// Least returns the smallest element that is not NaN, or nil if there is none.
func (a *Array) Least() (any, error) { return a.extreme(less) }

// Most returns the largest element; otherwise it is like Least.
func (a *Array) Most() (any, error) { return a.extreme(func(x, y any) bool { return less(y, x) }) }

func less(x, y any) bool {
	switch v := x.(type) {
	case int64:
		return v < y.(int64)
	case uint64:
		return v < y.(uint64)
	}
	return x.(float64) < y.(float64)
}

func (a *Array) extreme(better func(x, y any) bool) (best any, err error) {
	err = a.Each(func(v any) {
		if f, ok := v.(float64); (!ok || f == f) && (best == nil || better(v, best)) {
			best = v
		}
	})
	return best, err
}

// Snapshot returns a copy in host memory.
func (a *Array) Snapshot() (*Array, error) {
	b, err := a.Bytes()
	if err != nil {
		return nil, err
	}
	s, err := NewArray("host", a.Type.Name, a.Shape, native.HostGPU)
	if err != nil {
		return nil, err
	}
	return s, s.SetBytes(0, b)
}

// WriteFile writes the elements to a file: in numpy's format, version 1.0, if the name ends in .npy, else as raw bytes. A non-empty file is replaced
// only with overwrite.
func (a *Array) WriteFile(path string, overwrite bool) error {
	b, err := a.Bytes()
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, ".npy") {
		header, err := a.numPyHeader()
		if err != nil {
			return err
		}
		b = append(header, b...)
	}
	mode := os.O_WRONLY | os.O_CREATE
	if overwrite {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o666)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() && info.Size() > 0 {
		return errors.Join(err, fmt.Errorf("%s is there, and stays as it is; hint: another name, or overwrite = true", path), f.Close())
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

func (a *Array) numPyHeader() ([]byte, error) {
	if a.Type.NumPy == "" {
		return nil, invalid("%s: numpy has no %s; hint: another ending than .npy writes the bytes", a, a.Type.Name)
	}
	name := a.Type.NumPy
	if a.Type.Bytes > 1 {
		name = map[bool]string{true: "<", false: ">"}[order.Uint16([]byte{1, 0}) == 1] + name
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }", name, strings.ReplaceAll(shapeText(a.Shape), " x ", ", "))
	const magic = "\x93NUMPY\x01\x00"
	pad := 63 - (len(magic)+2+len(text))%64
	text += strings.Repeat(" ", pad) + "\n"
	return append([]byte(magic), append([]byte{byte(len(text)), byte(len(text) >> 8)}, text...)...), nil
}
