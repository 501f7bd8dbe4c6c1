package reorder

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestSharedRegion: what a stage leaves in the buffers of a transmit queue's region is not sent for the template.
func TestSharedRegion(t *testing.T) {
	t.Parallel()
	script := filepath.Join(tree.Root, "tests/reorder/testdata/shared_region.lua")
	out, err := exec.Command(harness.Built(t), script, "--at", harness.FreeAddress(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "of 2000: as sent\n") || !strings.Contains(string(out), harness.Balanced) {
		t.Errorf("%v\n%s", err, out)
	}
}
