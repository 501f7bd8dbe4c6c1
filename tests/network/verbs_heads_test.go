package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/gpu"
	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/nic/fake"
)

// headsFrames writes a capture: a numbered stream in disorder with gaps and duplicates, and frames of other shapes.
const headsFrames = `
import sys, random, struct
from scapy.all import *
random.seed(5)
eth = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
v4, v6 = IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd00::1", dst="fd00::2")
numbers = [n for n in range(320) if n % 37 != 5 for _ in range(1 + (n % 50 == 7))]
for i in range(0, len(numbers), 8):
    some = numbers[i:i + 8]; random.shuffle(some); numbers[i:i + 8] = some
frames = [eth/v4/UDP(sport=4000, dport=7148)/Raw(struct.pack("!I", n) + bytes((n + k) % 251 for k in range(1000))) for n in numbers]
for n in (0, 1, 40, 85, 86, 87, 200, 1400):
    body = Raw(bytes((n + k) % 251 for k in range(n)))
    frames += [eth/v4/UDP(sport=4007, dport=9)/body, eth/ARP(pdst="10.0.0.9")/Padding(b"\0" * 18), # of no flow; the last frame is of one
               eth/v4/UDP(sport=4001, dport=7149)/body, eth/Dot1Q(vlan=9)/v4/UDP(sport=4002, dport=7149)/body,
               eth/v6/UDP(sport=4003, dport=7149)/body, eth/v6/IPv6ExtHdrHopByHop(options=[PadN(optdata=b"x" * 20)])/UDP(sport=4004, dport=7149)/body,
               eth/IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption(b"\x94\x04\0\0")])/UDP(sport=4005, dport=7149)/body,
               eth/v4/TCP(sport=4006, dport=7149, flags="PA")/body]
wrpcap(sys.argv[1], [f.__class__(bytes(f)) for f in frames])
`

// headsScript sends a capture over the wire, receives it into a region of a kind, and reports all that it sees of it.
const headsScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ file = "", dir = ".", kind = "host", blocks = "host", seconds = 60, packets = 0, plain = false, split = false, size = 2048 }
local function region(name, kind, n, size) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = size } end
local function match(name, id, match) return { name = name, id = id, action = { type = "queue", id = 0 }, match = match } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, engine = "ibverbs",
  memory_regions = { region("in", args.kind, 2048, args.size), region("front", "host", 2048, 42 + 4), region("blocks", args.blocks, 64, 16 * 1000), region("back", "host", 64, 16 * 1000),
                     region("read", "host", 1024, 2048), region("out", "host", 256, 2048) },
  interfaces = {
    { name = "file", address = "pcap:" .. args.file, rx = { queues = { { name = "read", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "read" } } } } },
    { name = "a", address = "fake0", tx = { queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 32, memory_regions = { "out" } } } } },
    { name = "b", address = "fake1", rx = { flow_isolation = true,
      queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 200, memory_regions = args.split and { "front", "in" } or { "in" } } },
      flows = { match("stream", 3, { udp_dst = 7148 }), match("rest", 4, { udp_dst = "7149-7150" }), match("tcp", 5, { tcp_dst = 7149 }) } } } } } } }
local rx = s:rx_queue "b"
s:pipe(s:rx_queue "file", s:tx_queue "a")
if args.plain then
  s:pipe(rx, s:count{ name = "all" })
  return s:run{ seconds = args.seconds }
end
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = 16, slot_bytes = 1000, fill = 0,
  sequence_number = { bit_offset = 8 * 42, bit_width = 32 }, payload_byte_offset = args.split and 0 or 42 + 4, segment = args.split and 2 or 1, policy = "wait" }
local back = s:copy{ name = "back", memory_region = "back", policy = "wait" }
s:pipe(rx, s:filter{ name = "numbered", where = "udp_dst == 7148" .. (args.split and "" or " and len > 1000 and payload_len == 1004") }, blocks, back)
s:pipe(rx, s:filter{ name = "bpf", pcap = "tcp and greater 500" }, s:count{ name = "long tcp" })
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait" })
back:on_burst(function(b)
  local text = {}
  for slot = 0, 15 do text[#text + 1] = b.data:hex(slot * 1000, 6) .. b.data:hex(slot * 1000 + 994, 6) end
  print("block", b.batch_id, b.missing, table.concat(text, " "))
end, { policy = "wait" })
local n = 0
rx:on_burst(function(b)
  local flows, lens, sport, far = b:flow_ids(), b:column "len", b:column "udp_src", b:column "payload_len"
  for i = 1, args.split and 0 or b.n do
    local p = b:packet(i)
    local most = math.min(#p, 128)
    print("packet", flows[i], #p, lens[i], sport[i], far[i], p:hex(0, most), p:u16(12))
    if args.kind == "device" and #p > 128 then
      for _, f in ipairs{ p.hex, function() return p:u8(128) end, function() p:set_u8(0, 1) end } do
        local ok, why = pcall(f, p)
        assert(not ok and tostring(why):find("the first 128 bytes of each packet can be read; s:copy", 1, true), why)
      end
    end
  end
  n = n + b.n
  if n == args.packets then s:stop "all" end
end, { policy = "wait" })
s:run{ seconds = args.seconds }
`

func headsCapture(t *testing.T) string {
	t.Helper()
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", headsFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	return sent
}

// headsSeen is what the script reported: packets as they came, and blocks; and the capture that it wrote.
type headsSeen struct{ packets, blocks, written []string }

// verbsOnGPU is the program with libraries that stand in for the driver of a GPU and for libibverbs.
func verbsOnGPU(t *testing.T, gpuHas, verbsHas string, args ...string) *exec.Cmd {
	t.Helper()
	driver, err := gpu.Library()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := fake.Verbs()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), args...)
	cmd.Env = append(os.Environ(), "DAQIRI_VERBS="+lib, "DAQIRI_FAKE_VERBS="+verbsHas, "DAQIRI_CUDA="+driver, "DAQIRI_FAKE_CUDA="+gpuHas)
	return cmd
}

// headsRun runs the script: what it saw, and reported.
func headsRun(t *testing.T, sent, gpuHas string, code int, args ...string) (headsSeen, string) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "heads.lua")
	if err := os.WriteFile(script, []byte(headsScript), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--summary", "full"}
	if !slices.Contains(args, "--plain") {
		flags = append(flags, "--drain", "60s") // for handlers, however slow the machine is
	}
	cmd := verbsOnGPU(t, gpuHas, "", append(append(flags, script, "--file", sent, "--dir", dir), args...)...)
	out, err := cmd.CombinedOutput()
	output := string(out)
	if cmd.ProcessState.ExitCode() != code || !strings.Contains(output, "every packet is accounted for") {
		t.Fatalf("%v\n%s", err, output)
	}
	var seen headsSeen
	if !slices.Contains(args, "--plain") {
		seen.written = harness.TsharkLines(t, filepath.Join(dir, "disk.pcap"), "frame.len", "udp.srcport", "tcp.srcport", "udp.payload", "tcp.payload")
	}
	for line := range strings.Lines(output) {
		switch {
		case strings.HasPrefix(line, "packet\t"):
			seen.packets = append(seen.packets, line)
		case strings.HasPrefix(line, "block\t"):
			seen.blocks = append(seen.blocks, line)
		}
	}
	return seen, output
}

// TestHeads has a device put whole packets into a GPU's memory: flows, filters, fields and the reorder stage read their heads and do
// what they do with packets in the host's memory, where the kernel that brings them is late, too.
func TestHeads(t *testing.T) {
	t.Parallel()
	harness.Need(t, "scapy", "tshark", "rdma")
	sent := headsCapture(t)
	const wanted = 318 + 6*8 // of flows: the stream, and the others without UDP to port 9 and ARP
	want, output := headsRun(t, sent, "", 0, "--packets", strconv.Itoa(wanted))
	if len(want.packets) != wanted || len(want.blocks) != 20 || len(want.written) != wanted {
		t.Fatalf("%d packets, %d blocks, %d written\n%s", len(want.packets), len(want.blocks), len(want.written), output)
	}
	dropped := []string{"dropped b.wire.0.no_flow: 16", "dropped numbered.filtered: 48", "dropped blocks.duplicate: 7", "dropped bpf.filtered: 365"}
	wants(t, output, dropped...)
	for _, tt := range []struct{ name, gpu string }{{"at once", "dmabuf=1"}, {"late", "dmabuf=1,delay_us=3000,seed=7"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, output := headsRun(t, sent, tt.gpu, 0, "--kind", "device", "--blocks", "device", "--packets", strconv.Itoa(wanted))
			wants(t, output, dropped...)
			wants(t, output, "memory region in: device fake1 of interface b puts packets into the GPU's memory itself (DMA-BUF)",
				"memory region in: whole packets are in the memory of GPU 0; a kernel copies their first 128 bytes to the host", "packets stay where the device put them")
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d packets, %d blocks, %d written; or they differ\n%s", len(got.packets), len(got.blocks), len(got.written), output)
			}
		})
	}
	t.Run("split", func(t *testing.T) { // headers in the host's memory, payloads on the GPU
		t.Parallel()
		got, output := headsRun(t, sent, "dmabuf=1", 0, "--kind", "device", "--blocks", "device", "--split", "--packets", strconv.Itoa(wanted))
		wants(t, output, "queue rx: hds: device", "puts packets into the GPU's memory itself")
		if !slices.Equal(got.blocks, want.blocks) {
			t.Errorf("%d blocks, or they differ\n%s", len(got.blocks), output)
		}
	})
}

// headsRefused is what asks for more of packets than their heads.
const headsRefused = `
local daqiri = require "daqiri"
local function region(name, kind, n, size) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = size } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, engine = "ibverbs",
  memory_regions = { region("in", "device", 1024, 2048), region("blocks", "device", 16, 16000), region("host", "host", 16, 16000) },
  interfaces = { { name = "b", address = "fake1", rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 200, memory_regions = { "in" } } } } } } } } }
local function blocks(name, region, bit)
  return s:reorder{ name = name, memory_region = region, packets_per_batch = 16, slot_bytes = 1000, payload_byte_offset = 46, sequence_number = { bit_offset = bit, bit_width = 32 } }
end
local function within(at) return s:filter{ name = "at" .. at, where = "x == 1", format = daqiri.format{ x = { at = "payload", bit_offset = 8 * at, bit_width = 16 } } } end
for _, stage in ipairs{ within(112), within(113), blocks("near", "blocks", 8 * 124), blocks("far", "blocks", 8 * 126), blocks("cpu", "host", 8 * 42) } do
  print(pcall(s.pipe, s, s:rx_queue "b", stage))
end
`

// TestHeadsFaults has what stands in the way of heads: a GPU that is lost or hangs ends the run with a device's exit code, and every packet
// in the ledger; frames longer than the buffers are dropped; where memory can't be had the packets lie in pinned memory.
func TestHeadsFaults(t *testing.T) {
	t.Parallel()
	harness.Need(t, "scapy", "tshark", "rdma")
	sent := headsCapture(t)
	for _, tt := range []struct {
		name, gpu string
		code      int
		args      []string
		wants     []string
	}{
		{"lost", "dmabuf=1,trap=3", 4, nil, []string{"dropped b.wire.0.device_lost: ", "error: queue rx: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED"}},
		{"not launched", "dmabuf=1,fail=2", 4, nil, []string{"dropped b.wire.0.device_lost: ", "error: queue rx: GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED"}},
		{"hangs", "dmabuf=1,hang=2", 4, nil, []string{"dropped b.wire.0.device_lost: ", "error: queue rx: GPU 0 did not bring heads of packets: for 5 s it took nothing"}},
		{"too long", "dmabuf=1", 0, []string{"--size", "1000"}, []string{"dropped b.wire.0.too_long: 325", "dropped b.wire.0.no_flow: 15"}},
		{"no DMA-BUF", "", 0, nil, []string{"memory region in: device: queue rx: cuMemGetHandleForAddressRange", "its buffers lie in pinned host memory", "dropped b.wire.0.no_flow: 16"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, output := headsRun(t, sent, tt.gpu, tt.code, append([]string{"--kind", "device", "--plain", "--seconds", "10"}, tt.args...)...)
			wants(t, output, tt.wants...)
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		script := filepath.Join(t.TempDir(), "refused.lua")
		if err := os.WriteFile(script, []byte(headsRefused), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := verbsOnGPU(t, "dmabuf=1", "", script).CombinedOutput()
		output := strings.Split(string(out), "\n")
		const far = "of packets, and those of queue rx lie on a GPU: the host has the first 128; hint: s:copy before it"
		for i, want := range []string{"true", "at113 reads byte 128 " + far, "true", "far reads byte 129 " + far, "stage cpu reads the first segment of queue rx's packets, and the CPU can't read region in"} {
			if i >= len(output) || !strings.Contains(output[i], want) {
				t.Errorf("line %d lacks %q: %v\n%s", i, want, err, out)
			}
		}
	})
}
