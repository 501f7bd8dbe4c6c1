package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// dpdkExchange waits for frames, and then sends 50 of each kind: a frame in hexadecimal and the field that changes.
const dpdkExchange = `
local daqiri = require "daqiri"
local args = daqiri.args{ device = "", want = 0, frames = "" }
local function queues(name, timeout)
  return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, timeout_us = timeout, memory_regions = { "packets" } } } }
end
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
  interfaces = { { name = "port", address = args.device, rx = queues("rx", 200), tx = queues("tx") } } } } }
local tx, got, sent = s:tx_queue("port"), 0, 0
s:rx_queue("port"):on_burst(function(b)
  got = got + b.n
end, { policy = "wait" })
s:start()
print "ready"
while got < args.want do daqiri.sleep(0.01) end
for kind in args.frames:gmatch "[^,]+" do
  local hex, field = kind:match "(%x+):(.+)"
  local bytes = hex:gsub("%x%x", function(x) return string.char(tonumber(x, 16)) end)
  tx:transmit{ template = tx:template{ bytes = bytes, vary = { [field] = { start = 1000, step = 7 } } }, count = 50 }
  sent = sent + 50
  while s:stats().port.tx[0].out < sent do daqiri.sleep(0.001) end
end
print "sent"
s:run{ seconds = 300 }
`

// dpdkKinds prints frames of all kinds whose checksums a device may compute, with wrong ones.
const dpdkKinds = `
from scapy.all import Ether, Dot1Q, IP, IPv6, UDP, TCP, Raw
e = Ether(src="02:00:00:00:00:02", dst="02:00:00:00:00:01")
v4, v6 = IP(src="192.0.2.1", dst="192.0.2.2", chksum=0x1111), IPv6(src="2001:db8::1", dst="2001:db8::2")
print(",".join(bytes(f / Raw(bytes(range(101)))).hex() + ":" + field for f, field in [
    (e/v4/UDP(dport=7148, chksum=0x2222), "udp_src"), (e/v4/TCP(dport=7148, chksum=0x2222), "tcp_src"),
    (e/v6/UDP(dport=7148, chksum=0x2222), "udp_src"), (e/v6/TCP(dport=7148, chksum=0x2222), "tcp_src"),
    (e/Dot1Q(vlan=7)/v4/UDP(dport=7148, chksum=0x2222), "udp_src"), (e/v4/UDP(dport=7148, chksum=0x2222), "ipv4_id")]), end="")
`

// TestDPDKDevices exchanges frames with the kernel over devices of DPDK's: it gets those that tcpreplay sends, and the
// kernel gets what it sends, with right checksums, whichever side computes them.
func TestDPDKDevices(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "scapy", "tcpreplay", "tcpdump", "tshark")
	python, _ := harness.ScapyPython()
	kinds, err := exec.Command(python, "-c", dpdkKinds).Output()
	if err != nil {
		t.Fatalf("scapy: %v", err)
	}
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	if out, err := exec.Command(python, "-c", rawFrames, sent, "200").CombinedOutput(); err != nil {
		t.Fatalf("scapy: %v\n%s", err, out)
	}
	for _, x := range []struct{ name, device, needs, sums string }{
		{"net_tap", "vdev:net_tap0,iface=dtap0", "root", "checksums of transmissions: by the device"},
		{"net_af_xdp", "vdev:net_af_xdp0,iface=veth0", "xdp", "checksums of transmissions: software"},
	} {
		t.Run(x.name, func(t *testing.T) {
			harness.Need(t, x.needs)
			c := newCable(t)
			peer, iface := c.Send, "veth0"
			if x.name == "net_tap" {
				peer, iface = c.Recv, "dtap0"
				c.In(c.Recv, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
			}
			r := c.dpdkRun(dpdkExchange, "--device", x.device, "--want", "200", "--frames", string(kinds))
			r.wait("ready")
			file := filepath.Join(r.dir, "got.pcap")
			dump := c.Command(peer, "tcpdump", "-Q", "in", "-U", "-Z", "root", "-i", iface, "-w", file, "-c", "300", "ether src 02:00:00:00:00:02")
			var output harness.Buffer
			dump.Stderr = &output
			if err := dump.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = dump.Process.Kill() })
			harness.Until(t, "tcpdump", func() bool { return strings.Contains(output.String(), "listening on") })
			c.In(peer, "tcpreplay", "--quiet", "--pps=5000", "--intf1="+iface, sent)
			r.wait("sent")
			if err := dump.Wait(); err != nil {
				t.Fatalf("tcpdump: %v\n%s", err, output.String())
			}
			r.stop()
			if !strings.Contains(r.out.String(), x.sums) {
				t.Errorf("the report lacks %q:\n%s", x.sums, r.out.String())
			}
			checkKinds(t, file)
		})
	}
}

// checkKinds checks the file that the kernel's end received: six kinds, 50 of each, their fields and checksums.
func checkKinds(t *testing.T, file string) {
	t.Helper()
	lines := harness.TsharkLines(t, file, "vlan.id", "ip.id", "ip.checksum.status", "udp.srcport", "tcp.srcport", "udp.checksum.status", "tcp.checksum.status")
	if len(lines) != 300 {
		t.Fatalf("%d frames, want 300", len(lines))
	}
	for k, line := range lines {
		v := 1000 + 7*(k%50)
		want := []string{
			fmt.Sprintf("\t0x0001\t1\t%d\t\t1\t", v), fmt.Sprintf("\t0x0001\t1\t\t%d\t\t1", v),
			fmt.Sprintf("\t\t\t%d\t\t1\t", v), fmt.Sprintf("\t\t\t\t%d\t\t1", v),
			fmt.Sprintf("7\t0x0001\t1\t%d\t\t1\t", v), fmt.Sprintf("\t0x%04x\t1\t53\t\t1\t", v),
		}[k/50]
		if strings.TrimSpace(line) != strings.TrimSpace(want) {
			t.Fatalf("frame %d: %q, want %q", k, line, want)
		}
	}
}

// dpdkRun runs a script with the dpdk engine in the receiving end of a silent cable.
func (c *cable) dpdkRun(script string, args ...string) *rawRun {
	c.T.Helper()
	harness.Need(c.T, "dpdk")
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		c.T.Fatal(err)
	}
	c.silence()
	r := &rawRun{t: c.T, dir: c.T.TempDir(), done: make(chan error, 1)}
	file := filepath.Join(r.dir, "script.lua")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		c.T.Fatal(err)
	}
	r.cmd = c.Command(c.Recv, append([]string{harness.Built(c.T), "--summary", "full", "--summary-json", "summary.json", file}, args...)...)
	r.cmd.Dir, r.cmd.Env = r.dir, append(os.Environ(), "DAQIRI_DPDK="+lib)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	c.T.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}
