package network

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// nicLibrary is the path of nic/, compiled once: preloaded, it gives devices what network cards have.
var nicLibrary = sync.OnceValues(func() (string, error) {
	lib := filepath.Join(harness.ProgramDir, "nic.so")
	build := exec.Command("sh", "-ec", `cc -std=gnu11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -DALLOW_EXPERIMENTAL_API -fPIC -shared \
$(pkg-config --cflags libdpdk | sed 's/-I/-isystem /g') nic/*.c -o "$1" -lrte_ethdev -lrte_mbuf -lrte_mempool -lrte_eal -ldl`, "sh", lib)
	build.Dir = filepath.Join(tree.Root, "tests")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("nic: %w\n%s", err, out)
	}
	return lib, nil
})

// onCard runs a script with devices that have these features of cards: what it reports, and its JSON in `got`.
func onCard(t *testing.T, features, script string, got any, args ...string) string {
	t.Helper()
	out, output, err := tryOnCard(t, features, script, args...)
	if err != nil || !strings.Contains(output, "every packet is accounted for") {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := json.Unmarshal(out, got); err != nil {
		t.Fatalf("%v in %q\n%s", err, out, output)
	}
	return output
}

func tryOnCard(t *testing.T, features, script string, args ...string) ([]byte, string, error) {
	t.Helper()
	cmd := cardCommand(t, exec.Command, features, script, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	return out, stderr.String(), err
}

// cardCommand is the program with that script, made by this function.
func cardCommand(t *testing.T, command func(string, ...string) *exec.Cmd, features, script string, args ...string) *exec.Cmd {
	t.Helper()
	nic, err := nicLibrary()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "card.lua")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := command(harness.Built(t), append([]string{"--summary", "full", file}, args...)...)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib, "DAQIRI_NIC="+features, "LD_PRELOAD="+nic)
	return cmd
}

// wants checks that a program reported each of these.
func wants(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("%q is not in\n%s", text, output)
		}
	}
}

// cardFrames writes a capture: 40 times UDP frames around the length at which they are split, and long ones.
const cardFrames = `
import sys
from scapy.all import *
ip = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")/IP(src="10.0.0.1", dst="10.0.0.2")
wrpcap(sys.argv[1], [ip/UDP(sport=4000, dport=7148)/Raw(bytes((k + i) % 251 for i in range(n)))
  for k in range(40) for n in (0, 18, 22, 23, 100, 1400, 8900)])
`

// splitScript receives into two regions, writes a capture and sends everything on.
const splitScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ rx = "", tx = "", dir = ".", bufs = 2048, keep = false, seconds = 90 }
local regions = { { name = "head", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 64 },
                  { name = "body", kind = "host", affinity = 0, num_bufs = args.bufs, buf_size = 9000 } }
local function queues(name, timeout)
  return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = timeout, memory_regions = { "head", "body" } } } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, memory_regions = regions,
  interfaces = { { name = "port", address = args.rx, rx = queues("rx", 200) }, { name = "out", address = args.tx, tx = queues("tx") } } } } }
local rx, got, wrong = s:rx_queue("port"), 0, 0
rx:on_burst(function(b)
  local head, body = b:lengths(1), b:lengths(2)
  for i = 1, b.n do
    if head[i] ~= 64 and head[i] + body[i] > 64 then wrong = wrong + 1 end
  end
  if args.keep then b:keep() end
  got = got + b.n
  if got == 280 then s:stop("all there") end
end, { policy = "wait" })
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { args.dir }, policy = "wait" })
s:pipe(rx, s:tx_queue("out"))
if args.keep then
  s:every(0.01, function() if s:stats().port.wire.nic_missed > 0 then s:stop("the device lost some") end end)
end
s:run{ seconds = args.seconds }
print(daqiri.json{ got = got, wrong = wrong })
`

// TestCardSplit has the device cut frames into the two regions: the file and what is sent on are what scapy made, and
// only frames that end in the first part were copied.
func TestCardSplit(t *testing.T) {
	harness.Need(t, "dpdk", "scapy", "tshark")
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", cardFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	fields := []string{"frame.len", "udp.srcport", "udp.payload", "udp.checksum.status"}
	want := harness.TsharkLines(t, sent, fields...)
	for features, says := range map[string][]string{
		"split": {"packets stay where the device put them", "queue rx: hds: device", "port.rx.0.copied: 120"},
		"":      {"copy: packets are split", "queue rx: hds: software", "port.rx.0.copied: 280"},
	} {
		var got struct{ Got, Wrong int }
		to := filepath.Join(t.TempDir(), "out.pcap")
		output := onCard(t, features, splitScript, &got, "--rx", "vdev:net_pcap0,rx_pcap="+sent+",tx_pcap=/dev/null",
			"--tx", "vdev:net_pcap1,tx_pcap="+to, "--dir", filepath.Dir(to))
		wants(t, output, says...)
		if got.Got != 280 || got.Wrong != 0 {
			t.Errorf("with %q: %+v, want 280 frames, each cut at 64 bytes", features, got)
		}
		for _, file := range []string{to, filepath.Join(filepath.Dir(to), "disk.pcap")} {
			if !slices.Equal(harness.TsharkLines(t, file, fields...), want) {
				t.Errorf("with %q: %s is not what was sent", features, file)
			}
		}
	}
}

// TestCardCounters has the device lose frames, as a script keeps their buffers: the report has the card's own name for it,
// and the number is that of the figure.
func TestCardCounters(t *testing.T) {
	harness.Need(t, "dpdk", "scapy")
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", cardFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	var got struct{ Got int }
	output := onCard(t, "split,counters", splitScript, &got, "--rx", "vdev:net_pcap0,rx_pcap="+sent+",tx_pcap=/dev/null",
		"--tx", "vdev:net_pcap1,tx_pcap=/dev/null", "--dir", dir, "--bufs", "64", "--keep")
	lost := regexp.MustCompile(`port: the device counted rx_out_of_buffer (\d+)\n`).FindStringSubmatch(output)
	if lost == nil || lost[1] == "0" || !strings.Contains(output, "nic_missed: "+lost[1]+"\n") {
		t.Errorf("what the device lost is not in the report, or another number in the figures:\n%s", output)
	}
}

// waitScript sends 64 numbered frames, the first 48 at given times 3 ms apart, the rest with times that go back or none,
// and ends as soon as the device has them all. It prints the first time.
const waitScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ device = "" }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 } },
  interfaces = { { name = "port", address = args.device, tx = { accurate_send = true,
    queues = { { name = "tx", id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } } } } } } }
local tx = s:tx_queue("port")
local b = tx:alloc(64)
b:fill(tx:template{ eth_dst = "02:00:00:00:00:02", payload_bytes = 100, vary = { udp_src = { start = 1000, step = 1 } } })
local t0 = daqiri.time("now + 200ms")
local first, times = math.floor(s:clock() + (t0 - daqiri.now()) * 1e9), {}
for i = 1, 48 do times[i] = first + (i - 1) * 3e6 end
for i = 49, 64 do times[i] = i % 2 == 0 and times[48] - i * 1e6 or 0 end
b:tx_times(times)
s:start()
assert(tx:send(b))
for _ = 1, 30000 do -- both counters: the queue's thread writes one after the other
  local q = s:stats().port.tx[0]
  if q.out == 64 and q.timed == 56 then break end
  daqiri.sleep(0.001)
end
print(daqiri.json{ first = t0.ns, timed = s:stats().port.tx[0].timed })
`

// numbersIn are the numbers behind a word in a file, one a line.
func numbersIn(t *testing.T, file, word string) (numbers []int64) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, word); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// TestCardWaits has the device send at given times: it is asked for the right ones, by its own clock, and DPDK's capture
// has every frame, in order, none before its time. Where it can't, the queue's thread keeps to the same times.
func TestCardWaits(t *testing.T) {
	harness.Need(t, "dpdk", "tshark")
	for features, says := range map[string][]string{
		"waits": {"timed send: hardware"},
		"":      {"timed send: software", "accurate_send: the device sends at no given times: software does it"},
	} {
		var got struct {
			First int64
			Timed int
		}
		dir := t.TempDir()
		file, record := filepath.Join(dir, "sent.pcap"), filepath.Join(dir, "record")
		t.Setenv("DAQIRI_NIC_RECORD", record)
		wants(t, onCard(t, features, waitScript, &got, "--device", "vdev:net_pcap0,tx_pcap="+file), says...)
		if got.Timed != 56 {
			t.Errorf("with %q: %d packets had a time, want 56", features, got.Timed)
		}
		lines := harness.TsharkLines(t, file, "udp.srcport", "frame.time_epoch")
		if len(lines) != 64 {
			t.Fatalf("with %q: %d frames, want 64", features, len(lines))
		}
		for k, line := range lines {
			port, at, _ := strings.Cut(line, "\t")
			seconds, _ := strconv.ParseFloat(at, 64)
			due := float64(got.First+int64(min(k, 47))*3e6) / 1e9
			if port != strconv.Itoa(1000+k) || seconds < due-0.001 {
				t.Fatalf("with %q: frame %d has port %s and left %.6f s after its time", features, k, port, seconds-due)
			}
		}
		if features == "" {
			continue
		}
		asked := numbersIn(t, record, "asked")
		if len(asked) < 10 { // on a busy machine some are late already when they reach it
			t.Fatalf("the device was asked for %d times, want 48", len(asked))
		}
		last := int64(-1)
		for _, at := range asked {
			k := (at - got.First + 1.5e6) / 3e6
			if off := at - got.First - k*3e6; k <= last || k > 47 || off < -1e6 || off > 1e6 {
				t.Fatalf("the device was asked for %d ns behind the first time, after packet %d", at-got.First, last)
			}
			last = k
		}
		if lost := numbersIn(t, record, "lost"); len(lost) > 0 {
			t.Errorf("%d frames were still in the device when it was stopped", len(lost))
		}
	}
}

// stampScript sends 300 frames over a device that receives its own packets, 300 in a second, into a capture.
const stampScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ device = "", dir = "." }
local function queues(name, timeout)
  return { { name = name, id = 0, cpu_core = -1, batch_size = 32, timeout_us = timeout, memory_regions = { "packets" } } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = { { name = "port", address = args.device, rx = { hardware_timestamps = true, queues = queues("rx", 200) },
    tx = { queues = queues("tx") } } } } } }
local rx, tx, got = s:rx_queue("port"), s:tx_queue("port"), 0
s:pipe(rx, s:write_pcap{ name = "disk", dirs = { args.dir } })
rx:on_burst(function(b)
  got = got + b.n
  if got == 300 then s:stop("all there") end
end)
s:start()
tx:pace{ pps = 300 }
tx:transmit{ template = tx:template{ eth_dst = "02:00:00:00:00:02", payload_bytes = 100 }, count = 300 }
s:run{ seconds = 30 }
print(daqiri.json{ got = got })
`

// TestCardStamps has the device stamp what it receives by its own clock: the capture has the true times.
func TestCardStamps(t *testing.T) {
	harness.Need(t, "dpdk", "tshark")
	var got struct{ Got int }
	dir := t.TempDir()
	record := filepath.Join(dir, "record")
	t.Setenv("DAQIRI_NIC_RECORD", record)
	output := onCard(t, "stamps", stampScript, &got, "--device", "vdev:net_ring0", "--dir", dir)
	wants(t, output, "receive timestamps: hardware")
	lines, truth := harness.TsharkLines(t, filepath.Join(dir, "disk.pcap"), "frame.time_epoch"), numbersIn(t, record, "received")
	if got.Got != 300 || len(lines) != 300 || len(truth) != 300 {
		t.Fatalf("%d packets, %d in the file, %d by the device, want 300", got.Got, len(lines), len(truth))
	}
	for k, line := range lines {
		whole, part, _ := strings.Cut(line, ".")
		ns, err := strconv.ParseInt(whole+part, 10, 64)
		if off := ns - truth[k]; err != nil || off < -1e6 || off > 1e6 {
			t.Fatalf("packet %d: %s, %d ns off what the device saw", k, line, off)
		}
	}
	wants(t, onCard(t, "", stampScript, &got, "--device", "vdev:net_ring0", "--dir", t.TempDir()),
		"receive timestamps: software", "hardware_timestamps: the device stamps no packets: software does it")
}

// rulesScript sends packets to four ports over a device that receives its own packets, before and after flows come and go: it prints
// which flow ids came each time. 100 flows come and go in between.
const rulesScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ isolation = false }
local function queues(name, timeout)
  return { { name = name, id = 0, cpu_core = -1, batch_size = 32, timeout_us = timeout, memory_regions = { "packets" } } }
end
local function flow(port, id) return { name = "to " .. port, id = id, match = { udp_dst = port }, action = { type = "queue", id = 0 } } end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = { { name = "port", address = "vdev:net_ring0", tx = { queues = queues("tx") },
    rx = { queues = queues("rx", 200), flows = { flow(7001, 11), flow("7002-7002", 12) } } } } } } }
local rx, tx, i, seen, n, rounds = s:rx_queue("port"), s:tx_queue("port"), s:interface("port"), {}, 0, {}
rx:on_burst(function(b)
  for _, id in ipairs(b:flow_ids()) do
    n = n + 1
    seen[id > 50 and "new" or tostring(id)] = (seen[id > 50 and "new" or tostring(id)] or 0) + 1
  end
end, { policy = "wait" })
s:start()
local function round()
  seen, n = {}, 0
  for port = 7001, 7004 do
    tx:transmit{ template = tx:template{ eth_dst = "02:00:00:00:00:02", udp_dst = port, payload_bytes = 100 }, count = 10 }
    while n < 10 * (port - 7000) do daqiri.sleep(0.001) end
  end
  rounds[#rounds + 1] = seen
end
round()
local many = {}
for k = 1, 100 do many[k] = { match = { udp_dst = 8000 + k }, action = { type = "queue", id = 0 } } end
many[101] = { match = { udp_dst = 7003 }, action = { type = "queue", id = 0 } }
assert(i:add_flows("more", many))
round()
i:delete_flows("more")
i:delete_flows(11)
round()
print(daqiri.json(rounds))
`

// TestCardRules has the device mark packets by our flows, by rules one by one and by templates, in which they come and go in
// batches. Where it can't take them all, software has them all.
func TestCardRules(t *testing.T) {
	harness.Need(t, "dpdk")
	want := []map[string]int{{"11": 10, "12": 10, "0": 20}, {"11": 10, "12": 10, "new": 10, "0": 10}, {"12": 10, "0": 30}}
	for _, c := range []struct {
		features, says string
		lines          map[string]int // of the card's record
	}{
		{"flows", "marks them\n", map[string]int{"created": 103, "enqueued": 0, "destroyed": 103, "marked": 60}},
		{"flows,templates", "marks them; rules by templates\n", map[string]int{
			"created": 0, "enqueued": 103, "destroyed": 103, "marked": 60, "table": 2, "table gone": 1, "pushed": 8}},
		{"flows,templates,narrow", "flows: software: the device has not taken a rule\n", map[string]int{"marked": 20, "enqueued": 103, "destroyed": 2}},
	} {
		t.Run(c.features, func(t *testing.T) {
			var got []map[string]int
			record := filepath.Join(t.TempDir(), "record")
			t.Setenv("DAQIRI_NIC_RECORD", record)
			wants(t, onCard(t, c.features, rulesScript, &got), c.says)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("flow ids %v, want %v", got, want)
			}
			for word, n := range c.lines {
				if have := len(numbersIn(t, record, word)); have != n {
					t.Errorf("the card recorded %q %d times, want %d", word, have, n)
				}
			}
		})
	}
}

// tunnelFrames writes a capture of frames with tags and in tunnels, good ones and others, 20 times.
const tunnelFrames = `
import sys
from scapy.all import *
def inner(n): return Ether(src="02:00:00:00:01:01", dst="02:00:00:00:01:02")/IP(src="10.1.0.1", dst="10.1.0.2")/UDP(sport=n, dport=5000)/Raw(bytes(n % 90))
ether, ip = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02"), IP(src="192.0.2.1", dst="192.0.2.2")
def tag(v): return ether/Dot1Q(vlan=v, prio=3)
plain = ip/UDP(sport=1, dport=5000)/Raw(b"x" * 30)
def vxlan(n, ip=ip, vni=5, **udp): return ether/ip/UDP(sport=50000, dport=4789, **udp)/VXLAN(vni=vni, flags=8)/inner(n)
def gre(n, tni): return ether/IP(src="192.0.2.3", dst="192.0.2.2")/GRE(key_present=1, key=tni << 8 | 9, proto=0x6558)/inner(n)
frames = []
for k in range(20):
  frames += [tag(7)/plain, tag(7)/Dot1Q(vlan=9)/plain, tag(8)/plain, ether/plain, vxlan(100 + k), vxlan(200 + k, chksum=0),
    vxlan(300 + k, vni=6), vxlan(400 + k, chksum=0x1234), vxlan(500 + k, ip=IP(src="192.0.2.1", dst="192.0.2.2", chksum=0x1234)),
    vxlan(600 + k)/Padding(bytes(20)), gre(700 + k, 6), gre(800 + k, 8), tag(7)/vxlan(900 + k).payload]
wrpcap(sys.argv[1], frames)
`

// tunnelScript takes tags and tunnels off what a capture plays, sends it on, and reports of which flows it was.
const tunnelScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ rx = "", tx = "" }
local function queues(name, timeout)
  return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = timeout, memory_regions = { "packets" } } } }
end
local function off(kind, key, id, src, flow_id)
  return { type = "tunnel_decap", tunnel = { type = kind, [key] = id, outer_eth_src = "02:00:00:00:00:01", outer_eth_dst = "02:00:00:00:00:02",
    outer_ipv4_src = src, outer_ipv4_dst = "192.0.2.2", flow_id = flow_id } }
end
local to = { type = "queue", id = 0 }
local rx = queues("rx", 200)
rx.flows = { { name = "tag", id = 11, match = { vlan_id = 7, udp_dst = 5000, ipv4_src = "192.0.2.1" }, actions = { { type = "vlan_pop" }, to } },
  { name = "vxlan", id = 12, match = { udp_dst = 5000, ipv4_src = "10.1.0.1" }, actions = { off("vxlan", "vni", 5, "192.0.2.1"), to } },
  { name = "nvgre", id = 13, actions = { off("nvgre", "tni", 6, "192.0.2.3", 9), to } },
  { name = "rest", id = 14, match = { udp_dst = 5000, vlan_id = 8, ipv4_src = "192.0.2.1" }, action = to } }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = { { name = "port", address = args.rx, rx = rx }, { name = "out", address = args.tx, tx = queues("tx") } } } } }
local q, flows = s:rx_queue("port"), {}
q:on_burst(function(b) for _, id in ipairs(b:flow_ids()) do flows[tostring(id)] = (flows[tostring(id)] or 0) + 1 end end, { policy = "wait" })
s:pipe(q, s:tx_queue("out"))
s:run{ seconds = 0.5 }
print(daqiri.json{ flows = flows })
`

// TestCardTransforms has the device take tags and tunnels off: what comes out, of which flows, and what is dropped, a tunnel
// with a wrong checksum too, is what software makes of the same frames, and the inner frames are scapy's.
func TestCardTransforms(t *testing.T) {
	harness.Need(t, "dpdk", "scapy", "tshark")
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.pcap")
	if out, err := exec.Command("/usr/bin/python3", "-c", tunnelFrames, sent).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	fields := []string{"frame.len", "eth.src", "vlan.id", "udp.srcport", "udp.payload", "udp.checksum.status"}
	want := map[string]int{"0": 60, "11": 40, "12": 80, "13": 20, "14": 20}
	var frames []string
	for _, c := range []struct {
		features, says string
		takenOff       int
	}{
		{"", "transforms of receive flows: software", 0},
		{"flows", "transforms of receive flows: software: flows 11, 12, 13\n", 0},
		{"flows,transforms", "transforms of receive flows: the device: flows 11, 12, 13\n", 140},
		{"flows,templates,transforms", "transforms of receive flows: the device: flows 11, 12, 13\n", 140},
	} {
		var got struct{ Flows map[string]int }
		to, record := filepath.Join(t.TempDir(), "out.pcap"), filepath.Join(t.TempDir(), "record")
		t.Setenv("DAQIRI_NIC_RECORD", record)
		output := onCard(t, c.features, tunnelScript, &got, "--rx", "vdev:net_pcap0,rx_pcap="+sent, "--tx", "vdev:net_pcap1,tx_pcap="+to)
		wants(t, output, c.says, "port.rx.0.transformed: 140\n", "dropped port.rx.0.bad_tunnel: 40 ", "flow vxlan (12) of port.rx.0: 120 packets")
		if !reflect.DeepEqual(got.Flows, want) {
			t.Errorf("with %q: packets by flow %v, want %v", c.features, got.Flows, want)
		}
		lines := harness.TsharkLines(t, to, fields...)
		if frames == nil {
			frames = lines
		}
		if len(lines) != 220 || !slices.Equal(lines, frames) {
			t.Errorf("with %q: %d frames, not those that software makes", c.features, len(lines))
		}
		var inner int
		for _, line := range lines {
			if f := strings.Split(line, "\t"); f[1] == "02:00:00:00:01:01" && f[2] == "" && f[5] == "1" {
				inner++
			}
		}
		if inner != 100 {
			t.Errorf("with %q: %d whole frames of scapy's came out of tunnels, want 100", c.features, inner)
		}
		if c.takenOff > 0 {
			if n := len(numbersIn(t, record, "took off")); n != c.takenOff {
				t.Errorf("with %q: the device took headers off %d frames, want %d", c.features, n, c.takenOff)
			}
		}
	}
}

// popScript sends tagged frames over a device that receives its own packets, while flows that take the tag off come and go: it prints
// how many came without one of these flows' ids or with the tag.
const popScript = `
local daqiri = require "daqiri"
local function queues(name, timeout)
  return { { name = name, id = 0, cpu_core = -1, batch_size = 32, timeout_us = timeout, memory_regions = { "packets" } } }
end
local function pop(id)
  return { id = id, match = { vlan_id = 7, udp_dst = 7001 }, actions = { { type = "vlan_pop" }, { type = "queue", id = 0 } } }
end
local first = pop(11)
first.name = "first"
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 2048, buf_size = 2048 } },
  interfaces = { { name = "port", address = "vdev:net_ring0", rx = { queues = queues("rx", 200), flows = { first } },
    tx = { queues = queues("tx"), flows = { { name = "tag", id = 1, match = { udp_dst = 7001 },
      actions = { { type = "vlan_push", vlan_id = 7 } } } } } } } } } }
local rx, tx, i, id, n, wrong = s:rx_queue("port"), s:tx_queue("port"), s:interface("port"), 11, 0, 0
rx:on_burst(function(b)
  local ids, len = b:flow_ids(), b:lengths()
  for k = 1, b.n do
    n = n + 1
    if ids[k] ~= id or len[k] ~= 142 then wrong = wrong + 1 end
  end
end, { policy = "wait" })
s:start()
local function round()
  local want = n + 10
  tx:transmit{ template = tx:template{ eth_dst = "02:00:00:00:00:02", udp_dst = 7001, payload_bytes = 100 }, count = 10 }
  while n < want do daqiri.sleep(0.001) end
end
round()
i:add_flows("more", { { match = { udp_dst = "7000-7002" }, action = { type = "queue", id = 0 } } })
round()
i:delete_flows("more")
round()
i:delete_flows(11)
id = i:add_flows("again", { pop() })[1]
round()
print(daqiri.json{ n = n, wrong = wrong })
`

// TestCardTransformsChange lets another rule take the flows to software and back: each tag is taken off once.
func TestCardTransformsChange(t *testing.T) {
	harness.Need(t, "dpdk")
	for features, takenOff := range map[string]int{"flows": 0, "flows,transforms": 20, "flows,templates,transforms": 20} {
		var got struct{ N, Wrong int }
		record := filepath.Join(t.TempDir(), "record")
		t.Setenv("DAQIRI_NIC_RECORD", record)
		wants(t, onCard(t, features, popScript, &got), "port.rx.0.transformed: 40\n", "flows: software: two of them may match one packet\n")
		if n := len(numbersIn(t, record, "took off")); got.N != 40 || got.Wrong != 0 || n != takenOff {
			t.Errorf("with %q: %+v, the device took %d tags off, want 40 packets, none of them wrong, and %d", features, got, n, takenOff)
		}
	}
}
