package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
)

// TestGPUFaults: what goes wrong on a GPU has a name, ends the run in order and is accounted for. The GPU is the stand-in,
// whose faults it sets.
func TestGPUFaults(t *testing.T) {
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	balanced := "every packet is accounted for"
	cases := []struct {
		name, fault string
		exit        int
		want        []string
	}{
		{"works", "delay_us=100", 0, []string{balanced}},
		{"shares the host's memory", "integrated=1", 0, []string{"memory region blocks: device: GPU 0 (Fake GPU) shares the host's memory: its buffers lie there, pinned", balanced}},
		{"no driver", "", 4, []string{"memory region blocks: it needs a GPU's driver: /nowhere/libcuda.so: cannot open shared object file", "--memory host"}},
		{"no GPU", "gpus=0", 4, []string{"memory region blocks: it needs a GPU's driver: it knows of no GPU"}},
		{"too little memory", "mib=1", 4, []string{"memory region blocks: it takes 2 MiB, and GPU 0 (Fake GPU) has 1 MiB of 1 free"}},
		{"a kernel traps", "trap=5", 4, []string{"error: stage blocks: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", "device_lost", balanced}},
		{"a launch fails", "fail=3", 4, []string{"stage blocks: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED", balanced}},
		{"a kernel never ends", "hang=3", 4, []string{" did not end: for 5 s its device took nothing", ".stopped: ", balanced}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			driver := lib
			if c.fault == "" {
				driver = "/nowhere/libcuda.so"
			}
			cmd := exec.Command(built(t), filepath.Join(rootDir, "scripts/gpu_reorder.lua"), "--memory", "gpu", "--clock", "real", "--loss", "0", "--packets", "20000")
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
