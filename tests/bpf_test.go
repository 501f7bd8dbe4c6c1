package tests

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/require"
)

// clangBPF is the compiler version that made the committed object and the GPU kernels; others make other bytes.
const clangBPF = "14"

// needClang14 skips t where there is no clang of the version that made what is committed.
func needClang14(t *testing.T) {
	t.Helper()
	need(t, "bpf")
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(version, []byte(" version "+clangBPF+".")) {
		require.Lack(t, "bpf", "this clang is not version "+clangBPF)
	}
}

// TestBPFObject: the committed eBPF object is what its source gives.
func TestBPFObject(t *testing.T) {
	needClang14(t)
	dir := filepath.Join(rootDir, "native/engine/xdp/bpf")
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
