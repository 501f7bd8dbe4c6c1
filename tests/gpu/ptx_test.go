package gpu_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestPTX: the committed modules of the GPU kernels are what their sources give.
func TestPTX(t *testing.T) {
	harness.NeedClang14(t)
	dir, built := filepath.Join(tree.Root, "native/kernels"), t.TempDir()
	build := exec.Command("./build.sh", built)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	modules, err := filepath.Glob(filepath.Join(built, "*.ptx"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("build.sh made no module: %v", err)
	}
	for _, module := range modules {
		got, err := os.ReadFile(module)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(module)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("native/kernels/%s is not what kernels.cu gives: make ptx", filepath.Base(module))
		}
	}
}
