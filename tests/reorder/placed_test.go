package reorder

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestPlacedBench runs the benchmark of reordering with a network card's ring, which software emulates: of 40 batches of 64 packets, five times around
// the ring, every hundredth packet is not sent.
func TestPlacedBench(t *testing.T) {
	t.Parallel()
	script := filepath.Join(tree.Root, "scripts/loop/reorder_bench.lua")
	out, err := exec.Command(harness.Built(t), "--engine", "loop", script, "--config", filepath.Join(tree.Root, "scripts/loop/reorder_bench_hw.yaml"),
		"--batches", "40", "--seconds", "60").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"reordered_batches\t40\n", "direct_placed_batches\t40\n", "received_packets\t2535\n", "missing_packets\t25\n",
		"wrong slots\t0\n", harness.Balanced} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
