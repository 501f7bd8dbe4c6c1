package summary

import (
	"slices"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// TestPauseLimits checks who throttles whom in both directions of pause frames.
func TestPauseLimits(t *testing.T) {
	line := stats.Line{Name: "port", Kind: stats.Wire}
	if got := lossLimits(&line, 1); got != nil {
		t.Errorf("without pause frames: %q", got)
	}
	line.Extra = stats.Counts{{Name: "nic_pause_received", N: 1}, {Name: "nic_pause_sent", N: 2000}}
	want := []string{
		"the peer of port throttled it with 1 pause frame: what is sent can't be faster than the peer receives",
		"the device of port throttled its peer with 2,000 pause frames: the receive path was behind; give its queues a core of its own, or larger buffers",
	}
	if got := lossLimits(&line, 1); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
