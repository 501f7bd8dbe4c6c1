package gpu_test

import (
	"regexp"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// marksScript: a kernel writes down what it gets of each batch (id, bitmap, the extra number of each slot), and the script compares
// it with what the CPU reports.
const marksScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ kind = "device", memory = "gpu", per = 100, loss = 0.05, fill = "0" }
local PER, MOST, PACKETS = args.per, 500, 6000
local EACH = 2 + 2 * PER
local function queue(name, region) return { name = name, id = 0, poll_mode = "direct", batch_size = 64, memory_regions = { region } } end
local s = daqiri.open({ version = 1, stream_type = "raw", master_core = 0,
  loopback = { mode = "sw", clock = "virtual", loss = args.loss, reorder = 0.05, dup = 0.02, seed = 3 },
  memory_regions = {
    { name = "out", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 256 },
    { name = "in", kind = "host_pinned", affinity = 0, num_bufs = 4096, buf_size = 256 },
    { name = "blocks", kind = args.kind, affinity = 0, num_bufs = 16, buf_size = 64 * PER } },
  interfaces = {
    { name = "instrument", address = "a", tx = { queues = { queue("tx", "out") } } },
    { name = "receiver", address = "b", rx = { queues = { queue("rx", "in") } } } } },
  { memory = args.memory == "host" and "host" or nil })
local tx = s:tx_queue("instrument")
local template = tx:template{ udp_dst = 7148, payload_bytes = 64, vary = { { at = "payload", bit_offset = 0, bit_width = 32, step = 1 },
  { at = "payload", bit_offset = 64, bit_width = 64, step = 0x0102030405 } } }
local note = daqiri.kernel{ grid = 1, block = 32, src = [[
__global__ void note(unsigned long long id, const unsigned long long *present, const unsigned long long *extra, int slots,
                     unsigned long long *to, unsigned long long *n)
{
    unsigned long long *mine = to + *n * (2 + 2 * slots);
    for (int k = threadIdx.x; k < slots; k += 32) {
        mine[2 + k] = present[k / 64] >> k % 64 & 1;
        mine[2 + slots + k] = extra[k];
    }
    if (threadIdx.x < 31) return;
    mine[0] = id;
    mine[1] = 1;
    *n += 1;
}
]] }
local to = daqiri.array{ kind = "host_pinned", type = "uint64", shape = MOST * EACH }
local n = daqiri.array{ kind = "host_pinned", type = "uint64", shape = 1 }
local blocks = s:reorder{ name = "blocks", memory_region = "blocks", packets_per_batch = PER, slot_bytes = 56,
  sequence_number = { at = "payload", bit_offset = 0, bit_width = 32 }, payload_byte_offset = 50, timeout_us = 500, policy = "wait",
  fill = tonumber(args.fill) or args.fill, fields = { mark = { at = "payload", bit_offset = 64, bit_width = 64 } }, extra = "mark" }
local noted = note:stage{ args = { "batch_id", "present", "extra", PER, to, n }, policy = "wait" }
s:pipe(s:rx_queue("receiver"), blocks, noted)
local want, missing = {}, 0
noted:on_burst(function(b)
  local text = { tostring(b.batch_id), b.present.text }
  for k = 1, PER do text[#text + 1] = tostring(b.extra[k] or 0) end
  want[#want + 1] = table.concat(text, " ")
  missing = missing + b.missing
end, { policy = "wait" })
tx:transmit{ template = template, count = PACKETS }
s:run{ seconds = 1 }
local all, wrong, values = to:get(), 0, 0
for i, text in ipairs(want) do
  local base, got, bits = (i - 1) * EACH, {}, {}
  assert(all[base + 2] == 1, "a kernel did not run")
  for k = 1, PER do bits[k] = tostring(all[base + 2 + k]) end
  got[1], got[2] = tostring(all[base + 1]), table.concat(bits)
  for k = 1, PER do
    got[2 + k] = tostring(all[base + 2 + PER + k])
    if got[2 + k] ~= "0" then values = values + 1 end
  end
  got = table.concat(got, " ")
  if got ~= text then wrong = wrong + 1; if wrong == 1 then print("got  " .. got); print("want " .. text) end end
end
print(("%d batches, %d wrong, %d missing, %d numbers"):format(#want, wrong, missing, values))
`

// TestGPUMarks: what a kernel gets of a batch beside its data is what the CPU reports of it, whatever moves the payloads and
// whether batches are full; on the stand-in memory of the GPU is full of 0xa5 at first, and behind each other batch's.
func TestGPUMarks(t *testing.T) {
	script := harness.WriteScript(t, marksScript)
	output := regexp.MustCompile(`(?m)^(\d+) batches, 0 wrong, (\d+) missing, (\d+) numbers$`)
	var first string
	for _, c := range []struct {
		name, fault string
		args        []string
	}{
		{"processor", "", []string{"--memory", "host"}},
		{"device", "delay_us=50", nil},
		{"device, gaps stay", "", []string{"--fill", "keep"}},
		{"processor, kernel on the GPU", "", []string{"--kind", "host_pinned"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := harness.OnGPU(t, c.fault, script, c.args...)
			m := output.FindString(out)
			if first == "" {
				first = m
			}
			if code != 0 || m == "" || m != first {
				t.Errorf("exit code %d, want %q:\n%s", code, first, out)
			}
		})
	}
	for name, args := range map[string][]string{"all there": {"--loss", "0"}, "few a batch": {"--per", "16", "--loss", "0.4"}} {
		t.Run(name, func(t *testing.T) {
			if out, code := harness.OnGPU(t, "", script, args...); code != 0 || !output.MatchString(out) {
				t.Errorf("exit code %d:\n%s", code, out)
			}
		})
	}
}
