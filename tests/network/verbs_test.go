package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/nic/fake"
)

// verbsScript sends 8 frames for each of 7 destinations, and reports how many of each came out of which queue.
const verbsScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ isolate = false, address = "fake1" }
local function queue(name, id) return { name = name, id = id, poll_mode = "direct", batch_size = 32, memory_regions = { "in" } } end
local names = 0
local function to(id, match)
  names = names + 1
  return { name = "flow" .. names, action = { type = "queue", id = id }, match = match }
end
local function take() -- what lies there by now
  for _ = 1, 20 do daqiri.sleep(2e-3) end
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, engine = "ibverbs",
  memory_regions = { { name = "in", kind = "host", affinity = 0, num_bufs = 512, buf_size = 2048 }, { name = "out", kind = "host", affinity = 0, num_bufs = 256, buf_size = 9000 } },
  interfaces = { { name = "a", address = "fake0", tx = { queues = { { name = "tx", id = 0, poll_mode = "direct", batch_size = 32, memory_regions = { "out" } } } } },
    { name = "b", address = args.address, rx = { flow_isolation = args.isolate, queues = { queue("q0", 0), queue("q1", 1), queue("q2", 2) } } } } } } }
local rx, tx, got = s:interface "b", s:tx_queue "a", {}
for id = 0, 2 do
  s:rx_queue("b", id):on_burst(function(b)
    for k = 1, b.n do
      local at = ("queue %d bytes %d"):format(id, b:packet(k).length)
      got[at] = (got[at] or 0) + 1
    end
  end)
end
s:start()
assert(rx:add_flows("g", { to(1, { udp_dst = 5001 }), to(2, { udp_dst = 5002, ipv4_src = "10.0.0.1" }), to(2, { ipv6_dst = "fd00::9" }), to(1, { vlan_id = 7 }) }))
local function frame(bytes, t)
  t.payload_bytes = bytes
  t.eth_dst = t.eth_dst or "02:00:00:00:00:01"
  tx:transmit{ template = tx:template(t), count = 8 }
  assert(tx:drain{ timeout = 5 })
end
frame(101, { udp_dst = 5001, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.9" })
frame(102, { udp_dst = 5002, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.1" })
frame(103, { udp_dst = 5002, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.3" })
frame(104, { udp_dst = 5009, ipv6_dst = "fd00::9", ipv6_src = "fd00::1" })
frame(105, { udp_dst = 5001, ipv6_dst = "fd00::8", ipv6_src = "fd00::1" })
frame(106, { udp_dst = 6000, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.9", eth_dst = "02:00:00:00:00:77", vlan_id = 7 })
frame(5000, { udp_dst = 5001, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.9" }) -- longer than a buffer
take()
assert(rx:add_flows("ports", { { name = "range", match = { udp_dst = "7000-7009" }, action = { type = "queue", id = 1 } } }))
frame(107, { udp_dst = 7005, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.9" })
take()
assert(rx:delete_flows("g") == 4)
frame(108, { udp_dst = 5001, ipv4_dst = "10.0.0.2", ipv4_src = "10.0.0.9" })
take()
local list = {}
for k, n in pairs(got) do list[#list + 1] = k .. ": " .. n end
table.sort(list)
print(table.concat(list, "\n"))
s:stop "done"
`

// onVerbs runs the script on the library that stands in for libibverbs: what it reports, and what the library counted.
func onVerbs(t *testing.T, how string, args ...string) (output, counted string, err error) {
	t.Helper()
	lib, err := fake.Verbs()
	if err != nil {
		harness.Need(t, "rdma")
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, log := filepath.Join(dir, "verbs.lua"), filepath.Join(dir, "log")
	if err := os.WriteFile(script, []byte(verbsScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), append([]string{"--summary", "full", script}, args...)...)
	cmd.Env = append(os.Environ(), "DAQIRI_VERBS="+lib, "DAQIRI_FAKE_VERBS="+how+":"+log)
	out, err := cmd.CombinedOutput()
	text, _ := os.ReadFile(log)
	return string(out), string(text), err
}

// Bytes of a frame: payload, 42 of headers over IPv4, 62 over IPv6, 4 of a tag.
var perQueue = []string{"queue 1 bytes 143: 8", "queue 2 bytes 144: 8", "queue 2 bytes 166: 8", "queue 1 bytes 167: 8", "queue 1 bytes 152: 8", "queue 1 bytes 149: 8", "dropped b.rx.1.too_long: 8"}

// TestVerbsSteering: the device puts frames into their queues where it can have the rules, and software does the rest; with
// isolation the device gives nothing that no rule wants, unless it can't have a rule.
func TestVerbsSteering(t *testing.T) {
	for _, tt := range []struct {
		name, how     string
		args          []string
		device        string // what the library counted of fake1
		wants, unseen []string
	}{
		{"rules", "", nil, `steered 48 default 24 unwanted 0 without buffer 0`,
			append([]string{"queue 0 bytes 145: 8", "queue 0 bytes 150: 8", "by software alone: a range of ports"}, perQueue...), nil},
		{"no rules", "noflows", nil, `steered 0 default 72 unwanted 0 without buffer 0`,
			append([]string{"queue 0 bytes 145: 8", "queue 0 bytes 150: 8", "by software alone: Operation not supported"}, perQueue...), nil},
		{"isolated", "", []string{"--isolate", "true"}, `steered 48 default 16 unwanted 8 without buffer 0`,
			append([]string{"flow_isolation by the device", "flow_isolation by software, the kernel gets nothing: a range of ports"}, perQueue...), []string{"bytes 145", "bytes 150"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			output, counted, err := onVerbs(t, tt.how, tt.args...)
			if err != nil || !strings.Contains(output, "every packet is accounted for") {
				t.Fatalf("%v\n%s", err, output)
			}
			wants(t, output, tt.wants...)
			for _, text := range tt.unseen {
				if strings.Contains(output, text) {
					t.Errorf("%q is in\n%s", text, output)
				}
			}
			if m := regexp.MustCompile(`(?m)^fake1 (.*)$`).FindStringSubmatch(counted); m == nil || m[1] != tt.device {
				t.Errorf("the device counted %q, want %s\n%s", counted, tt.device, output)
			}
		})
	}
}

// TestVerbsNoDevice: an interface whose device isn't there names those that are, and one without a library what to install.
func TestVerbsNoDevice(t *testing.T) {
	t.Parallel()
	output, _, err := onVerbs(t, "", "--address", "mlx5_7")
	if err == nil {
		t.Errorf("it ran\n%s", output)
	}
	wants(t, output, "interface b: mlx5_7 is not an RDMA device", "fake0, fake1")
}
