package gpu_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
)

// flatScript has batches go through all that holds memory of a GPU: reorder with loss and gaps, a kernel of the script's own, s:copy
// back to the host. It reports when it is warm and when it has seen all, and continues until the file args.stop is there.
const flatScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ batches = 1000, kernel = true, stop = "" }
local PER, WARM = 4, 5000
local function queue(name, region) return { name = name, id = 0, cpu_core = -1, batch_size = 256, memory_regions = { region } } end
local function region(name, kind, n, size) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = size } end
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = "real", loss = 0.01, dup = 0.01, seed = 3 },
  memory_regions = { region("out", "host", 4096, 128), region("in", "host_pinned", 4096, 128), region("blocks", "device", 256, 64 * PER),
    region("back", "host_pinned", 256, 64 * PER) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "b", address = "b", rx = { queues = { queue("rx", "in") } } } } }
local tx = s:tx_queue("a")
local template = tx:template{ udp_dst = 7148, payload_bytes = 64, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } }
local sum = daqiri.array{ kind = "device", type = "uint64", shape = 1 }
local see = daqiri.kernel{ grid = 1, block = 4, src = [[
__global__ void see(const unsigned char *data, const unsigned long long *present, const unsigned long long *extra, unsigned long long *sum)
{
    if (present[0] >> threadIdx.x & 1) atomicAdd(sum, data[threadIdx.x * 56] + extra[threadIdx.x]);
}
]] }
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = PER, slot_bytes = 56, payload_byte_offset = 50, fill = 0,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, timeout_us = 500, policy = "wait",
  fields = { mark = { at = "payload", bit_offset = 64, bit_width = 16 } }, extra = "mark" }
local back = s:copy{ name = "back", memory_region = "back", policy = "wait" }
if args.kernel then
  s:pipe(s:rx_queue("b"), blocks, see:stage{ args = { "data", "present", "extra", sum }, policy = "wait" }, back)
else
  s:pipe(s:rx_queue("b"), blocks, back)
end
local n = 0
back:on_burst(function(b)
  n = n + b.n
  if n == WARM then print("warm") elseif n == args.batches + WARM then print("done") end
end, { policy = "wait" })
tx:transmit{ template = template }
s:every(0.05, function()
  local f = io.open(args.stop)
  if f then f:close(); s:stop("all was seen") end
end)
s:run{ seconds = 3600 }
`

// TestGPUFlat: after batches without number a program has no more memory than it had when it was warm: of the host's, but for
// what Go's collector leaves for a while, and exactly so of the GPU's, of registered memory and of streams.
// DAQIRI_GPU_BATCHES has more of them than CI. With a kernel the stand-in is slow: it maps the GPU's memory for each launch.
func TestGPUFlat(t *testing.T) {
	for name, batches := range map[string]string{"--kernel=false": "100000", "--kernel=true": "10000"} {
		if more := os.Getenv("DAQIRI_GPU_BATCHES"); more != "" {
			batches = more
		}
		t.Run(name, func(t *testing.T) { staysFlat(t, batches, name) })
	}
}

func staysFlat(t *testing.T, batches string, args ...string) {
	t.Helper()
	all, err := gpu.Variables()
	if err != nil {
		t.Fatal(err)
	}
	cmd, counts := onStandIn(t, harness.Built(t), "", "run", harness.WriteScript(t, flatScript), "--batches", batches)
	stop := filepath.Join(t.TempDir(), "stop")
	cmd.Args = append(cmd.Args, slices.Concat(args, []string{"--stop", stop})...)
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+t.TempDir(), "GOGC=20") // Go's part changes little then
	var output strings.Builder
	cmd.Stderr = &output
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	at := map[string]int{}
	had := map[string][6]uint64{}
	for _, word := range []string{"warm", "done"} {
		if !lines.Scan() || lines.Text() != word {
			t.Fatalf("%q instead of %q\n%s", lines.Text(), word, output.String())
		}
		at[word], had[word] = anonymousKB(t, cmd.Process.Pid), counts()
	}
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 0 || !strings.Contains(output.String(), harness.Balanced) {
		t.Errorf("exit code %d\n%s", cmd.ProcessState.ExitCode(), output.String())
	}
	t.Logf("%s batches: %d KiB, then %d; %d and %d", batches, at["warm"], at["done"], had["warm"], had["done"])
	if at["done"] > at["warm"]+harness.FlatMost {
		t.Errorf("%s batches: the host's memory went from %d KiB to %d", batches, at["warm"], at["done"])
	}
	warm, done := had["warm"], had["done"]
	if [3]uint64(warm[3:]) != [3]uint64(done[3:]) || done[0] <= warm[0] {
		t.Errorf("pieces, bytes and streams were %d, and are %d, with %d lists", warm[3:], done[3:], done[0])
	}
	if end := counts(); end[5] > 1 || end[3] > 2 { // what a session had is released; the array of the script lasts, with its own for copies
		t.Errorf("at the end there are %d\n%s", end[3:], output.String())
	}
}

// anonymousKB is what a process has of memory of its own.
func anonymousKB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "RssAnon:" {
			kb, err := strconv.Atoi(f[1])
			if err == nil {
				return kb
			}
		}
	}
	t.Fatal("no RssAnon")
	return 0
}
