package network

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// malformed writes a pcap of n frames: cut, with bytes and lengths changed, nested too deep, random. They are of
// kinds that decapFlows look into.
const malformed = `
import random, sys
from scapy.all import *
from scapy.layers.vxlan import VXLAN
out, n = sys.argv[1], int(sys.argv[2])
random.seed(4)
e = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
plain = IP(src="10.0.0.1", dst="10.0.0.2")/UDP(sport=9, dport=9)/Raw(bytes(40))
inner = e/plain
ip = lambda k, **more: IP(src="192.0.2.%d" % k, dst="192.0.2.1", **more)
kinds = [bytes(x) for x in (
    e/ip(1)/UDP(dport=4789)/VXLAN(vni=100, flags=8)/inner, e/ip(1, options=[IPOption_NOP()]*8)/UDP(dport=4789)/VXLAN(vni=100, flags=8)/inner,
    e/ip(2)/GRE()/plain, e/ip(3)/GRE(proto=0x6558, key_present=1, seqnum_present=1, chksum_present=1)/inner,
    e/ip(4)/GRE(proto=0x6558, key_present=1, key=0xabcdef03)/inner, e/Dot1Q(vlan=9)/plain,
    Ether(dst=e.dst, src=e.src, type=0x88a8)/Dot1Q(vlan=8)/Dot1Q(vlan=9)/Dot1Q(vlan=9)/Dot1Q(vlan=9)/plain,
    e/IPv6(src="fd00::1", dst="fd00::2")/IPv6ExtHdrHopByHop()/IPv6ExtHdrFragment()/UDP()/Raw(b"x" * 9), e/plain, e/IP()/TCP(options=[("NOP", 0)] * 8))]
def make():
    f = bytearray(random.choice(kinds))
    if random.random() < 0.1: return bytes(f[:12]) + random.randbytes(random.randint(6, 1502))
    for _ in range(random.randint(0, 4)): f[random.randrange(12, len(f))] = random.choice([0, 1, 0x45, 0x4f, 0x81, 255, random.randrange(256)])
    if random.random() < 0.5: f = f[:random.randint(14, len(f))]
    if random.random() < 0.1: f += random.randbytes(random.randint(1, 60))
    if f[12:14] in (b"\x81\0", b"\x88\xa8"): f = f.ljust(20, b"\0") # less, and the kernel drops it before anybody sees it
    return bytes(f)
wrpcap(out, [Raw(make()) for _ in range(n)], linktype=1)
`

// malformedScript checks every packet in many ways, changes it and writes it.
const malformedScript = `
local daqiri = require "daqiri"
local s = daqiri.open("raw.yaml")
local qs = s:rx_queues("rx_port")
s:pipe(qs, s:write_pcap{ name = "disk", dirs = { "." } })
for _, q in ipairs(qs) do
  q:on_burst(function(b)
    b:select("payload_len > 8 and (ipv4_src in 10.0.0.0/8 or udp_dst == 9 or tcp_dst == 80 or vlan_id == 9)")
    for _, f in ipairs{ "payload_len", "udp_dst", "ipv4_src", "vlan_id" } do b:column(f):max() end
    for k = 1, b.n do b:packet(k):hex() end
  end, { policy = "wait" })
end
s:start()
print "ready"
s:run{ seconds = 300 }
`

// TestRawMalformed sends damaged frames through flows that look into tunnels: all of them are in the ledger.
func TestRawMalformed(t *testing.T) {
	harness.Need(t, "netns", "scapy", "tcpreplay")
	const frames = 5000
	c := newCable(t)
	c.silence()
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	python, _ := harness.ScapyPython()
	c.Host(python, "-c", malformed, sent, strconv.Itoa(frames))
	third := strings.NewReplacer("q1", "q2", "id: 1", "id: 2").Replace(rawSecond)
	r := c.raw(harness.Built(t), malformedScript, rawSecond+"\n"+third+decapFlows)
	r.wait("ready")
	c.In(c.Send, "tcpreplay", "--quiet", "--pps=20000", "--intf1=veth0", sent)
	summary := r.accounts(frames)
	if n := figure(t, summary, "bad_tunnel"); n == 0 {
		t.Errorf("no tunnel is reported as bad\n%s", r.out.String())
	}
	if files, err := os.ReadDir(r.dir); err != nil || len(files) < 3 {
		t.Errorf("files: %v, %v", files, err)
	}
}

// accounts ends the run and compares what came in and what the kernel dropped with what was sent.
func (r *rawRun) accounts(sent int) []byte {
	r.t.Helper()
	summary := []byte(r.stop())
	_, wire, ok := strings.Cut(string(summary), `"wire"`)
	if !ok {
		r.t.Fatalf("no line of the interface in\n%s", summary)
	}
	in, lost := figure(r.t, []byte(wire), "in"), figure(r.t, summary, "kernel_dropped")
	if in+lost != sent {
		r.t.Errorf("%d frames came in and %d are reported as dropped by the kernel, of %d sent\n%s", in, lost, sent, r.out.String())
	}
	return summary
}

// cutTags sends five frames of each length from 14 to 25 bytes, tagged and not.
const cutTags = `
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
s.bind(("veth0", 0))
for kind in (b"\x81\0", b"\x88\xa8", b"\x08\0"):
    for n in range(14, 26):
        for k in range(5): s.send((b"\x02\0\0\0\0\1\x02\0\0\0\0\2" + kind + bytes(20))[:n])
`

// TestRawCutTags sends frames whose tag is cut off, which the kernel frees before any packet socket sees them, and counts
// nowhere but in what the device received: AF_XDP has them all, AF_PACKET what tcpdump has.
func TestRawCutTags(t *testing.T) {
	harness.Need(t, "netns", "tcpdump")
	onDrivers(t, func(t *testing.T, c *cable) {
		const sent, cut = 3 * 12 * 5, 2 * 6 * 5 // less than 20 bytes: two addresses, a tag, a type
		c.silence()
		r := c.raw(harness.Built(t), `
local s = require("daqiri").open("raw.yaml")
s:rx_queue("rx_port"):on_burst(function() end)
s:start()
print "ready"
s:run{ seconds = 300 }
`, "")
		r.wait("ready")
		file := filepath.Join(t.TempDir(), "seen.pcap")
		dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "-U", "-w", file)
		says, err := dump.StderrPipe()
		if err == nil {
			err = dump.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dump.Process.Kill() })
		if _, err := says.Read(make([]byte, 256)); err != nil { // that it listens
			t.Fatal(err)
		}
		received := func() int {
			n, err := strconv.Atoi(strings.TrimSpace(c.In(c.Recv, "cat", "/sys/class/net/veth0/statistics/rx_packets")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := received()
		c.In(c.Send, "python3", "-c", cutTags)
		harness.Until(t, "the device to have them", func() bool { return received() == before+sent })
		want := sent
		if c.Driver == "AF_PACKET" {
			want -= cut
			harness.Until(t, "tcpdump to have the rest", func() bool { return len(harness.PcapLengths(file)) >= want })
		}
		r.accounts(want)
		_ = dump.Process.Signal(os.Interrupt)
		_ = dump.Wait()
		if n := len(harness.PcapLengths(file)); c.Driver == "AF_PACKET" && n != want {
			t.Errorf("tcpdump has %d frames of %d, want all but the %d with a cut tag", n, sent, cut)
		}
	})
}

// TestRawKeepsAll keeps all that comes, until the queue has no burst descriptor: what waits in the kernel's ring
// at the stop is counted, too.
func TestRawKeepsAll(t *testing.T) {
	harness.Need(t, "netns", "scapy", "tcpreplay")
	const frames = 2000
	c := newCable(t)
	c.silence()
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	python, _ := harness.ScapyPython()
	c.Host(python, "-c", rawFrames, sent, strconv.Itoa(frames))
	r := c.raw(harness.Built(t), `
local s = require("daqiri").open("raw.yaml", { set = { rx_meta_buffers = 16 } })
local kept = {}
s:rx_queue("rx_port"):on_burst(function(b) kept[#kept + 1] = b:keep() end, { policy = "wait" })
s:start()
print "ready"
s:run{ seconds = 300 }
`, "")
	r.wait("ready")
	c.In(c.Send, "tcpreplay", "--quiet", "--pps=5000", "--intf1=veth0", sent)
	if n := figure(t, r.accounts(frames), "no_burst_buffer"); n == 0 {
		t.Errorf("no frame is reported as without a descriptor\n%s", r.out.String())
	}
}
