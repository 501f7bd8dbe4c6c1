package kernel

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
)

const scale = `
extern "C" __global__ void scale(const float *in, float *out, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * by;
}
`

// reduce sums a block with shared memory, barriers and warp shuffles.
const reduce = `
__global__ void reduce(const int *in, int *out)
{
    __shared__ int part[8];
    int v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int n = 16; n > 0; n /= 2) v += __shfl_down_sync(0xffffffff, v, n);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < (int)blockDim.x / 32; k++) v += part[k];
        atomicAdd(out, v);
        out[1 + blockIdx.x] = v;
    }
}
`

func cacheHere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	return dir
}

func onHost(text string) Source {
	return Source{Title: "kernel test", Text: text, File: "test.lua", Line: 10, GPU: native.HostGPU}
}

func build(t *testing.T, s Source) *Kernel {
	t.Helper()
	k, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func array(t *testing.T, kind, typ string, gpu int, values ...float64) *Array {
	t.Helper()
	a, err := NewArray(kind, typ, []int{len(values)}, gpu)
	if err == nil {
		err = a.SetAll(values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func launch(t *testing.T, k *Kernel, grid, block uint32, args ...any) {
	t.Helper()
	l := must(NewLauncher(k, Grid{Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{block, 1, 1}}, nil))(t)
	var list []Arg
	for i, v := range args {
		if a, ok := v.(*Array); ok {
			list = append(list, must(k.ArrayArg(i, a))(t))
			continue
		}
		list = append(list, must(k.NumberArg(i, v.(float64)))(t))
	}
	op := must(l.Launch(t.Context(), list))(t)
	defer op.Free()
	for more := true; more; {
		_, more = l.Poll()
	}
	if st := op.State(); !st.Done || st.Failed > 0 {
		t.Fatalf("the launch: %+v %s", st, op.Error())
	}
}

func TestHostKernel(t *testing.T) {
	cacheHere(t)
	k := build(t, onHost(scale))
	in, out := array(t, "host", "fp32", native.HostGPU, 1, 2, 3, 4, 5), array(t, "host", "fp32", native.HostGPU, 9, 9, 9, 9, 9)
	launch(t, k, 2, 2, in, out, 0.5, 3.0)
	for i, want := range []float64{0.5, 1, 1.5, 9, 9} {
		if got, _ := out.Get(i); got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

func TestHostBarriers(t *testing.T) {
	cacheHere(t)
	k := build(t, onHost(reduce))
	const blocks, threads = 3, 96
	values, want, sums := make([]float64, blocks*threads), 0.0, make([]float64, blocks)
	for i := range values {
		values[i] = float64(i*i%97 - 40)
		want += values[i]
		sums[i/threads] += values[i]
	}
	out := array(t, "host", "int32", native.HostGPU, 0, 0, 0, 0)
	launch(t, k, blocks, threads, array(t, "host", "int32", native.HostGPU, values...), out)
	for i, w := range append([]float64{want}, sums...) {
		if got, _ := out.Get(i); got != int64(w) {
			t.Errorf("element %d is %v, want %v", i, got, w)
		}
	}
}

// TestPlainC checks that without a C++ compiler the C compiler produces an equivalent kernel.
func TestPlainC(t *testing.T) {
	cacheHere(t)
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no cc")
	}
	as, _ := exec.LookPath("as")
	ld, _ := exec.LookPath("ld")
	bin := t.TempDir()
	for name, at := range map[string]string{"cc": cc, "as": as, "ld": ld} {
		if err := os.Symlink(at, bin+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	TestHostKernel(t)
	TestHostBarriers(t)
}

func TestKeptOnDisk(t *testing.T) {
	dir := cacheHere(t) + "/daqiri-run/kernels"
	build(t, onHost(scale))
	files, _ := os.ReadDir(dir)
	if len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".so") {
		t.Fatalf("the folder has %v", files)
	}
	before, _ := files[0].Info()
	build(t, onHost(scale))
	after, _ := os.Stat(dir + "/" + files[0].Name())
	if !before.ModTime().Equal(after.ModTime()) {
		t.Error("it was compiled again")
	}
	_ = os.Remove(dir + "/" + files[0].Name()) // replaced instead of overwritten, because it is mapped
	if err := os.WriteFile(dir+"/"+files[0].Name(), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, onHost(scale)) // a corrupt file is rebuilt
	build(t, onHost(scale+"\n"))
	if files, _ = os.ReadDir(dir); len(files) != 2 {
		t.Errorf("the folder has %v", files)
	}
}

func TestHostFaults(t *testing.T) {
	cacheHere(t)
	for _, c := range []struct{ name, text, entry, want string }{
		{"no kernel", "void f(void) {}", "", "its source has no kernel, a __global__ function"},
		{"two kernels", "__global__ void a() {}\n__global__ void b() {}", "", "its source has several kernels, of which entry selects one: a, b"},
		{"misspelt", "__global__ void power() {}", "powr", "its source has no kernel 'powr'; it has power"},
		{"error", "__global__ void f(int *a)\n{\n    a[0] = b;\n}", "", "its source doesn't compile:\n  test.lua:12: error: 'b' was not declared"},
		{"in a comment", "// __global__ void no()\n/* __global__ void no2() */ __global__ void f(int n /* , int m */) {}", "", ""},
		{"bounds", "__global__ void __launch_bounds__(64, 2) f(int n) {}", "", ""},
		{"no size", "__global__ void f() { extern __shared__ float s[]; }", "", "extern __shared__ has no size"},
		{"lacks", "__global__ void f(float *o) { *o = tex2D(1); }", "", "which has threads, blocks"},
	} {
		s := onHost(c.text)
		s.Entry = c.entry
		_, err := Build(s)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.want == "" || !errors.Is(err, native.ErrInvalid) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Build(onHost(scale)); err == nil || !strings.Contains(err.Error(), "kernel test: the host runs kernels that a compiler makes") || !strings.Contains(err.Error(), "install g++") {
		t.Errorf("no compiler: %v", err)
	}
}

// TestLargeArray checks that an array larger than the host's memory is rejected; otherwise the process that touches it would be killed.
func TestLargeArray(t *testing.T) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds {
		_, err := NewArray(kind, "fp32", []int{kib, 512}, native.HostGPU) // twice the memory
		if want := fmt.Sprintf("array of %d x 512 fp32 (%s): %d MiB needed, and ", kib, kind, kib/512); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestHostDeadlock checks that a launch ends when threads wait at different barriers.
func TestHostDeadlock(t *testing.T) {
	cacheHere(t)
	k := build(t, onHost("__global__ void f() { if (threadIdx.x % 2) __syncthreads(); else __syncwarp(); }"))
	l := must(NewLauncher(k, Grid{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}}, nil))(t)
	if _, err := l.Launch(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "wait at different barriers") {
		t.Errorf("%v", err)
	}
}

func TestArguments(t *testing.T) {
	cacheHere(t)
	k := build(t, onHost("__global__ void f(const float *a, unsigned char n, double x, long long w, float v[4], struct daqiri_burst b) {}"))
	words := "const float *a, unsigned char n, double x, long long w, float *v, struct daqiri_burst b"
	if err := k.CheckCount(2); err == nil || !strings.Contains(err.Error(), "it takes 6 arguments ("+words+"), got 2") {
		t.Errorf("count: %v", err)
	}
	ints := array(t, "host", "int16", native.HostGPU, 1)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"number for pointer": {second(k.NumberArg(0, 1)), "argument 1 (const float *a): it is a number, and the kernel takes a pointer"},
		"too large":          {second(k.NumberArg(1, 256)), "argument 2 (unsigned char n): 256 is not a whole number of 8 bits"},
		"fraction":           {second(k.NumberArg(3, 0.5)), "0.5 is not a whole number of 64 bits"},
		"array for number":   {second(k.ArrayArg(2, ints)), "argument 3 (double x): an array is passed as a pointer, and the kernel takes a floating number"},
		"elements":           {second(k.ArrayArg(0, ints)), "argument 1 (const float *a): the array has elements of type int16"},
		"elements of v":      {second(k.ArrayArg(4, ints)), "argument 5 (float *v): the array has elements of type int16"},
		"structure":          {second(k.NumberArg(5, 1)), "a structure, which no script has"},
		"id for a float":     {second(k.SpecialArg(2, native.ArgBatchID, "batch_id")), "batch_id is a whole number, and the kernel takes a floating number"},
		"data for number":    {second(k.SpecialArg(1, native.ArgData, "data")), "data is passed as a pointer, and the kernel takes a whole number"},
		"wide":               {second(k.WideArg(1, 1<<40)), "1099511627776 is a whole number, and the kernel takes a whole number of 1 bytes"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	for _, err := range []error{second(k.NumberArg(1, 255)), second(k.NumberArg(1, -128)), second(k.NumberArg(2, 0.5)), second(k.NumberArg(3, -5)), second(k.WideArg(3, 1<<63))} {
		if err != nil {
			t.Error(err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestPTXParams(t *testing.T) {
	// As NVRTC 12.6 writes it.
	const ptx = `
.version 8.5
.target sm_90
.visible .entry power( // a comment, with a comma
	.param .u64 .ptr .align 1 power_param_0,
	.param .u64 power_param_1,
	.param .f32 power_param_2,
	.param .align 8 .b8 power_param_3[16],
	.param .u8 power_param_4
)
{ ret; }
.visible .entry none()
{ ret; }
`
	params, entries, ok := ptxParams(ptx, "power")
	if !ok || strings.Join(entries, " ") != "power none" {
		t.Fatal(entries)
	}
	got := ""
	for _, p := range params {
		got += string(rune(p.Class)) + string(rune('0'+p.Bytes))
	}
	if got != "p8q8f4r1i1" {
		t.Errorf("classes are %s", got)
	}
	merge(params, []declared{{text: "float *a", pointer: true}, {text: "long n"}, {text: "float f"}, {text: "S s"}, {text: "bool b"}})
	if params[1].Class != Whole || params[0].Class != Pointer {
		t.Errorf("merged: %v", params)
	}
	if params, _, ok := ptxParams(ptx, "none"); !ok || len(params) != 0 {
		t.Errorf("none: %v", params)
	}
}

// TestHalf checks every half against the standard's formula, and the rounding to nearest, ties to even.
func TestHalf(t *testing.T) {
	for h := range 0x7c00 {
		want := math.Ldexp(float64(h&1023), -24)
		if e := h >> 10; e > 0 {
			want = math.Ldexp(1+float64(h&1023)/1024, e-15)
		}
		if got := fromHalf(uint16(h)); got != want {
			t.Fatalf("%#x is %v, want %v", h, got, want)
		}
		if toHalf(want) != uint16(h) || toHalf(-want) != uint16(h)|0x8000 {
			t.Fatalf("%v became %#x and %#x, want %#x", want, toHalf(want), toHalf(-want), h)
		}
		if h < 0x7bff {
			between, even := (want+fromHalf(uint16(h+1)))/2, uint16(h+h&1)
			if toHalf(between) != even || toHalf(math.Nextafter(between, 0)) != uint16(h) || toHalf(math.Nextafter(between, 1e9)) != uint16(h+1) {
				t.Fatalf("between %#x and the next: %#x", h, toHalf(between))
			}
		}
	}
	if toHalf(65519.9) != 0x7bff || toHalf(65520) != 0x7c00 || toHalf(math.Inf(-1)) != 0xfc00 || !math.IsNaN(fromHalf(toHalf(math.NaN()))) {
		t.Error("the ends")
	}
}
