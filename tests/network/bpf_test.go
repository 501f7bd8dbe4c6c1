package network

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestBPFObject: the committed eBPF object is what its source gives.
func TestBPFObject(t *testing.T) {
	harness.NeedClang14(t)
	dir := filepath.Join(tree.Root, "native/engine/xdp/bpf")
	want, err := os.ReadFile(filepath.Join(dir, "steer.bpf.o"))
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(t.TempDir(), "steer.bpf.o")
	build := exec.Command("./build.sh", built)
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("native/engine/xdp/bpf/steer.bpf.o is not what steer.bpf.c gives: make bpf")
	}
}
