package gpunetio

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// scribed is what testdata/gn_file.lua writes as record n, of so many bytes.
func scribed(n, size int) []byte {
	b := make([]byte, size)
	for k := range b {
		b[k] = byte(n*37 + k*11 + k>>8)
	}
	return b
}

// TestGnFile: what a kernel writes is in the files byte by byte; a writer that there isn't, bytes past a region and a disk
// without room fail their tickets alone, and are in the ledger.
func TestGnFile(t *testing.T) {
	const records = 400
	var want [2][]byte
	for n := range records {
		want[n%2] = append(want[n%2], scribed(n, 1+n*7919%3000)...)
	}
	whole := scribed(5, 1<<20)
	whole = append(whole, whole[0])
	for _, args := range [][]string{{}, {"--mode", "direct"}, {"--memory", "gpu"}, {"--memory", "gpu", "--kind", "device"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink("/dev/full", filepath.Join(dir, "full.raw")); err != nil {
				t.Fatal(err)
			}
			out, code := harness.OnGPU(t, "", "--summary", append([]string{"full", filepath.Join(tree.Root, "tests/gpunetio/testdata/gn_file.lua"), "--dir", dir}, args...)...)
			for _, says := range []string{"said\t400\t0\t5\t5\t5\t5\t0\n", "ring\t406\t403\t3\t0\t4\ttrue\n", "files\t200\t200\t2\t1\t0\t1\n", harness.Balanced,
				"full.write_error: 1 ", "scribe.tx.bad_descriptor: 2 ", "scribe.tx.outside_region: 1 ", "full.raw: no space left on device"} {
				if !strings.Contains(out, says) {
					t.Errorf("exit code %d, %q is missing:\n%s", code, says, out)
				}
			}
			for name, bytesOf := range map[string][]byte{"even": want[0], "odd": want[1], "whole": whole} {
				if got, err := os.ReadFile(filepath.Join(dir, name+".raw")); err != nil || !bytes.Equal(got, bytesOf) {
					t.Errorf("%s: %d bytes, not the %d that were written: %v", name, len(got), len(bytesOf), err)
				}
			}
		})
	}
}
