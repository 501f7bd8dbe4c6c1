package gpu_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/tree"
)

const gpuSuiteMost = 48 << 20 // bytes

// TestGPUSuite: the file that `make gpu-suite` packs runs in an empty folder, on the stand-ins, where nothing fails, and ends with
// JSON; without a driver it fails.
func TestGPUSuite(t *testing.T) {
	if out, err := exec.Command("make", "-C", tree.Root, "gpu-suite").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := filepath.Abs(filepath.Join(tree.Root, "build/gpu-suite"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() > gpuSuiteMost {
		t.Fatalf("%v bytes, %v", info.Size(), err)
	}
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := gpu.Compiler()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		driver string
		exit   int
		want   map[string]string // of some steps
	}{
		"stand-in":  {lib, 0, map[string]string{"reorder model": "passed", "gpu_reorder virtual": "passed", "gpu_reorder real": "passed", "gpu_kernel virtual": "passed", "bench gpu_reorder": "passed"}},
		"no driver": {"/nowhere/libcuda.so", 1, map[string]string{"kernels": "skipped", "reorder model": "failed", "gpu_reorder virtual": "failed", "bench gpu_reorder": "skipped"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(file, "--short")
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "DAQIRI_CUDA="+c.driver, "DAQIRI_NVRTC="+compiler, "DAQIRI_FAKE_CUDA=mib=512", "TMPDIR="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir())
			out, err := cmd.Output()
			var report struct {
				Schema int
				Steps  []struct{ Name, Result, Output string }
			}
			if code := cmd.ProcessState.ExitCode(); code != c.exit || json.Unmarshal(out, &report) != nil || report.Schema != 1 {
				t.Fatalf("exit code %d, %v\n%s", code, err, out)
			}
			got := map[string]string{}
			for _, s := range report.Steps {
				got[s.Name] = s.Result
			}
			for name, want := range c.want {
				if got[name] != want {
					t.Errorf("%s: %s, want %s\n%s", name, got[name], want, out)
				}
			}
		})
	}
}
