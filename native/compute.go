package native

/*
#include <stdlib.h>
#include "dq.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// HostGPU stands for the host in place of a GPU's number.
const HostGPU = int(C.DQ_HOST_GPU)

// MaxKernelArgs is the maximum number of arguments of a kernel.
const MaxKernelArgs = int(C.DQ_MAX_KERNEL_ARGS)

// CompilerName is argv[0] of the compiler's wrapper process (compute/compiler.c).
const CompilerName = C.DQ_COMPILER_NAME

// named calls a constructor with the name of the new object.
func named(what string, make func(what *C.char, d *C.dq_diag) C.int) error {
	name := cString(what)
	defer name.free()
	var d C.dq_diag
	return result(what, make(name.c, &d), &d)
}

// Stream orders the kernels of a GPU; it mirrors dq_stream. The zero value is not a stream.
type Stream struct{ c *C.dq_stream }

// NewStream creates a stream; gpu may be HostGPU.
func NewStream(what string, gpu int) (s Stream, err error) {
	err = named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_stream_new(w, C.int32_t(gpu), &s.c, d) })
	return s, err
}

// Synchronize waits until the stream is idle. Any thread, as all functions here.
func (s Stream) Synchronize() error {
	var d C.dq_diag
	return result("stream", C.dq_stream_synchronize(s.c, &d), &d)
}

// Free releases the stream.
func (s Stream) Free() { C.dq_stream_free(s.c) }

// Kernel is a compiled user kernel, on a GPU or on the host.
type Kernel struct{ c *C.dq_kernel }

// KernelFromPTX has the driver compile a kernel from PTX text.
func KernelFromPTX(what string, gpu int, ptx, name string) (k Kernel, err error) {
	text, entry := cString(ptx), cString(name)
	defer text.free()
	defer entry.free()
	err = named(what, func(w *C.char, d *C.dq_diag) C.int {
		return C.dq_kernel_from_ptx(w, C.int32_t(gpu), text.c, entry.c, &k.c, d)
	})
	return k, err
}

// KernelFromLibrary loads a host kernel from a compiled library.
func KernelFromLibrary(what, path string) (k Kernel, err error) {
	file := cString(path)
	defer file.free()
	err = named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_kernel_from_library(w, file.c, &k.c, d) })
	return k, err
}

// MathKernel is a kernel implemented by an NVIDIA library; it mirrors dq_math.
type MathKernel struct {
	Name, Library string
	Params, Shape string // Params: C declarations; Shape: names of its dimensions, separated by commas
	number        C.uint32_t
}

// MathKernels returns all math kernels.
func MathKernels() (all []MathKernel) {
	for n := C.uint32_t(0); ; n++ {
		m := C.dq_math_at(n)
		if m == nil {
			return all
		}
		all = append(all, MathKernel{C.GoString(m.name), C.GoString(m.library), C.GoString(m.params), C.GoString(m.shape), n})
	}
}

// Open opens its library; the error names what is missing.
func (m MathKernel) Open(what string) error {
	return named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_math_open(m.number, w, d) })
}

// KernelFromMath creates a kernel that runs in a GPU's stream; shape has one number per name of m.Shape.
func KernelFromMath(what string, m MathKernel, shape []int, s Stream) (k Kernel, err error) {
	var c [C.DQ_MATH_SHAPE]C.uint32_t
	for i, n := range shape {
		c[i] = C.uint32_t(n)
	}
	err = named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_kernel_from_math(w, m.number, &c[0], s.c, &k.c, d) })
	return k, err
}

// Types returns the argument types of a library kernel, one character each.
func (k Kernel) Types() string { return C.GoString(C.dq_kernel_types(k.c)) }

// Free releases the kernel.
func (k Kernel) Free() { C.dq_kernel_free(k.c) }

// NVRTCVersion returns the version of NVRTC, which the first call opens.
func NVRTCVersion(what string) (major, minor int, err error) {
	var a, b C.int32_t
	err = named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_nvrtc_version(w, &a, &b, d) })
	return int(a), int(b), err
}

// NVRTCArch returns the newest compute capability that NVRTC compiles for, at most wanted: 90 for 9.0.
func NVRTCArch(what string, wanted int) (int, error) {
	var arch C.int32_t
	err := named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_nvrtc_arch(w, C.int32_t(wanted), &arch, d) })
	return int(arch), err
}

// NVRTCSource is the input of NVRTC; it mirrors dq_nvrtc_source.
type NVRTCSource struct {
	What, Text, Name, Entry string
	Options                 []string
	Headers                 map[string]string // texts by name
}

// NVRTCOutput is the output of NVRTC: PTX, the kernel's name in it, and compiler messages, also after a failure.
type NVRTCOutput struct{ PTX, Name, Log string }

// NVRTCCompile compiles src; ErrInvalid is an error in the source, listed in the log.
func NVRTCCompile(src NVRTCSource) (NVRTCOutput, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var texts []cText
	defer func() {
		for _, t := range texts {
			t.free()
		}
	}()
	keep := func(s string) *C.char {
		t := cString(s)
		texts = append(texts, t)
		return t.c
	}
	list := func(from []string) **C.char {
		to := make([]*C.char, len(from)+1)
		for i, s := range from {
			to[i] = keep(s)
		}
		pin.Pin(&to[0])
		return &to[0]
	}
	var names, headers []string
	for name, text := range src.Headers {
		names, headers = append(names, name), append(headers, text)
	}
	c := C.dq_nvrtc_source{what: keep(src.What), text: keep(src.Text), name: keep(src.Name), entry: keep(src.Entry),
		options: list(src.Options), n_options: C.uint32_t(len(src.Options)),
		headers: list(headers), header_names: list(names), n_headers: C.uint32_t(len(names))}
	var out C.dq_nvrtc_output
	var d C.dq_diag
	err := result(src.What, C.dq_nvrtc_compile(&c, &out, &d), &d)
	defer C.dq_nvrtc_free(&out)
	return NVRTCOutput{PTX: goText(out.ptx), Name: goText(out.name), Log: goText(out.log)}, err
}

// goText returns a C string as a Go string, empty for NULL.
func goText(c *C.char) string {
	if c == nil {
		return ""
	}
	return C.GoString(c)
}

// Array is memory that kernels access; it mirrors dq_array.
type Array struct{ c *C.dq_array }

// NewArray allocates a zeroed array; gpu may be HostGPU.
func NewArray(what string, kind RegionKind, gpu int, bytes int) (a Array, err error) {
	err = named(what, func(w *C.char, d *C.dq_diag) C.int {
		return C.dq_array_new(w, C.int32_t(kind), C.int32_t(gpu), C.uint64_t(bytes), &a.c, d)
	})
	return a, err
}

// Read copies bytes from offset at; it blocks until done.
func (a Array) Read(at int, to []byte) error {
	var d C.dq_diag
	return result("array", C.dq_array_read(a.c, C.uint64_t(at), unsafe.Pointer(first(to)), C.uint64_t(len(to)), &d), &d)
}

// Write copies bytes to offset at; it blocks until done.
func (a Array) Write(at int, from []byte) error {
	var d C.dq_diag
	return result("array", C.dq_array_write(a.c, C.uint64_t(at), unsafe.Pointer(first(from)), C.uint64_t(len(from)), &d), &d)
}

// Free releases the array.
func (a Array) Free() { C.dq_array_free(a.c) }

// ArgKind is the kind of a kernel argument.
type ArgKind int32

// Kinds of arguments; see dq_arg_kind.
const (
	ArgNumber  ArgKind = C.DQ_ARG_NUMBER
	ArgArray   ArgKind = C.DQ_ARG_ARRAY
	ArgWords   ArgKind = C.DQ_ARG_WORDS
	ArgData    ArgKind = C.DQ_ARG_DATA
	ArgPresent ArgKind = C.DQ_ARG_PRESENT
	ArgExtra   ArgKind = C.DQ_ARG_EXTRA
	ArgBatchID ArgKind = C.DQ_ARG_BATCH_ID
	ArgPackets ArgKind = C.DQ_ARG_PACKETS
	ArgBurst   ArgKind = C.DQ_ARG_BURST
)

// KernelArg is an argument of a launch; members that its kind does not use are zero.
type KernelArg struct {
	Kind  ArgKind
	Value uint64
	row   uint32 // 1 + number of the region to which Value is an address; 0: none
	Array Array
	Words []uint64
	Burst Burst // for launches; a stage uses the burst that it received
}

// Grid is the number of blocks of a kernel and the number of threads per block, in three dimensions.
type Grid struct{ Grid, Block [3]uint32 }

func (g Grid) c() (c C.dq_grid) {
	for k := range g.Grid {
		c.grid[k], c.block[k] = C.uint32_t(g.Grid[k]), C.uint32_t(g.Block[k])
	}
	return c
}

func kernelArgs(args []KernelArg, pin *runtime.Pinner) *C.dq_kernel_arg {
	c := make([]C.dq_kernel_arg, len(args)+1)
	for i, a := range args {
		c[i] = C.dq_kernel_arg{kind: C.int32_t(a.Kind), value: C.uint64_t(a.Value), row: C.uint32_t(a.row), array: a.Array.c, n_words: C.uint64_t(len(a.Words)), b: a.Burst.c}
		if len(a.Words) > 0 {
			pin.Pin(first(a.Words))
			c[i].words = (*C.uint64_t)(first(a.Words))
		}
	}
	pin.Pin(&c[0])
	return &c[0]
}

// Launcher launches one kernel; it mirrors dq_launcher.
type Launcher struct{ c *C.dq_launcher }

// NewLauncher creates a launcher; with the zero Stream it uses a private one.
func NewLauncher(what string, k Kernel, g Grid, s Stream) (l Launcher, err error) {
	grid := g.c()
	err = named(what, func(w *C.char, d *C.dq_diag) C.int { return C.dq_launcher_new(w, k.c, &grid, s.c, &l.c, d) })
	return l, err
}

// Launch starts the kernel; ErrNotReady: the maximum number of launches is in flight.
func (l Launcher) Launch(args []KernelArg) (Op, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var op Op
	var d C.dq_diag
	return op, result("launch", C.dq_launch(l.c, kernelArgs(args, &pin), C.uint32_t(len(args)), &op.c, &d), &d)
}

// Poll completes launches whose kernels have ended; it returns how many did, and how many are in flight.
func (l Launcher) Poll() (ended, left int) {
	var n C.uint32_t
	left = int(C.dq_launcher_look(l.c, &n))
	return int(n), left
}

// Holds returns the number of launches in flight that reference bursts of the session.
func (l Launcher) Holds(s *Session) int { return int(C.dq_launcher_holds(l.c, s.c)) }

// Stop makes launches on the host, current and future, fail; false: no longer. Any goroutine.
func (l Launcher) Stop(stop bool) { C.dq_launcher_stop(l.c, C.bool(stop)) }

// Rest ends the process for launches on the host, which maps memory of sessions; the next launch starts another.
func (l Launcher) Rest() { C.dq_launcher_rest(l.c) }

// Failure returns the reason of the first failed launch; empty: none failed.
func (l Launcher) Failure() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_launcher_failure(l.c, buf, size) })
}

// Free releases the launcher; launches in flight continue.
func (l Launcher) Free() { C.dq_launcher_free(l.c) }

// KernelConf configures a kernel stage; it mirrors dq_kernel_conf.
type KernelConf struct {
	Kernel Kernel
	Grid   Grid
	Stream Stream // zero: a private one
	Args   []KernelArg
	Policy Policy // when the maximum number of launches is in flight
}

// AddKernel adds a stage that launches a kernel for each burst, and the receive queue that then delivers the bursts.
func (s *Session) AddKernel(name string, conf KernelConf) (Stage, Queue, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := C.dq_kernel_conf{kernel: conf.Kernel.c, grid: conf.Grid.c(), stream: conf.Stream.c, args: kernelArgs(conf.Args, &pin),
		n_args: C.uint32_t(len(conf.Args)), policy: C.int32_t(conf.Policy)}
	var q Queue
	st, err := addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_kernel(s.c, n, &c, out, &q.c, d)
	})
	return st, q, err
}

// Like declares that the kernel stage's queue delivers bursts like those of source, before it has a source.
func (q Queue) Like(source Queue) { C.dq_stage_kernel_like(q.c, source.c) }

// Linger keeps the session's memory until the process exits, as something outside its stages may still access it.
func (s *Session) Linger() { C.dq_session_leak_memory(s.c) }
