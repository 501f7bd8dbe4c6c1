package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestOwnerOfGPUMemory runs owner.py: aggregates lie in GPU memory of a process in Python, which reads them there.
func TestOwnerOfGPUMemory(t *testing.T) {
	harness.Need(t, "numpy")
	python, err := harness.PythonWith("numpy")
	if err != nil {
		t.Fatal(err)
	}
	all, err := gpu.Variables()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join(tree.Root, "tests/gpu/owner.py"), harness.Built(t))
	cmd.Env = os.Environ()
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "right\n" {
		t.Errorf("%v: %s", err, out)
	}
}
