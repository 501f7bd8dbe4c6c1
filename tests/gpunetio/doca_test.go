package gpunetio

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestGnDocaSamples: kernels with the shapes of DOCA's public samples, by its names alone, do what their own criterion asks: bytes, previous values of
// signals and counters, round trips, as many packets received as sent.
func TestGnDocaSamples(t *testing.T) {
	out, code := harness.OnGPU(t, "", "--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_doca_samples.lua"))
	lines := 0
	for line := range strings.Lines(out) {
		if name, said, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			lines++
			if said != "ok" {
				t.Errorf("%s: %s", name, said)
			}
		}
	}
	if code != 0 || lines != 17 {
		t.Errorf("exit code %d, %d of 17 lines:\n%s", code, lines, out)
	}
}

// TestGnPeers: three kernels exchange messages through arrays of queue pairs, as libraries of collectives do: each message and counter is right, on the
// host and by the stand-ins of a GPU.
func TestGnPeers(t *testing.T) {
	want := "peer 1: true 20 0 0 40, 240 operations, 0 refused\t\npeer 2: true 20 0 0 40, 240 operations, 0 refused\t\npeer 3: true 20 0 0 40, 240 operations, 0 refused\t\n" +
		"a wait with a limit of its own ended\ttrue\n"
	for _, memory := range []string{"host", "gpu"} {
		out, code := harness.OnGPU(t, "", "--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_peers.lua"), "--memory", memory)
		if code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d, want %q:\n%s", memory, code, want, out)
		}
	}
}
