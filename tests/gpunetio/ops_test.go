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
