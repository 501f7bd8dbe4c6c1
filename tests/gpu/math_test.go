package gpu_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// mathHead has arrays by name: small whole numbers that have no symmetry.
const mathHead = `local daqiri = require "daqiri"
local function array(n, from)
  local a = daqiri.array{ kind = "device", type = "fp32", shape = n }
  local values = {}
  for k = 0, n - 1 do values[k + 1] = from(k) end
  a:set(values)
  return a
end
local function print_all(a) print(daqiri.json(a:get())) end
`

// TestGPUMath: cuBLAS's product and cuFFT's transforms are what they are by their definitions, which are reckoned here: the
// order of rows, columns and real parts, and all transforms.
func TestGPUMath(t *testing.T) {
	const rows, columns, inner, points, transforms = 3, 5, 4, 12, 2
	a := func(k int) float64 { return float64(k*k%11 - 3) }
	var product, spectrum []float64
	for r := range rows {
		for c := range columns {
			sum := 0.0
			for i := range inner {
				sum += a(r*inner+i) * a(100+i*columns+c)
			}
			product = append(product, sum)
		}
	}
	for n := range transforms {
		for k := range points {
			var re, im float64
			for i := range points {
				x, y, at := a(2*(n*points+i)), a(2*(n*points+i)+1), -2*math.Pi*float64(i*k)/points
				re += x*math.Cos(at) - y*math.Sin(at)
				im += x*math.Sin(at) + y*math.Cos(at)
			}
			spectrum = append(spectrum, re, im)
		}
	}
	text := mathHead + fmt.Sprintf(`
local function a(k) return k * k %% 11 - 3 end
local out = array(%d, function() return 77 end)
local gemm = daqiri.kernel{ library = "gemm", shape = { %d, %d, %d } }
local op = assert(gemm:launch(array(%d, a), array(%d, function(k) return a(100 + k) end), out))
assert(op:wait{ timeout = 5 } and not op.error, op.error)
print_all(out)
local spectrum = array(%d, function() return 77 end)
local fft = daqiri.kernel{ library = "fft", name = "spectrum", shape = { %d, %d } }
assert(fft.name == "spectrum" and gemm.name == "gemm")
op = assert(fft:launch(array(%[7]d, a), spectrum))
assert(op:wait{ timeout = 5 } and not op.error, op.error)
print_all(spectrum)
`, rows*columns, rows, columns, inner, rows*inner, inner*columns, 2*points*transforms, points, transforms)
	out, code := harness.OnGPU(t, "", harness.WriteScript(t, text))
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) < 2 {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	for i, want := range [][]float64{product, spectrum} {
		var got []float64
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || len(got) != len(want) {
			t.Fatalf("%v in %s", err, lines[i])
		}
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-4 {
				t.Errorf("result %d, number %d is %g, want %g", i, k, got[k], want[k])
			}
		}
	}
}

// TestGPUMathFaults: what is missing or doesn't fit has a name.
func TestGPUMathFaults(t *testing.T) {
	const gemm = mathHead + `local k = daqiri.kernel{ library = "gemm", shape = { 4, 4, 4 } }
local a, b, short = array(16, math.abs), array(16, math.abs), array(15, math.abs)
`
	for name, c := range map[string]struct{ fault, text, want string }{
		"no cuBLAS": {"env DAQIRI_CUBLAS=/nowhere/libcublas.so", gemm,
			"kernel gemm: it needs NVIDIA's cuBLAS: /nowhere/libcublas.so was not found; hint: install package libcublas of CUDA's repository, or name its library in DAQIRI_CUBLAS"},
		"no cuFFT": {"env DAQIRI_CUFFT=libc.so.6", mathHead + `daqiri.kernel{ library = "fft", shape = { 8, 1 } }`,
			"kernel fft: it needs NVIDIA's cuFFT: libc.so.6 has no cufftExecC2C"},
		"another kernel": {"", mathHead + `daqiri.kernel{ library = "svd", shape = { 8, 1 } }`, "kernel svd: no library has it: those that are known are gemm, fft"},
		"another shape":  {"", mathHead + `daqiri.kernel{ library = "fft", shape = { 8 } }`, "kernel fft: shape is 2 whole numbers of 1 to 1048576 (points, transforms), got 8"},
		"a grid":         {"", mathHead + `daqiri.kernel{ library = "fft", shape = { 8, 1 }, grid = 4 }`, "option 'grid'"},
		"on the host":    {"", mathHead + `daqiri.kernel{ library = "fft", shape = { 8, 1 }, memory = "host" }`, "kernel fft: cuFFT runs on GPUs alone"},
		"too few arrays": {"", gemm + `k:launch(a, b)`, "kernel gemm: it takes 3 arguments (const float *a, const float *b, float *out), got 2"},
		"a small array":  {"", gemm + `k:launch(a, b, short)`, "kernel gemm: argument 3: it takes 64 bytes of an array or an aggregate's data, and has 60"},
		"a number":       {"", gemm + `k:launch(a, b, 7)`, "kernel gemm: argument 3 (float *out): it is a number, and the kernel takes a pointer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, _ := harness.OnGPU(t, c.fault, harness.WriteScript(t, c.text)); !strings.Contains(out, c.want) {
				t.Errorf("no %q in:\n%s", c.want, out)
			}
		})
	}
}
