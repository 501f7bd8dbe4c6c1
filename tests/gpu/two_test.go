package gpu_test

import (
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

const throughBoth = "2000 packets through two GPUs, 0 wrong\n"

// TestCopyBetweenGPUs: a copy moves packets from one GPU's memory into another's where the driver lets it; elsewhere the error names both GPUs and the way
// through pinned memory, which works. On a host with two GPUs the script runs by itself.
func TestCopyBetweenGPUs(t *testing.T) {
	endAsTold(t, []gpuFault{
		{"they reach each other", "gpus=2", 0, []string{throughBoth, harness.Balanced}, nil},
		{"they do not", "gpus=2,reach=0", 1, []string{"copy second: GPU 1 cannot access the memory of GPU 0, where region first lies: hint: two copies, with a region of kind host_pinned between them"}, nil},
		{"through the host", "gpus=2,reach=0", 0, []string{throughBoth, harness.Balanced}, []string{"--between"}},
	}, "testdata/two_gpus.lua")
}
