package tests

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSharedRegion: what a stage leaves in the buffers of a transmit queue's region is not sent for the template.
func TestSharedRegion(t *testing.T) {
	t.Parallel()
	script := filepath.Join(rootDir, "tests/testdata/shared_region.lua")
	out, err := exec.Command("daqiri-run", script, "--at", freeAddress(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "of 2000: as sent\n") || !strings.Contains(string(out), balanced) {
		t.Errorf("%v\n%s", err, out)
	}
}
