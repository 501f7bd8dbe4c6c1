package kernel

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/tests/gpu"
)

// onDevice returns a source for GPU 0: the stand-in, or the GPU of the driver given by DAQIRI_CUDA, with the installed NVRTC.
func onDevice(t *testing.T, text string) Source {
	t.Helper()
	gpu.Use(t)
	return Source{Title: "kernel test", Text: text, File: "test.lua", Line: 10}
}

// TestDevice checks that sums by GPU kernels equal those in Go, for arrays of both kinds that a GPU can access.
func TestDevice(t *testing.T) {
	cacheHere(t)
	random := rand.New(rand.NewPCG(1, 2))
	const blocks, threads = 64, 256
	values, sums, total := make([]float64, blocks*threads), make([]float64, blocks), 0.0
	for i := range values {
		values[i] = float64(random.IntN(2001) - 1000)
		sums[i/threads] += values[i]
		total += values[i]
	}
	for _, kind := range []string{"device", "host_pinned"} {
		k := build(t, onDevice(t, reduce))
		out := array(t, kind, "int32", 0, make([]float64, 1+blocks)...)
		in := array(t, kind, "int32", 0, values...)
		launch(t, k, blocks, threads, in, out)
		launch(t, k, blocks, threads, in, out)
		for i, want := range append([]float64{2 * total}, sums...) {
			if got, _ := out.Get(i); got != int64(want) {
				t.Errorf("%s: element %d is %v, want %v", kind, i, got, want)
			}
		}
	}
	k := build(t, onDevice(t, scale))
	in, out := array(t, "device", "fp32", 0, 1, 2, 3, 4, 5), array(t, "device", "fp32", 0, 9, 9, 9, 9, 9)
	launch(t, k, 2, 2, in, out, 0.5, 3.0)
	s, err := out.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.5, 1, 1.5, 9, 9} {
		if got, _ := s.Get(i); got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

// TestDeviceCache checks that PTX is cached by source and compiler, that cached PTX is used, and that PTX sources need no NVRTC.
func TestDeviceCache(t *testing.T) {
	dir := cacheHere(t) + "/daqiri-run/kernels"
	build(t, onDevice(t, scale))
	build(t, onDevice(t, scale))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".ptx") {
		t.Fatalf("the folder has %v %v", files, err)
	}
	path := dir + "/" + files[0].Name()
	text, _ := os.ReadFile(path)
	ptx := onDevice(t, string(text))
	ptx.PTX = true
	k := build(t, ptx)
	if len(k.Params) != 4 || k.Params[2].Class != Float || k.Params[3].Bytes != 4 {
		t.Errorf("parameters of PTX: %v", k.Params)
	}
	in, out := array(t, "device", "fp32", 0, 1, 2), array(t, "device", "fp32", 0, 0, 0)
	launch(t, k, 1, 2, in, out, 3.0, 2.0)
	if sum, _ := out.Sum(); sum != 9.0 {
		t.Errorf("by PTX the sum is %v", sum)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), ".version", ".no", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(onDevice(t, scale)); err == nil {
		t.Error("what is kept was not used")
	}
}

func TestDeviceFaults(t *testing.T) {
	cacheHere(t)
	for _, c := range []struct{ name, text, entry, want string }{
		{"error", "__global__ void f(int *a)\n{\n    a[0] = b;\n}", "", "kernel test: its source doesn't compile:\n  test.lua:12: error: "},
		{"no kernel", "int f() { return 0; }", "", "its source has no kernel, a __global__ function"},
		{"misspelt", "__global__ void power() {}", "powr", "kernel test: "},
	} {
		s := onDevice(t, c.text)
		s.Entry = c.entry
		if _, err := Build(s); err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, native.ErrInvalid) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	s := onDevice(t, scale)
	s.GPU = 15
	if _, err := Build(s); err == nil || !strings.Contains(err.Error(), "kernel test: there is no GPU 15: this host has ") {
		t.Errorf("no such GPU: %v", err)
	}
	k := build(t, onDevice(t, scale))
	if _, err := NewLauncher(k, Grid{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{4096, 1, 1}}, nil); err == nil || !strings.Contains(err.Error(), "a block of 4096 threads, and it takes 1024 at most") {
		t.Errorf("a large block: %v", err)
	}
	if _, err := k.ArrayArg(0, array(t, "host", "fp32", 0, 1)); err == nil || !strings.Contains(err.Error(), "an array of kind host, which a GPU doesn't reach") {
		t.Errorf("an array of the host: %v", err)
	}
}

// inc adds a number to the elements: PTX written like that of a compiler other than NVRTC.
const inc = `
.version 7.0
.target sm_70
.address_size 64

.visible .entry inc(
	.param .u64 inc_param_0,
	.param .f32 inc_param_1
)
{
	.reg .f32 %f<3>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [inc_param_0];
	ld.param.f32 %f1, [inc_param_1];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 4;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.f32 %f2, [%rd4];
	add.f32 %f2, %f2, %f1;
	st.global.f32 [%rd4], %f2;
	ret;
}
`

// TestDevicePTX checks that PTX is passed to the driver unchanged. The stand-in, which cannot run it, reports that the entry is missing.
func TestDevicePTX(t *testing.T) {
	s := onDevice(t, inc)
	s.PTX = true
	k, err := Build(s)
	if strings.Contains(os.Getenv("DAQIRI_CUDA"), "libfake_cuda") {
		if err == nil || !strings.Contains(err.Error(), "kernel test: its PTX has no entry inc") {
			t.Errorf("on the stand-in: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	a := array(t, "device", "fp32", 0, 1, 2, 3, 4)
	launch(t, k, 1, 3, a, 0.5)
	for i, want := range []float64{1.5, 2.5, 3.5, 4} {
		if got, _ := a.Get(i); got != want {
			t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}
