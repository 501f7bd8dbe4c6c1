package gpunetio

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/cunit"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// gnOrder builds the unit of the rules of order with the thread sanitizer and these flags.
func gnOrder(t *testing.T, flags ...string) (v cunit.Variant, program string) {
	t.Helper()
	v = cunit.Named("tsan").Ready(t)
	v.Flags = slices.Concat(v.Flags, flags)
	program = filepath.Join(t.TempDir(), "gn_order")
	sources := []string{"native/gpunetio/device/gn_check.c", "native/gpunetio/device/gn_context.c", "native/core/err.c"}
	for i, name := range sources {
		sources[i] = filepath.Join(tree.Root, name)
	}
	if err := v.Link(program, filepath.Join(tree.Root, "tests/native/gpunetio/device/gn_order_test.c"), sources); err != nil {
		t.Fatal(err)
	}
	return v, program
}

// gnRule finds the end of each rule of order in the header: its case.
var gnRule = regexp.MustCompile(`(?m)^// .*: (\w+)[;.]$`)

// TestGnOrder: each rule of order that gn_ring.h names has a case, which passes, and fails in a build where releases or
// acquires are left out.
func TestGnOrder(t *testing.T) {
	rules := gnRule.FindAllStringSubmatch(tree.Read(t, "native/gpunetio/device/gn_ring.h"), -1)
	if len(rules) != 6 {
		t.Fatalf("gn_ring.h has %d rules of order with a case, want 6", len(rules))
	}
	for _, b := range []struct {
		name, flag string
		passes     bool
	}{{"whole", "-DWHOLE", true}, {"without release", "-DGN_RELEASE=__ATOMIC_RELAXED", false}, {"without acquire", "-DGN_ACQUIRE=__ATOMIC_RELAXED", false}} {
		t.Run(b.name, func(t *testing.T) {
			v, program := gnOrder(t, b.flag)
			for _, rule := range rules {
				one := v
				one.Args = []string{rule[1]}
				out, err := one.Output(program)
				switch {
				case b.passes && err != nil || b.passes && !strings.Contains(out, "ok   "+rule[1]):
					t.Errorf("%s: %v\n%s", rule[1], err, out)
				case !b.passes && (err == nil || !strings.Contains(out, "data race")):
					t.Errorf("%s passes %s: %v\n%s", rule[1], b.name, err, out)
				}
			}
		})
	}
}

// gnHeaders are the headers that kernels include.
var gnHeaders = []string{"gn.h", "gn_base.h", "gn_ring.h", "gn_rx.h", "gn_sem.h", "gn_side.h", "gn_slot.h", "gn_tx.h"}

// TestGnDevice: clang makes PTX of all that kernels can call, without a warning, and the headers include nothing but
// each other.
func TestGnDevice(t *testing.T) {
	system := regexp.MustCompile(`(?m)^\s*#\s*include\s*<`)
	for _, name := range gnHeaders {
		text := tree.Read(t, "native/gpunetio/device/"+name)
		if system.MatchString(text) {
			t.Errorf("native/gpunetio/device/%s includes a header that NVRTC doesn't have", name)
		}
		if strings.Contains(text, "__asm__") {
			t.Errorf("native/gpunetio/device/%s has __asm__, and NVRTC knows asm alone", name)
		}
	}
	harness.NeedClang14(t)
	for _, source := range []string{"gn_calls.cu", "gn_doca.cu", "gn_doca_calls.cu"} {
		out := filepath.Join(t.TempDir(), source+".ptx")
		build := exec.Command("clang", "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "-Xclang", "-target-feature", "-Xclang", "+ptx75",
			"-nocudainc", "-nocudalib", "-std=c++20", "-O3", "-Wall", "-Wextra", "-Werror", "-I"+filepath.Join(tree.Root, "native"), "-I"+filepath.Join(tree.Root, "native/gpunetio/device"),
			"-I"+filepath.Join(tree.Root, "runtime/kernel/doca"), "-S", filepath.Join(tree.Root, "tests/gpunetio/testdata", source), "-o", out)
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, said)
		}
		ptx, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{".entry", "fence.acq_rel.sys", "ld.acquire.sys", "st.relaxed.sys", "atom.relaxed.gpu.cas"} {
			if !strings.Contains(string(ptx), want) {
				t.Errorf("%s: no %s in its PTX", source, want)
			}
		}
	}
}

// TestGnDoca: kernels with DOCA's names do what those names say: the proxy gets the descriptors, packets and items come
// and go back.
func TestGnDoca(t *testing.T) {
	dir := t.TempDir()
	program, include := filepath.Join(dir, "doca"), "-I"+filepath.Join(tree.Root, "native")
	var objects []string
	for _, name := range []string{"native/gpunetio/device/gn_check.c", "native/gpunetio/device/gn_context.c", "native/core/err.c"} {
		object := filepath.Join(dir, filepath.Base(name)+".o")
		objects = append(objects, object)
		if out, err := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", include, "-c", filepath.Join(tree.Root, name), "-o", object).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	args := append([]string{"-std=c++17", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", include, "-I" + filepath.Join(tree.Root, "runtime/kernel/doca"),
		"-o", program, filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_doca_host.cc")}, objects...)
	if out, err := exec.Command("g++", append(args, "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cunit.Timeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGnScripts: the shipped scripts give on a GPU, whose part the stand-ins play, what they give on the host.
func TestGnScripts(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(tree.Root, "scripts/gpunetio/gn_*.lua"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, script := range scripts {
		want := tree.Read(t, "scripts/gpunetio/"+strings.TrimSuffix(filepath.Base(script), ".lua")+".golden")
		args := []string{"--memory", "gpu"}
		if filepath.Base(script) == "gn_send_wait_time.lua" { // a kernel that begins late, on a busy machine, has nothing to wait for
			args = append(args, "--ahead", "1000")
		}
		out, code := harness.OnGPU(t, "", script, args...)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d, want %q:\n%s", filepath.Base(script), code, want, out)
		}
	}
}

// TestGnSampleOptions: the options of the samples' scripts do the same as their defaults: scopes, rings that the script polls, more rounds.
func TestGnSampleOptions(t *testing.T) {
	for _, c := range []struct{ script, args string }{
		{"gn_simple_send", "-p 1"}, {"gn_simple_send", "--scope warp"}, {"gn_simple_send", "--scope block"},
		{"gn_simple_receive", "--scope thread"}, {"gn_simple_receive", "--scope warp"},
		{"gn_verbs_put_bw", "-p 1 --scope warp"}, {"gn_verbs_get_bw", "-p 1 --scope warp"}, {"gn_verbs_put_signal_bw", "-p 1"}, {"gn_verbs_put_counter_bw", "-p 1"},
		{"gn_verbs_write_bw", "-p 1"}, {"gn_verbs_twosided_bw", "-p 1 --scope warp"},
		{"gn_verbs_write_lat", "-p 1"}, {"gn_verbs_put_signal_lat", "-p 1"}, {"gn_verbs_put_counter_lat", "-p 1"},
	} {
		out, err := exec.Command(harness.Built(t), append([]string{"--summary", "none", filepath.Join(tree.Root, "scripts/gpunetio", c.script+".lua")}, strings.Fields(c.args)...)...).Output()
		if want := tree.Read(t, "scripts/gpunetio/"+c.script+".golden"); err != nil || string(out) != want {
			t.Errorf("%s %s: %v, want %q:\n%s", c.script, c.args, err, want, out)
		}
	}
}

// TestGnPutBw: what the client puts arrives, whatever posts it and whatever moves the ring.
func TestGnPutBw(t *testing.T) {
	script := filepath.Join(tree.Root, "scripts/gpunetio/gn_put_bw.lua")
	for _, args := range [][]string{{"--scope", "warp"}, {"--proxy"}, {"--scope", "warp", "--proxy"}} {
		out, code := harness.OnGPU(t, "", script, append(args, "--memory", "gpu", "--bytes", "512", "--messages", "150")...)
		if code != 0 || !strings.Contains(out, "Validation successful! Data received correctly from client.\n") {
			t.Errorf("%q: exit code %d:\n%s", args, code, out)
		}
	}
}

// TestGnDark: a kernel in a process of its own reaches a region of its GPU; what the CPU can't reach is refused, with the descriptor's error, and nothing counts as moved.
func TestGnDark(t *testing.T) {
	out, code := harness.OnGPU(t, "", "--summary", "full", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_dark.lua"))
	want := "said\t5\t5\t0\t42\ta region that may not be read, written, or added to so\t2\n"
	if code != 0 || !strings.HasPrefix(out, want) || !strings.Contains(out, "copies of copier.tx, 1: ") {
		t.Errorf("exit code %d, want %q and the time of one copy:\n%s", code, want, out)
	}
}

// gnLived is what testdata/gn_faults.lua prints: of the kernel that fails, of the one beside it ("others", "sent", "out"), and of the program's work
// behind it ("after").
type gnLived struct {
	Restarted, Held, Stopped, Sent, Failed, Completed, Others, Out, BadOut, Worked, After int
	ReplacedMs                                                                            float64
	Fault                                                                                 string
}

// TestGnFaults: a kernel that fails is killed and restarted, or its ring broken; what it held is released, the kernel beside it loses
// nothing, the program's own work where it ran continues, and the ledger adds up.
func TestGnFaults(t *testing.T) {
	const illegal = "GPU 0 (Fake GPU): CUDA_ERROR_ILLEGAL_ADDRESS"
	for _, c := range []struct{ fault, memory, says string }{
		{"trap", "host", "died of signal 11 (Segmentation fault)"},
		{"trap", "device", illegal},
		{"outside", "host", "died of signal 11 (Segmentation fault)"},
		{"outside", "device", illegal},
		{"never", "host", "its worker was killed: it did not respond for 0.5 s"},
		{"never", "device", "its worker was killed: it did not respond for 0.5 s"},
		{"aborts", "host", "died of signal 6 (Aborted)"},
		{"aborts", "device", "died of signal 6 (Aborted)"},
		{"leaves", "host", ""},
		{"leaves", "device", ""},
	} {
		t.Run(c.fault+" "+c.memory, func(t *testing.T) {
			out, code := harness.OnGPU(t, "", "--summary", "full", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_faults.lua"), "--fault", c.fault, "--memory", c.memory)
			var got gnLived
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "{") {
					if err := json.Unmarshal([]byte(strings.ReplaceAll(line, "_", "")), &got); err != nil {
						t.Fatal(err)
					}
				}
			}
			if code != 0 || !strings.Contains(out, harness.Balanced) {
				t.Fatalf("exit code %d:\n%s", code, out)
			}
			if got.Others != 0 || got.Failed != 0 || got.Sent == 0 || got.Sent != got.Completed || got.Sent != got.Out || got.Held != 0 || got.After != 7 {
				t.Errorf("the other kernel: %+v", got)
			}
			if c.says == "" {
				if got.Restarted != 0 || !strings.Contains(got.Fault, "did not come in time") || got.BadOut != 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Restarted < 1 || got.Worked != 1 || got.BadOut < 1 || got.Stopped < 1 || !strings.Contains(out, "kernel faulty was restarted: ") ||
				!strings.Contains(out, c.says) {
				t.Errorf("%+v:\n%s", got, out)
			}
			t.Logf("replaced %.1f ms after its fault", got.ReplacedMs)
		})
	}
}

// TestGnFaultEnds: a kernel that may not be restarted ends the script that waits for it, as a device does.
func TestGnFaultEnds(t *testing.T) {
	for _, c := range []struct{ fault, memory, driver, says string }{
		{"trap", "host", "", "its worker died of signal 11"},
		{"never", "host", "", "its worker was killed: it did not respond"},
		{"trap", "device", "trap=1", "GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED"}, // in each worker, not in the program
		{"never", "device", "hang=1", "its worker was killed: it did not respond"},
	} {
		out, code := harness.OnGPU(t, c.driver, filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_faults.lua"), "--fault", c.fault, "--memory", c.memory, "--restarts", "0")
		if code != 4 || !strings.Contains(out, "error: kernel faulty: "+c.says) || !strings.Contains(out, harness.Balanced) {
			t.Errorf("%+v: exit code %d:\n%s", c, code, out)
		}
	}
}

// TestGnProcess: a kernel on a GPU has a process of its own where the program has nothing else to do there; else the report shows that it does not. One that
// can't be started there has the reason in the error.
func TestGnProcess(t *testing.T) {
	for script, apart := range map[string]bool{"gn_simple_receive": true, "gn_verbs_write_lat": false} {
		out, code := harness.OnGPU(t, "", "--summary", "full", filepath.Join(tree.Root, "scripts/gpunetio", script+".lua"), "--memory", "gpu")
		if says := strings.Contains(out, "runs in the program's own process, as other kernels or stages of it work on GPU 0"); code != 0 || says == apart {
			t.Errorf("%s: exit code %d:\n%s", script, code, out)
		}
	}
	out, code := harness.OnGPU(t, "fail=1", filepath.Join(tree.Root, "scripts/gpunetio/gn_simple_receive.lua"), "--memory", "gpu")
	if want := "kernel receive: a process of its own can't be started: its worker: cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED"; code == 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, want %q:\n%s", code, want, out)
	}
}
