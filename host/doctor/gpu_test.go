package doctor

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/host/machine"
	"github.com/daqiri/daqiri-run/runtime/session/preflight"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// TestGPURows checks GPU findings against the driver's and the machine's data: without DMA-BUF the kernel module is required, and cores on
// another node are reported.
func TestGPURows(t *testing.T) {
	const here = `{"driver": "12.8", "gpus": [{"number": 0, "name": "Big", "bus": "0000:02:00.0", "compute_capability": "9.0", "bytes": 1073741824, `
	for _, c := range []struct {
		name, plan, row, found string
		state                  State
		files                  map[string]string
	}{
		{"driver", here + `"numa_node": 0, "dma_buf": true}]}`, "GPU driver", "GPU 0: Big at 0000:02:00.0, compute capability 9.0, 1 GiB; driver of CUDA 12.8", Pass, nil},
		{"no driver", "", "GPU driver", "no libcuda here", Fail, nil},
		{"DMA-BUF", here + `"numa_node": 0, "dma_buf": true}]}`, "GPU peer memory", "by DMA-BUF", Pass, map[string]string{"sys/module/nvidia_peermem/refcnt": ""}},
		{"a module", here + `"numa_node": 0}]}`, "GPU peer memory", "nvidia_peermem is loaded", Pass, nil},
		{"near cores", here + `"numa_node": 1}]}`, "GPU and cores", "GPU 0: core 2 is on node 0, the GPU on node 1", Fail, nil},
		{"node", here + `"numa_node": 0}]}`, "GPU and cores", "GPU 0: node 0, cores 0,2", Pass, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			lay(t, root, good())
			cfg, _, err := spec.ParseText("x.yaml", config, spec.Options{})
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Machine: machine.At(root), Config: cfg, Dirs: []string{root}, GPUs: func() (*preflight.GPUPlan, error) {
				plan := &preflight.GPUPlan{}
				if c.plan == "" {
					return plan, errors.New("no libcuda here")
				}
				return plan, json.Unmarshal([]byte(c.plan), plan)
			}}
			var output []string
			for _, f := range GPUs(o) {
				text := strings.TrimPrefix(f.Of+": "+f.Found, ": ")
				output = append(output, f.Row+": "+string(f.State)+": "+text)
				if f.Row == c.row && f.State == c.state && strings.Contains(text, c.found) {
					return
				}
			}
			t.Errorf("no row %s with %q:\n%s", c.row, c.found, strings.Join(output, "\n"))
		})
	}
}
