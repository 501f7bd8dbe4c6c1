package gpu_test

import (
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// darkScript has a handler use an aggregate that lies in a GPU's memory.
const darkScript = `
local daqiri = require "daqiri"
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local function region(name, kind, n, size) return { name = name, kind = kind, affinity = 0, num_bufs = n, buf_size = size } end
local s = daqiri.open{ version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual" },
  memory_regions = { region("out", "host", 256, 256), region("in", "host_pinned", 256, 256), region("blocks", "device", 16, 4096) },
  interfaces = { { name = "a", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "b", address = "b", rx = { queues = { queue("rx", "in") } } } } }
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = 4, slot_bytes = 56, payload_byte_offset = 50,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, timeout_us = 500 }
s:pipe(s:rx_queue("b"), blocks)
local tx = s:tx_queue("a")
local k = daqiri.kernel{ grid = 1, block = 1, src = "__global__ void see(const daqiri_burst *b, float *a) {}" }
local a = daqiri.array{ kind = "device", type = "fp32", shape = 4 }
local function try(what, f, ...) local ok, first, status, text = pcall(f, ...); print(what, ok, first, status, text) end
blocks:on_burst(function(b)
  try("byte", function() return b.data:u32(0) end)
  try("packet", function() return b:packet(1):hexdump() end)
  try("column", function() return b:column "udp_dst" end)
  try("length", function() return b:column("len")[1] end)
  try("select", b.select, b, "udp_dst == 7148")
  try("count", b.count, b, "payload_len > 1")
  try("counted", b.count, b, "len > 1 and flow_id == 0")
  try("show", b.show, b)
  try("set", b.set, b, { udp_dst = 7 })
  try("fill", b.fill, b, tx:template{ udp_dst = 7148 })
  try("checksums", b.checksums, b)
  try("no burst", k.launch, k, a, a)
  try("launch", k.launch, k, b, a)
  b:free()
  try("freed", k.launch, k, b, a)
end)
tx:transmit{ template = tx:template{ udp_dst = 7148, payload_bytes = 64, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 } } }, count = 4 }
s:run{ seconds = 1 }
`

// TestGPUDark: verbs of the CPU on a burst in a GPU's memory say where it lies; those that need no byte of it work.
func TestGPUDark(t *testing.T) {
	out, code := harness.OnGPU(t, "", harness.WriteScript(t, darkScript))
	const dark = `memory region "blocks", which the CPU can't read; hint: s:copy moves bursts from a GPU's memory to the host's`
	for what, want := range map[string]string{"byte": dark, "packet": dark, "column": dark, "length": "true\t224", "select": dark, "count": dark, "counted": "true\t1",
		"show": dark, "set": dark, "fill": dark, "checksums": dark, "no burst": "argument 1 (const daqiri_burst *b): an array is not a burst",
		"launch": "true\top of kernel see", "freed": "burst already freed"} {
		line := ""
		for l := range strings.Lines(out) {
			if strings.HasPrefix(l, what+"\t") {
				line = l
			}
		}
		if !strings.Contains(line, want) {
			t.Errorf("%q instead of %q", line, want)
		}
	}
	if code != 0 || !strings.Contains(out, harness.Balanced) || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
