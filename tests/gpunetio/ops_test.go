package gpunetio

import (
	"path/filepath"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestGnDocaOps: entries prepared by hand under DOCA's names do what they say: two segments, inline bytes, compare-and-swap, a wait for another queue
// pair; a counter does not move for an operation that failed.
func TestGnDocaOps(t *testing.T) {
	out, code := harness.OnGPU(t, "", "--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_doca_ops.lua"))
	if want := "operations\tok\nfailing\tok\n"; code != 0 || out != want {
		t.Errorf("exit code %d:\n%swant:\n%s", code, out, want)
	}
}

// TestGnDocaImm: immediate values, sent in each way that DOCA's names have, reach another kernel by completions and by the library, and a script, each
// with its bytes; over a socket, which carries none, the operations fail.
func TestGnDocaImm(t *testing.T) {
	out, code := harness.OnGPU(t, "", "--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_doca_imm.lua"))
	want := "by_completion sender\tok\nby_completion\tok\nby_completion received\t281\nby_waiting sender\tok\nby_waiting\tok\nby_waiting received\t281\n" +
		"script sender\tok\nscript\t280\t0\t1\nformatted sender\tok\nformatted\t280\t0\t1\nsocket\tok\nan immediate value that the queue's engine does not carry\n"
	if code != 0 || out != want {
		t.Errorf("exit code %d:\n%swant:\n%s", code, out, want)
	}
}

// TestGnMLX5: queue pairs in mlx5's format: entries, doorbell record and completion entries by hand, over several passes; the functions of DOCA's names, by
// many threads; an entry in error has its syndrome, and later ones are flushed; a restarted kernel has an
// empty queue.
func TestGnMLX5(t *testing.T) {
	out, code := harness.OnGPU(t, "", "--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_mlx5.lua"))
	if want := "by_hand\tok\nby_name\tok\ninvalid\tok\nagain\tok\nruns\t3\n"; code != 0 || out != want {
		t.Errorf("exit code %d:\n%swant:\n%s", code, out, want)
	}
}
