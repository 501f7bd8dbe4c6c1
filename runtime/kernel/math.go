package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// MathNames returns the names of kernels provided by NVIDIA's libraries.
func MathNames() (names []string) {
	for _, m := range native.MathKernels() {
		names = append(names, m.Name)
	}
	return names
}

// Math selects a kernel of one of NVIDIA's libraries.
type Math struct {
	Title string // name in errors: "kernel power"
	Name  string // one of MathNames
	Shape []int  // parameters, described by the error for a wrong number of them
	GPU   int    // GPU number
}

const mostShape = 1 << 20

// BuildMath returns the kernel and the stream of all its launches; with a nil stream it creates one.
func BuildMath(m Math, stream *Stream) (*Kernel, *Stream, error) {
	all := native.MathKernels()
	at := slices.IndexFunc(all, func(k native.MathKernel) bool { return k.Name == m.Name })
	s := Source{Title: m.Title}
	if at < 0 {
		return nil, nil, s.errorf("no library has it: those that are known are %s", strings.Join(MathNames(), ", "))
	}
	row := all[at]
	if m.GPU == native.HostGPU {
		return nil, nil, s.errorf("%s runs on GPUs alone; hint: a kernel with src = … runs on the host, too", row.Library)
	}
	if err := m.checkShape(row); err != nil {
		return nil, nil, err
	}
	if err := row.Open(m.Title); err != nil {
		return nil, nil, err
	}
	if stream == nil {
		made, err := NewStream(m.GPU)
		if err != nil {
			return nil, nil, err
		}
		stream = made
	}
	n, err := native.KernelFromMath(m.Title, row, m.Shape, stream.native)
	if err != nil {
		return nil, nil, err
	}
	k := s.kernel(n, m.GPU)
	k.Entry = m.Name
	for _, d := range declarations(row.Params) {
		k.Params = append(k.Params, Param{Text: d.text, Class: Pointer, Bytes: 8})
	}
	return k, stream, nil
}

func (m Math) checkShape(row native.MathKernel) error {
	want := strings.Split(row.Shape, ", ")
	bad := slices.IndexFunc(m.Shape, func(n int) bool { return n < 1 || n > mostShape })
	if len(m.Shape) == len(want) && bad < 0 {
		return nil
	}
	return invalid("%s: shape is %d whole numbers of 1 to %d (%s), got %s", m.Title, len(want), mostShape, row.Shape,
		strings.Trim(fmt.Sprint(m.Shape), "[]"))
}
