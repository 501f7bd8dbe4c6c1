package gpu_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// gpuFault is an injected fault of the stand-in, how the run ends, and what it reports.
type gpuFault struct {
	name, fault string
	exit        int
	want        []string
	args        []string // for the script, behind those of all cases
}

// TestGPUFaults: what goes wrong on a GPU has a name, ends the run in order and is accounted for. The GPU is the stand-in,
// whose errors it sets.
func TestGPUFaults(t *testing.T) {
	cases := []gpuFault{
		{"works", "delay_us=100", 0, []string{harness.Balanced}, nil},
		{"shares the host's memory", "integrated=1", 0, []string{"memory region blocks: device: GPU 0 (Fake GPU) shares the host's memory: its buffers lie there, pinned", harness.Balanced}, nil},
		{"no driver", "", 4, []string{"memory region blocks: it needs a GPU's driver: /nowhere/libcuda.so: cannot open shared object file", "--memory host"}, nil},
		{"no GPU", "gpus=0", 4, []string{"memory region blocks: it needs a GPU's driver: it knows of no GPU"}, nil},
		{"too old a driver", "version=11060", 4, []string{"memory region blocks: it needs a GPU's driver: ", ".so is of CUDA 11.6: 11.7 or later is needed"}, nil},
		{"too old a GPU", "major=7", 4, []string{"memory region blocks: GPU 0 (Fake GPU) has compute capability 7.0: the program's kernels need 8.0 or later"}, nil},
		{"too little memory", "mib=1", 4, []string{"memory region blocks: it takes 2 MiB, and GPU 0 (Fake GPU) has 1 MiB of 1 free"}, nil},
		{"a kernel traps", "trap=5", 4, []string{"error: stage blocks: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", "device_lost", harness.Balanced}, nil},
		{"a launch fails", "fail=3", 4, []string{"stage blocks: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED", harness.Balanced}, nil},
		{"a kernel never ends", "hang=3", 4, []string{" did not end: for 5 s its device took nothing", ".stopped: ", harness.Balanced}, nil},
	}
	endAsTold(t, cases, filepath.Join(tree.Root, "scripts/gpu/gpu_reorder.lua"), "--memory", "gpu", "--clock", "real", "--loss", "0", "--packets", "20000")
}

// TestGPUMissing: a region names a GPU that this host doesn't have.
func TestGPUMissing(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tree.Root, "scripts/gpu/gpu_reorder.lua"))
	if err != nil {
		t.Fatal(err)
	}
	const here, there = `kind = "device", affinity = 0`, `kind = "device", affinity = 3`
	script := filepath.Join(t.TempDir(), "there.lua")
	if err := os.WriteFile(script, []byte(strings.Replace(string(text), here, there, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	endAsTold(t, []gpuFault{{"no such GPU", "gpus=2", 4, []string{"memory region blocks: there is no GPU 3: this host has 2, numbered from 0"}, nil}},
		script, "--memory", "gpu")
}

// TestGPUInspect: a plan with memory for GPUs reports what the driver and the machine say of them, as doctor does.
func TestGPUInspect(t *testing.T) {
	config := filepath.Join(t.TempDir(), "gpu.yaml")
	text := "version: 1\nstream_type: raw\nmaster_core: 0\nmemory_regions:\n- {name: there, kind: device, affinity: 0, num_bufs: 64, buf_size: 2048}\n" +
		"interfaces:\n- name: a\n  address: loop0\n  rx:\n    queues:\n    - {name: rx, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [there]}\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var plan struct {
		GPUs struct {
			Driver string
			GPUs   []struct{ Name string }
		}
		Machine []struct{ Row, Of, State, Found string } `json:"gpu_machine"`
	}
	cmd, _ := onStandIn(t, harness.Built(t), "gpus=2,mib=512", "inspect", config)
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &plan) != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if plan.GPUs.Driver != "12.4" || len(plan.GPUs.GPUs) != 2 {
		t.Errorf("%+v", plan.GPUs)
	}
	var output []string
	for _, f := range plan.Machine {
		output = append(output, f.Row+", "+f.Of+": "+f.State+": "+f.Found)
	}
	for _, want := range []string{"GPU driver, GPU 1: pass: Fake GPU at 0000:11:00.0, compute capability 8.0, 512 MiB; driver of CUDA 12.4", "GPU storage, "} {
		if !strings.Contains(strings.Join(output, "\n"), want) {
			t.Errorf("no %q in:\n%s", want, strings.Join(output, "\n"))
		}
	}
}

// copies has packets copied into a GPU's memory and back.
const copies = `
local daqiri = require "daqiri"
local args = daqiri.args{ seconds = 5 }
local function queue(name) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { "host" } } end
local function region(name, kind, n) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = 2048 } end
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "real" },
  memory_regions = { region("host", "host_pinned", 4096), region("gpu", "device", 4096), region("back", "host_pinned", 4096) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue "tx" } } }, { name = "b", address = "b", rx = { queues = { queue "rx" } } } } }
local there = s:copy{ name = "there", memory_region = "gpu", policy = "wait" }
local back = s:copy{ name = "back", memory_region = "back", policy = "wait" }
s:pipe(s:rx_queue("b"), there)
s:pipe(there, back)
local n, wrong = 0, 0
back:on_burst(function(b)
  for i = 1, b.n do n = n + 1; if b:packet(i):u32(42) ~= 7 then wrong = wrong + 1 end end
  if n == 20000 then s:stop("all came") end
end, { policy = "wait" })
local tx = s:tx_queue("a")
tx:transmit{ template = tx:template{ udp_dst = 7148, payload = "\0\0\0\7" .. ("x"):rep(1000) }, count = 20000 }
s:run{ seconds = args.seconds }
print(n, wrong)
`

// TestGPUCopyFaults: the same of copies.
func TestGPUCopyFaults(t *testing.T) {
	script := filepath.Join(t.TempDir(), "copies.lua")
	if err := os.WriteFile(script, []byte(copies), 0o644); err != nil {
		t.Fatal(err)
	}
	endAsTold(t, []gpuFault{
		{"works", "delay_us=50", 0, []string{"20000	0", harness.Balanced}, []string{"--seconds", "120"}}, // a busy machine is slow
		{"a kernel traps", "trap=5", 4, []string{"GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", "error: stage ", "device_lost", harness.Balanced}, nil},
		{"a launch fails", "fail=3", 4, []string{"GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED", "error: stage ", "device_lost", harness.Balanced}, nil},
		{"a kernel never ends", "hang=3", 4, []string{" did not end: for 5 s its device took nothing", ".stopped: ", harness.Balanced}, nil},
	}, script)
}

// endAsTold runs a script with each error.
func endAsTold(t *testing.T, cases []gpuFault, args ...string) {
	t.Helper()
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			driver := lib
			if c.fault == "" {
				driver = "/nowhere/libcuda.so"
			}
			cmd := exec.Command(harness.Built(t), slices.Concat([]string{"--summary", "full"}, args, c.args)...)
			cmd.Env = append(os.Environ(), "DAQIRI_CUDA="+driver, "DAQIRI_FAKE_CUDA="+c.fault)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.exit {
				t.Errorf("exit code %d, want %d", code, c.exit)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q", want)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// TestGPUKernel: the shipped script gives on a GPU what it gives on the host.
func TestGPUKernel(t *testing.T) {
	want := tree.Read(t, "scripts/gpu/gpu_kernel.golden")
	for _, fault := range []string{"", "delay_us=50"} {
		out, code := harness.OnGPU(t, fault, filepath.Join(tree.Root, "scripts/gpu/gpu_kernel.lua"), "--memory", "gpu")
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%q: exit code %d, want %q:\n%s", fault, code, want, out)
		}
	}
}

// TestGPUKernelFaults: what goes wrong with a user's kernel is reported by its name, and ends within seconds.
func TestGPUKernelFaults(t *testing.T) {
	const head = `local daqiri = require "daqiri"
local a = daqiri.array{ kind = "device", type = "fp32", shape = 4 }
`
	const one = head + `local k = daqiri.kernel{ grid = 1, block = 4, src = [[
__global__ void bad(float *a, unsigned long long far) { a[threadIdx.x + far] = 1; }
]] }
`
	cases := []struct {
		name, fault, text string
		want              []string
	}{
		{"works", "", one + `local op = assert(k:launch(a, 0)); assert(op:wait{ timeout = 5 } and not op.error); print(a:sum())`, []string{"4\n"}},
		{"lines", "", head + "-- three\n" + `local k = daqiri.kernel{ grid = 1, block = 1, src = [[
__global__ void bad(float *a)
{
    a[0] = nothing;
}]] }`, []string{"script.lua:7: error: 'nothing' was not declared in this scope", "script.lua:4: kernel bad: its source doesn't compile:"}},
		{"an entry that is none", "", head + `daqiri.kernel{ grid = 1, block = 1, entry = "god", src = "__global__ void good() {}" }`,
			[]string{"kernel god", "error"}},
		{"no NVRTC", "env DAQIRI_NVRTC=/nowhere/libnvrtc.so", one, []string{"kernel bad: its source needs NVRTC: /nowhere/libnvrtc.so was not found", "a kernel with ptx = ... needs none"}},
		{"no NVRTC, PTX", "env DAQIRI_NVRTC=/nowhere/libnvrtc.so", head + `local ok, err = pcall(daqiri.kernel, { grid = 1, block = 1, entry = "k", ptx = ".version 8.0\n.visible .entry k(.param .u64 k_param_0)\n{ ret; }" })
print(err)`, []string{"kernel k: its PTX has no entry k"}}, // by the driver: the stand-in has no code for it
		{"PTX without the entry", "", head + `print(pcall(daqiri.kernel, { grid = 1, block = 1, entry = "k", ptx = ".version 8.0\n.visible .entry j()\n{ ret; }" }))`,
			[]string{"kernel k: its PTX has no kernel 'k'; it has j"}},
		{"no driver", "env DAQIRI_CUDA=/nowhere/libcuda.so", one, []string{"array of 4 fp32 (device): it needs a GPU's driver: /nowhere/libcuda.so"}},
		{"no such GPU", "", `require("daqiri").array{ kind = "device", gpu = 3, type = "fp32", shape = 4 }`, []string{"array of 4 fp32 (device): there is no GPU 3: this host has 1"}},
		{"a GPU by its address", "gpus=2", head + `for _, at in ipairs{ "11:00.0", "0000:10:00.0", "00000000:11:00.0", "8a:00.0", "first" } do
print(at, pcall(daqiri.array, { kind = "device", gpu = at, type = "fp32", shape = 4 })) end
daqiri.array{ kind = "device", gpu = "11:00.0", type = "fp32", shape = { 1024, 1024, 1024 } }`, []string{"11:00.0\ttrue", "0000:10:00.0\ttrue", "00000000:11:00.0\ttrue",
			"option 'gpu': no GPU is at 8a:00.0: this host has 0000:10:00.0, 0000:11:00.0", "option 'gpu': \"first\" is not a PCI address such as 8A:00.0", "and GPU 1 (Fake GPU) has"}},
		{"too little memory", "mib=8", `require("daqiri").array{ kind = "device", type = "fp32", shape = { 4, 1024, 1024 } }`,
			[]string{"array of 4 x 1024 x 1024 fp32 (device): it takes 16 MiB, and GPU 0 (Fake GPU) has 8 MiB of 8 free"}},
		{"array of the host", "", one + `print(pcall(k.launch, k, daqiri.array{ kind = "host", type = "fp32", shape = 4 }, 0))`,
			[]string{"kernel bad: argument 1 (float *a): an array of kind host, which a GPU doesn't reach; hint: kind = \"host_pinned\" or \"device\""}},
		{"out of bounds", "", one + `local op = assert(k:launch(a, 2^40)); print(op:wait{ timeout = 5 }, op.error); print(pcall(a.sum, a)); print(pcall(k.launch, k, a, 0))`,
			[]string{"true\tkernel bad: GPU 0 (Fake GPU): CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", "false\tarray of 4 fp32 (device): cuMemcpyDtoHAsync: CUDA_ERROR_ILLEGAL_ADDRESS",
				"false\tkernel bad: GPU 0 (Fake GPU): CUDA_ERROR_ILLEGAL_ADDRESS"}},
		{"a kernel traps", "trap=1", one + `local op = assert(k:launch(a, 0)); op:on_done(function(o) print("done", o.error) end); op:wait{ timeout = 5 }`,
			[]string{"done\tkernel bad: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"}},
		{"a launch fails", "fail=1", one + `print(pcall(k.launch, k, a, 0))`, []string{"kernel bad: GPU 0 (Fake GPU): cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED"}},
		{"a launch after the GPU was lost", "fail=1", one + `local two = daqiri.kernel{ grid = 1, block = 4, src = "__global__ void two(float *a) {}" }
print(pcall(k.launch, k, a, 0)); for i = 1, 8 do print(pcall(two.launch, two, a)) end; print("ended")`, []string{"kernel two: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED", "was lost earlier", "ended"}},
		{"a kernel never ends", "hang=1", one + `local op = assert(k:launch(a, 0)); print(op:wait{ timeout = 0.2 })`, []string{"nil\tNOT_READY"}},
		{"too many at once", "hang=1", one + `for i = 1, 70 do local op, status = k:launch(a, 0); if not op then print(i, status) break end end`, []string{"65\tNOT_READY"}},
		{"a stream", "", one + `local st = daqiri.stream()
local two = daqiri.kernel{ stream = st, grid = 1, block = 4, src = "__global__ void two(float *a) { a[threadIdx.x] += 2; }" }
local three = daqiri.kernel{ stream = st, grid = 1, block = 4, src = "__global__ void three(float *a) { a[threadIdx.x] *= 3; }" }
for i = 1, 5 do two:launch(a) three:launch(a) end
st:synchronize(); print(a:get(4))`, []string{"726\n"}}, // 2*3 + 2*9 + … + 2*243
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "script.lua")
			if err := os.WriteFile(script, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			out, _ := harness.OnGPU(t, c.fault, script)
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q", want)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// TestGPUKernelHeld: a launch that never ends holds its burst, the session ends all the same, with the exit code of a device.
func TestGPUKernelHeld(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.lua")
	text := `local daqiri = require "daqiri"
local s = daqiri.open()
local tx, rx = s:tx_queue("loop0"), s:rx_queue("loop0")
local k = daqiri.kernel{ grid = 1, block = 1, src = "__global__ void see(const daqiri_burst *b) {}" }
s:start()
tx:send(tx:alloc(1):fill(tx:template{ payload = "x" }))
local b = assert(rx:get_burst{ timeout_us = 1e6 })
assert(k:launch(b))
b:free()
`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := harness.OnGPU(t, "hang=1", script)
	if code != 4 || !strings.Contains(out, "kernel see did not end") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if out, code = harness.OnGPU(t, "", script); code != 0 {
		t.Errorf("without a fault exit code %d:\n%s", code, out)
	}
}
