package kernel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/native"
)

// Stream executes the kernels launched in it in order.
type Stream struct {
	GPU    int
	native native.Stream
}

// NewStream returns a new stream; gpu may be native.HostGPU.
func NewStream(gpu int) (*Stream, error) {
	n, err := native.NewStream("stream", gpu)
	if err != nil {
		return nil, err
	}
	s := &Stream{gpu, n}
	runtime.AddCleanup(s, native.Stream.Free, n)
	return s, nil
}

// Synchronize waits until all work of the stream is complete.
func (s *Stream) Synchronize() error {
	defer runtime.KeepAlive(s)
	return s.native.Synchronize()
}

// Native returns the native stream; for a nil s it is the zero Stream, which selects a new one.
func (s *Stream) Native() native.Stream {
	if s == nil {
		return native.Stream{}
	}
	return s.native
}

// Grid is the number of blocks of a kernel and of threads per block.
type Grid = native.Grid

// Arg is an argument of a launch and the array that it refers to.
type Arg struct {
	native.KernelArg
	Array *Array
}

// Special maps the names of special arguments, which describe the burst that a kernel is launched for.
var Special = map[string]native.ArgKind{"data": native.ArgData, "present": native.ArgPresent, "extra": native.ArgExtra, "batch_id": native.ArgBatchID,
	"packets": native.ArgPackets, "burst": native.ArgBurst}

// CheckCount returns an error unless the kernel takes n arguments.
func (k *Kernel) CheckCount(n int) error {
	if n == len(k.Params) {
		return nil
	}
	var texts []string
	for _, p := range k.Params {
		texts = append(texts, p.Text)
	}
	return k.fault("it takes %d arguments (%s), got %d", len(k.Params), strings.Join(texts, ", "), n)
}

func (k *Kernel) fault(format string, args ...any) error {
	return invalid("%s: %s", k.Title, fmt.Sprintf(format, args...))
}

// wrong returns an error about argument i, from 0.
func (k *Kernel) wrong(i int, format string, args ...any) error {
	return k.fault("argument %d (%s): %s", i+1, k.Params[i].Text, fmt.Sprintf(format, args...))
}

// Unfit returns the error for a value that cannot be argument i.
func (k *Kernel) Unfit(i int, why string) error { return k.wrong(i, "%s", why) }

// NumberArg returns a number as argument i.
func (k *Kernel) NumberArg(i int, f float64) (Arg, error) {
	p := k.Params[i]
	a := Arg{KernelArg: native.KernelArg{Kind: native.ArgNumber}}
	bits := uint(8 * p.Bytes)
	switch {
	case p.Class == Pointer || p.Class == Other:
		return a, k.wrong(i, "it is a number, and the kernel takes %s", classWords[p.Class])
	case p.Class == Float && p.Bytes == 4:
		a.Value = uint64(math.Float32bits(float32(f)))
	case p.Class == Float && p.Bytes == 8:
		a.Value = math.Float64bits(f)
	case p.Class == Float:
		return a, k.wrong(i, "a number of %d bytes can't be passed", p.Bytes)
	case f != math.Trunc(f) || math.Abs(f) > 1<<53 || f < -math.Ldexp(1, int(bits)-1) || f >= math.Ldexp(1, int(bits)):
		return a, k.wrong(i, "%v is not a whole number of %d bits", f, bits)
	default:
		a.Value = uint64(int64(f))
	}
	return a, nil
}

var classWords = map[Class]string{Pointer: "a pointer", Whole: "a whole number", Float: "a floating number", Word: "a pointer or a whole number",
	Other: "a structure, which no script has"}

// WideArg returns an unsigned integer of up to 64 bits as argument i.
func (k *Kernel) WideArg(i int, v uint64) (Arg, error) {
	if p := k.Params[i]; (p.Class != Whole && p.Class != Word) || (p.Bytes < 8 && v>>(8*p.Bytes) != 0) {
		return Arg{}, k.wrong(i, "%d is a whole number, and the kernel takes %s of %d bytes", v, classWords[p.Class], p.Bytes)
	}
	return Arg{KernelArg: native.KernelArg{Kind: native.ArgNumber, Value: v}}, nil
}

// pointerArg returns an error unless argument i can be passed as a pointer.
func (k *Kernel) pointerArg(i int, what string) error {
	if p := k.Params[i]; p.Class != Pointer && (p.Class != Word || p.Bytes != 8) {
		return k.wrong(i, "%s is passed as a pointer, and the kernel takes %s", what, classWords[p.Class])
	}
	return nil
}

// ArrayArg returns an array as argument i.
func (k *Kernel) ArrayArg(i int, a *Array) (Arg, error) {
	if err := k.pointerArg(i, "an array"); err != nil {
		return Arg{}, err
	}
	if base := pointee(k.Params[i].Text); base != "" && !slices.Contains(a.Type.source, base) {
		return Arg{}, k.wrong(i, "the array has elements of type %s", a.Type.Name)
	}
	if strings.Contains(k.Params[i].Text, "daqiri_burst") {
		return Arg{}, k.wrong(i, "an array is not a burst")
	}
	if !k.OnHost() && a.GPU == native.HostGPU {
		return Arg{}, k.wrong(i, "an array of kind host, which a GPU doesn't reach; hint: kind = \"host_pinned\" or \"device\"")
	}
	return Arg{KernelArg: native.KernelArg{Kind: native.ArgArray, Array: a.native}, Array: a}, nil
}

var pointerText = regexp.MustCompile(`^((?:\w+ )*?\w+) ?\* ?(?:(?:const|__restrict__|__restrict|restrict) ?)*\w*$`)

// pointee returns the type that a parameter points to if it is an element type of arrays, else "".
func pointee(text string) string {
	m := pointerText.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	var words []string
	for _, word := range strings.Fields(m[1]) {
		if word != "const" && word != "volatile" && word != "__restrict__" {
			words = append(words, word)
		}
	}
	base := strings.Join(words, " ")
	for _, t := range types {
		if slices.Contains(t.source, base) {
			return base
		}
	}
	return ""
}

// WordsArg returns 64-bit numbers as argument i; the launch copies them.
func (k *Kernel) WordsArg(i int, words []uint64) (Arg, error) {
	return Arg{KernelArg: native.KernelArg{Kind: native.ArgWords, Words: words}}, k.pointerArg(i, "a column")
}

// SpecialArg returns a special argument as argument i.
func (k *Kernel) SpecialArg(i int, kind native.ArgKind, what string) (Arg, error) {
	a := Arg{KernelArg: native.KernelArg{Kind: kind}}
	if base := pointee(k.Params[i].Text); kind == native.ArgBurst && base != "" {
		return a, k.wrong(i, "%s is passed as a const daqiri_burst *", what)
	}
	if kind != native.ArgBatchID && kind != native.ArgPackets {
		return a, k.pointerArg(i, what)
	}
	if p := k.Params[i]; p.Class != Whole && p.Class != Word {
		return a, k.wrong(i, "%s is a whole number, and the kernel takes %s", what, classWords[p.Class])
	}
	return a, nil
}

// Launcher launches one kernel.
type Launcher struct {
	Kernel *Kernel
	stream *Stream
	native native.Launcher
}

// NewLauncher returns a launcher; with a nil stream it has its own.
func NewLauncher(k *Kernel, g Grid, stream *Stream) (*Launcher, error) {
	n, err := native.NewLauncher(k.Title, k.native, g, stream.Native())
	if err != nil {
		return nil, err
	}
	l := &Launcher{k, stream, n}
	runtime.AddCleanup(l, native.Launcher.Free, n)
	return l, nil
}

// Launch starts the kernel, or returns native.ErrNotReady if too many launches are in progress. The objects of the arguments are referenced until its
// end. On the host the kernel has ended when Launch returns; canceling the context ends it early with an error.
func (l *Launcher) Launch(ctx context.Context, args []Arg) (native.Op, error) {
	if l.Kernel.OnHost() {
		defer l.stopWith(ctx)()
	}
	list := make([]native.KernelArg, len(args))
	for i, a := range args {
		list[i] = a.KernelArg
	}
	op, err := l.native.Launch(list)
	if errors.Is(err, native.ErrNotReady) {
		l.native.Poll()
		op, err = l.native.Launch(list)
	}
	runtime.KeepAlive(args)
	runtime.KeepAlive(l)
	return op, err
}

// stopWith stops launches on the host when the context is canceled, until off is called.
func (l *Launcher) stopWith(ctx context.Context) (off func()) {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		l.native.Stop(true)
		close(stopped)
	})
	return func() {
		if !stop() {
			<-stopped
			l.native.Stop(false)
		}
	}
}

// Rest ends the process of launches on the host, which unmaps the memory of all sessions. The next launch starts a new process.
func (l *Launcher) Rest() {
	defer runtime.KeepAlive(l)
	l.native.Rest()
}

// Poll completes launches whose kernels have ended. It returns their number and whether others are running.
func (l *Launcher) Poll() (ended int, more bool) {
	defer runtime.KeepAlive(l)
	ended, left := l.native.Poll()
	return ended, left > 0
}

// Holds returns the number of running launches that reference bursts of the session.
func (l *Launcher) Holds(s *native.Session) int {
	defer runtime.KeepAlive(l)
	return l.native.Holds(s)
}

// Failure returns the error of the first failed launch, or "".
func (l *Launcher) Failure() string {
	defer runtime.KeepAlive(l)
	return l.native.Failure()
}
