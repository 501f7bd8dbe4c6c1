package gpunetio

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestGnInspect: a configuration that asks for GPUNetIO is shown what of it is here, as in the document; another one isn't.
func TestGnInspect(t *testing.T) {
	const conf = `daqiri: {cfg: {version: 1, stream_type: raw, master_core: 0, loopback: {mode: sw},
  memory_regions: [{name: m, kind: host, affinity: 0, num_bufs: 64, buf_size: 64}],
  interfaces: [{name: a, address: loop0, tx: {queues: [{name: q, id: 0, cpu_core: 0, batch_size: 8, memory_regions: [m]MORE}]}}]}}
`
	document := tree.Read(t, "docs/gpunetio.md")
	for more, asks := range map[string]bool{"": false, ", gpunetio: {tx_kernel: persistent}": true} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(conf, "MORE", more, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(harness.Built(t), "inspect", file).Output()
		var plan struct {
			GPUNetIO []struct{ Name, State, Words string }
		}
		if err != nil || json.Unmarshal(out, &plan) != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if asks != (len(plan.GPUNetIO) > 0) {
			t.Errorf("%q: %d features", more, len(plan.GPUNetIO))
		}
		for _, f := range plan.GPUNetIO {
			if !strings.Contains(document, "| "+f.Name+" | "+f.State+" | "+f.Words+" |") {
				t.Errorf("docs/gpunetio.md: no row of %+v", f)
			}
		}
	}
}
