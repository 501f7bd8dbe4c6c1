package gpunetio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

var gnFlat = regexp.MustCompile(`(?s)^warm\t(\d+)\n.*end\t(\d+)\nhanded over\t(\d+)\treceived\t(\d+)\trefused\t0\n$`)

// TestGnFlat: after descriptors without number (frames, copies, file writes, packets received) a program has no more memory
// than it had when it was warm, but for what Go's collector leaves for a while. An operation that is not released would be
// some 25 MB. DAQIRI_GN_DESCRIPTORS has more of them than CI.
func TestGnFlat(t *testing.T) {
	count := os.Getenv("DAQIRI_GN_DESCRIPTORS")
	if count == "" {
		count = "4000000"
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/null", filepath.Join(dir, "flat.raw")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), "--summary", "none", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_flat.lua"), "--dir", dir, "--count", count)
	cmd.Env = append(os.Environ(), "GOGC=10") // a collection for each 2 MB: its ballast has 16
	out, err := cmd.CombinedOutput()
	m := gnFlat.FindStringSubmatch(string(out))
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var n [4]int
	for k := range n {
		n[k], _ = strconv.Atoi(m[k+1])
	}
	said := fmt.Sprintf("%d KiB when warm, %d KiB after %d descriptors, of %d packets received", n[0], n[1], n[2], n[3])
	if n[1] > n[0]+harness.FlatMost || n[3] == 0 {
		t.Error(said)
	}
	t.Log(said)
}
