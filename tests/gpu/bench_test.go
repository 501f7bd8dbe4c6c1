package gpu_test

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
)

// onStandIn is a command whose GPU is the stand-in, and what that counts of its kernels: lists, moves, bytes; and what the
// program has at the moment: pieces of memory, registered or of the GPU, their bytes, streams.
func onStandIn(t *testing.T, program, settings string, args ...string) (cmd *exec.Cmd, counts func() [6]uint64) {
	t.Helper()
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "counts")
	cmd = exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "DAQIRI_CUDA="+lib, "DAQIRI_FAKE_CUDA="+settings+",counts="+file)
	return cmd, func() (c [6]uint64) {
		data, err := os.ReadFile(file)
		if err != nil || len(data) != 8*len(c) {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		for i := range c {
			c[i] = binary.NativeEndian.Uint64(data[8*i:])
		}
		return c
	}
}

// TestBenchGPULoops: each loop has measured all that it names, and its kernels moved as much as it counts, which is the
// driver's count. The loop itself compares what came out.
func TestBenchGPULoops(t *testing.T) {
	for loop, names := range map[string]string{
		"gpu-reorder": "copy 1024x1024 4096x1024 8192x1024 1024x16384 4096x16384 8192x16384",
		"gpu-convert": "copy int16_fp32 int8_fp32 int4_fp16 i12_fp32 u12.lsb_int16 o4_fp16",
		"gpu-gather":  "copy 1024 4096 8192 stage_1024 stage_4096 stage_8192 plan_ns_1024 plan_ns_4096 plan_ns_8192",
	} {
		t.Run(loop, func(t *testing.T) {
			cmd, counts := onStandIn(t, harness.BuiltBench(t), "mib=96", "peer", loop, "--for", "20ms")
			out, err := cmd.Output()
			var got map[string]float64
			if err != nil || json.Unmarshal(out, &got) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, name := range strings.Fields(names) {
				if got[name] <= 0 {
					t.Errorf("%s is %v", name, got[name])
				}
			}
			c := counts()
			// A reorder stage has its batches' bitmaps moved, too: a move for hundreds of packets, of few bytes.
			more, bytes := float64(c[1])-got["packets"], float64(c[2])-got["bytes"]
			if marks := loop == "gpu-gather" && more > 0 && more < got["packets"]/256 && bytes >= 8*more && bytes <= 1024*more; c[0] == 0 || (more != 0 || bytes != 0) && !marks {
				t.Errorf("kernels moved %d packets of %d bytes in %d lists, the loop counts %v of %v", c[1], c[2], c[0], got["packets"], got["bytes"])
			}
		})
	}
}

// TestBenchGPUCases: a case on the stand-in has a ceiling, and shares of it; without a driver it skips and reports what is
// missing.
func TestBenchGPUCases(t *testing.T) {
	harness.BuiltBench(t)
	cmd, _ := onStandIn(t, harness.Built(t), "mib=96", "bench", "gpu_reorder", "--seconds", "0.1", "--json")
	var report struct{ Cases []benchCase }
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &report) != nil || len(report.Cases) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	c := report.Cases[0]
	if c.Value <= 0 || c.PeerValue <= 0 || c.Ratio <= 0 || c.Figures["gb_8192x16384"] != c.Value || c.Figures["share_1024x1024"] <= 0 {
		t.Errorf("%s", out)
	}
	cmd = exec.Command(harness.Built(t), "bench", "gpu_reorder", "gpu_convert", "gpu_convert_12", "gpu_gather", "--json")
	cmd.Env = append(os.Environ(), "DAQIRI_CUDA=/nowhere/libcuda.so")
	if out, err = cmd.Output(); err != nil || json.Unmarshal(out, &report) != nil || len(report.Cases) != 4 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range report.Cases {
		if !strings.HasPrefix(c.Skipped, "needs a GPU: ") || !strings.Contains(c.Skipped, "/nowhere/libcuda.so") {
			t.Errorf("%s: skipped: %q", c.Name, c.Skipped)
		}
	}
}

// benchCase is what the tests read of a case's report.
type benchCase struct {
	Name, Skipped, Error string
	Value, Ratio         float64
	PeerValue            float64 `json:"peer_value"`
	Figures              map[string]float64
}
