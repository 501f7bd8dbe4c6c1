package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// convertScript converts the packets of a capture and writes them to another.
const convertScript = `
local daqiri = require "daqiri"
local args = daqiri.args{ input = "int16", output = "fp32", dir = "." }
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0, loopback = { mode = "sw", clock = "virtual", seed = 1 },
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 2048 },
    { name = "converted", kind = "host", affinity = 0, num_bufs = 128, buf_size = 4096 } },
  interfaces = { { name = "port", address = "loop0",
    rx = { queues = { { name = "rx", id = 0, cpu_core = -1, batch_size = 64, timeout_us = 100, memory_regions = { "packets" } } } } } } } } }
local rx = s:rx_queue("port")
s:pipe(rx, s:convert{ name = "converted", memory_region = "converted", at = "payload", policy = "wait",
  data_types = { input_type = args.input, output_type = args.output, endianness = "network" } },
  s:write_pcap{ name = "after", dir = args.dir, policy = "wait", manifest = false })
local l = s:run{ seconds = 10 }
print(("%d of %d"):format(l.converted.out, l.converted["in"]))
`

// convertPackets has scapy make a capture of packets whose payloads are 64 random samples: IPv4 with and without options,
// tags and UDP checksums, IPv6, TCP, and short frames that are padded.
const convertPackets = `
import random, sys
from scapy.all import *
random.seed(9)
eth = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
v4, v6, udp = IP(src="10.0.0.1", dst="10.0.0.2"), IPv6(src="fd98::1", dst="fd98::2"), UDP(sport=4000, dport=7148)
heads = [eth/v4/udp, eth/Dot1Q(vlan=7)/v4/udp, eth/IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption(b"\x94\x04\0\0")])/udp,
  eth/v4/UDP(sport=4000, dport=7148, chksum=0), eth/v6/udp, eth/v6/IPv6ExtHdrDestOpt()/udp, eth/v4/TCP(sport=4000, dport=7148, flags="PA")]
packets = [h/Raw(random.randbytes(256)) for h in heads for _ in range(5)]
packets += [Ether(bytes(eth/v4/udp/Raw(random.randbytes(8))) + b"\0" * 10) for _ in range(5)]
wrpcap(sys.argv[1], packets)
`

// convertCheck makes the packets again from the first capture, with what struct makes of the samples, and compares them with
// each of the others: FILE, bytes of a sample, struct's code of what it becomes.
const convertCheck = `
import struct, sys
from scapy.all import *
def expected(p, size, to):
    load = p[Raw].load
    values = struct.unpack(">%d%s" % (len(load) // size, "xbh i"[size]), load)
    if to == "b": values = [max(-128, min(127, v)) for v in values]
    unsummed = UDP in p and p[UDP].chksum == 0
    p[Raw].load = struct.pack("<%d%s" % (len(values), to), *values)
    p[Raw].remove_payload() # what short frames were padded with
    for layer, keys in ((IP, ("len", "chksum")), (IPv6, ("plen",)), (UDP, ("len", "chksum")), (TCP, ("chksum",))):
        for key in keys:
            if layer in p: delattr(p[layer], key)
    if unsummed: p[UDP].chksum = 0
    return bytes(p)
for after, size, to in zip(sys.argv[2::3], sys.argv[3::3], sys.argv[4::3]):
    came, went = rdpcap(sys.argv[1]), rdpcap(after)
    assert len(came) == len(went) == 40, "%s: %d" % (after, len(went))
    for k, (p, q) in enumerate(zip(came, went)):
        want = expected(p, int(size), to)
        assert want == bytes(q), "%s, packet %d:\n%s\n%s" % (after, k, want.hex(), bytes(q).hex())
    print(after, "is right")
`

// TestConvert converts packets that scapy made: each is what scapy and Python's struct make of it.
func TestConvert(t *testing.T) {
	harness.Need(t, "scapy")
	python, _ := harness.ScapyPython()
	program, dir := harness.Built(t), t.TempDir()
	before, script := filepath.Join(dir, "before.pcap"), filepath.Join(dir, "convert.lua")
	if err := os.WriteFile(script, []byte(convertScript), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-c", convertPackets, before).CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	check := []string{"-c", convertCheck, before}
	for _, c := range []struct {
		input, output string
		size, code    string // bytes of an input; an output as struct has it
	}{
		{"int16", "fp32", "2", "f"}, {"int16", "fp16", "2", "e"}, {"int8", "fp64", "1", "d"}, {"int32", "fp32", "4", "f"}, {"int16", "int8", "2", "b"},
	} {
		to := filepath.Join(dir, c.input+" to "+c.output)
		out, err := exec.Command(program, "--source", before, script, "--dir", to, "--input", c.input, "--output", c.output).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "40 of 40\n") {
			t.Fatalf("%v\n%s", err, out)
		}
		check = append(check, filepath.Join(to, "after.pcap"), c.size, c.code)
	}
	out, err := exec.Command(python, check...).CombinedOutput()
	if err != nil || strings.Count(string(out), "is right") != 5 {
		t.Errorf("%v\n%s", err, out)
	}
}
