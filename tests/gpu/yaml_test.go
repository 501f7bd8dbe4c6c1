package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
)

// gpuConfig is a reference's configuration with a reorder plan for the GPU. What comes on other ports is not part of it.
const gpuConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    loopback: {mode: sw, clock: virtual, seed: 3, loss: 0.01, reorder: 0.05}
    memory_regions:
    - {name: out, kind: host, affinity: 0, num_bufs: 1024, buf_size: 1024}
    - {name: in, kind: host_pinned, affinity: 0, num_bufs: 4096, buf_size: 256}
    - {name: blocks, kind: device, affinity: 0, num_bufs: 16, buf_size: 16384}
    - {name: back, kind: host_pinned, affinity: 0, num_bufs: 16, buf_size: 16384}
    interfaces:
    - name: instrument
      address: a
      tx: {queues: [{name: tx, id: 0, poll_mode: direct, batch_size: 64, memory_regions: [out]}]}
    - name: receiver
      address: b
      rx:
        queues: [{name: rx, id: 0, poll_mode: direct, batch_size: 64, memory_regions: [in]}]
        flows:
        - {name: samples, id: 1, match: {udp_dst: 7148}, action: {type: queue, id: 0}}
        - {name: others, id: 2, match: {udp_dst: 7149}, action: {type: queue, id: 0}}
        reorder_configs:
        - name: agg
          reorder_type: gpu
          memory_region: blocks
          payload_byte_offset: 46
          flow_ids: [1]
          data_types: {input_type: int16, output_type: fp32, endianness: network}
          method: {seq_packets_per_batch: {sequence_number: {bit_offset: 336, bit_width: 32}, packets_per_batch: 32}}
`

// gpuScript sends 64 samples of 16 bits a packet, the first two its number, and writes what comes back from the GPU.
const gpuScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ config = "gpu.yaml" }
local s = daqiri.open(args.config)
local back = s:copy{ name = "back", memory_region = "back" }
s:pipe(s:stage("agg"), back, s:write_blocks{ name = "blocks", dirs = { "." }, policy = "wait" })
local tx = s:tx_queue("instrument")
tx:transmit{ count = 3000, template = tx:template{ udp_dst = 7148, payload_bytes = 4 + 128, vary = {
  { at = "payload", bit_offset = 0, bit_width = 32, step = 1 }, { at = "payload", bit_offset = 32, bit_width = 32, step = 1 } } } }
local l = s:run{ seconds = 1 }
print(l.agg.missing, l.agg.late, l.blocks.written)
`

// gpuReader holds each sample to the packet's number, whose halves the first two are, and gaps to nothing.
const gpuReader = `
import struct, sys
d = open("blocks_000000.dqb", "rb").read()
head, step, at0, dtype = struct.unpack_from("<I", d, 12)[0], struct.unpack_from("<Q", d, 16)[0], struct.unpack_from("<I", d, 24)[0], struct.unpack_from("<I", d, 44)[0]
if dtype != 7: sys.exit("dtype %d" % dtype)
blocks = packets = 0
for at in range(head, len(d), step):
    batch, there = struct.unpack_from("<Q", d, at + 8)[0], struct.unpack_from("<Q", d, at + struct.unpack_from("<I", d, 68)[0])[0]
    for slot in range(32):
        if not there >> slot & 1: continue
        n = batch * 32 + slot
        got = struct.unpack_from("<64f", d, at + at0 + slot * struct.unpack_from("<I", d, 32)[0])
        if got != (float(n >> 16), float(n & 0xffff)) + (0.0,) * 62: sys.exit("batch %d slot %d: %r" % (batch, slot, got[:4]))
        packets += 1
    blocks += 1
print(blocks, packets)
`

// TestGPUFromYAML runs a configuration's reorder plan of type gpu: the GPU puts payloads in order and converts them.
func TestGPUFromYAML(t *testing.T) {
	harness.Need(t, "scapy") // for python3
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"gpu.yaml": gpuConfig, "gpu.lua": gpuScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "DAQIRI_CUDA="+lib, "DAQIRI_FAKE_CUDA=delay_us=50", "DAQIRI_CUFILE=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	output := run(harness.Built(t), "--summary", "full", "gpu.lua")
	if !strings.Contains(output, "memory region blocks: 2 MiB of GPU 0 (Fake GPU)") || !strings.Contains(output, "every packet is accounted for") {
		t.Errorf("no GPU, or no account:\n%s", output)
	}
	if got := run("/usr/bin/python3", "-c", gpuReader); !strings.HasPrefix(got, "9") || len(strings.Fields(got)) != 2 {
		t.Errorf("blocks and packets: %s\n%s", got, output)
	}
}

// gpuForward copies frames into a GPU's memory and sends them back from there, by a pipe or by the script; what comes is in
// order and whole.
const gpuForward = `
local daqiri = require "daqiri"
local args = daqiri.args{ packets = 5000, clock = "virtual", size = 1000, direct = false, seconds = 60 }
local real = args.clock ~= "virtual"
local function queue(name, region) return { name = name, id = 0, poll_mode = not real and "direct" or nil, cpu_core = real and -1 or nil, batch_size = 64, memory_regions = { region } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = args.clock },
  memory_regions = {
    { name = "out", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2000 },
    { name = "back", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2000 },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 2048, buf_size = 2000 },
    { name = "in2", kind = "host_pinned", affinity = 0, num_bufs = 2048, buf_size = 2000 },
    { name = "gpu", kind = "device", affinity = 0, num_bufs = 1024, buf_size = 2000 } },
  interfaces = {
    { name = "src", address = "a", tx = { queues = { queue("tx", "out") } }, rx = { queues = { queue("rx", "in2") } } },
    { name = "mid", address = "b", rx = { queues = { queue("rx", "in") } }, tx = { queues = { queue("tx", "back") } } } } },
  {})
local tx = s:tx_queue("src")
local copy = s:copy{ name = "copy", memory_region = "gpu", policy = "wait" }
local back = s:tx_queue("mid")
if args.direct then
  s:pipe(s:rx_queue("mid"), copy)
  local turn = 0
  copy:on_burst(function(b)
    local n = b.n
    while true do local ok, e = back:send(b) if ok ~= nil or e ~= "NO_SPACE_AVAILABLE" then if not ok then print(ok, e) end break end s:after(0.0001, function() end) end
  end, { policy = "wait" })
else s:pipe(s:rx_queue("mid"), copy, back) end
local next, wrong, n, lost = 0, 0, 0, 0 -- a receiver whose thread has no core for long loses packets, but never their order
s:rx_queue("src"):on_burst(function(b)
  for i = 1, b.n do
    local v = b:packet(i):u32(42)
    if v < next then wrong = wrong + 1 else lost = lost + v - next end
    next, n = v + 1, n + 1
  end
  if next == args.packets then s:stop("the last one came") end
end, { policy = "wait" })
if real then tx:pace{ pps = 20000 } end
tx:transmit{ count = args.packets, template = tx:template{ udp_dst = 7148, payload_bytes = args.size, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } } }
s:run{ seconds = real and args.seconds or 1 }
print(("%d came, %d out of place, %d missing"):format(n, wrong, args.packets - next + lost))
`

// TestGPUTransmit sends what lies in a GPU's memory.
func TestGPUTransmit(t *testing.T) {
	lib, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, faults string
		args         []string
		exit         int
		want         []string
	}{
		{"forwarded, virtual clock", "delay_us=30", nil, 0, []string{"5000 came, 0 out of place, 0 missing", "note: queue tx: what lies on GPU 0 is copied to pinned memory before it is sent"}},
		{"forwarded, threads", "delay_us=100", []string{"--clock", "real"}, 0, []string{" came, 0 out of place"}},
		{"by a script", "", []string{"--direct", "true"}, 0, []string{"5000 came, 0 out of place, 0 missing"}},
		{"a kernel traps", "trap=20", []string{"--clock", "real"}, 4, []string{"0 out of place", "device_lost", "CUDA_ERROR_LAUNCH_FAILED"}},
		{"a launch fails", "fail=20", []string{"--clock", "real"}, 4, []string{"0 out of place", "device_lost", "CUDA_ERROR_LAUNCH_FAILED"}},
		{"the queue's kernel traps", "trap=2", []string{"--packets", "1", "--clock", "real"}, 4, []string{"queue tx: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED"}},
		{"the queue's kernel never ends", "hang=2", []string{"--packets", "1", "--clock", "real", "--seconds", "1"}, 4, []string{"error: queue tx: GPU 0 did not bring what was to be sent: for 5 s it took nothing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "forward.lua")
			if err := os.WriteFile(script, []byte(gpuForward), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(harness.Built(t), append([]string{"--summary", "full", script}, c.args...)...)
			cmd.Env = append(os.Environ(), "DAQIRI_CUDA="+lib, "DAQIRI_FAKE_CUDA="+c.faults)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.exit {
				t.Errorf("exit code %d, want %d", code, c.exit)
			}
			for _, want := range append(c.want, "every packet is accounted for") {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q", want)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
