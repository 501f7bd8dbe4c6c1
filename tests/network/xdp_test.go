package network

import (
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// noPorts is how many datagrams an end's kernel got for ports that nothing listens at.
func (c *cable) noPorts(ns string) int {
	c.T.Helper()
	m := regexp.MustCompile(`(?m)^Udp: \d+ (\d+)`).FindStringSubmatch(c.In(ns, "cat", "/proc/net/snmp"))
	if m == nil {
		c.T.Fatal("/proc/net/snmp counts no UDP")
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// hasProgram reports whether an XDP program is attached to the receiving end.
func (c *cable) hasProgram() bool {
	c.T.Helper()
	return strings.Contains(c.In(c.Recv, "ip", "-d", "link", "show", "veth0"), "prog/xdp")
}

// promiscuous reports whether the receiving end takes frames to any address.
func (c *cable) promiscuous() bool {
	c.T.Helper()
	return !strings.Contains(c.In(c.Recv, "ip", "-d", "link", "show", "veth0"), "promiscuity 0")
}

const xdpIsolated = `        flow_isolation: true
        flows:
        - {name: one, id: 11, match: {udp_dst: 7148}, action: {type: queue, id: 0}}`

// TestXDPIsolation: a flow's packets are ours alone, all others the kernel's; a killed program leaves nothing attached.
func TestXDPIsolation(t *testing.T) {
	harness.Need(t, "xdp")
	program := harness.Built(t)
	c := newCable(t)
	r := c.raw(program, rawFaults, xdpIsolated, "--seconds", "300")
	r.wait("ready")
	if !strings.Contains(r.out.String(), "AF_XDP on veth0") || !c.hasProgram() {
		t.Fatalf("no AF_XDP:\n%s", r.out.String())
	}
	c.permanent()
	before := c.noPorts(c.Recv)
	c.datagrams(7148, 10)
	c.datagrams(9, 7)
	r.wait("got 10\n")
	harness.Until(t, "datagrams at the kernel", func() bool { return c.noPorts(c.Recv) >= before+7 })
	if n := c.noPorts(c.Recv) - before; n != 7 {
		t.Errorf("the kernel got %d datagrams, want 7", n)
	}
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.done
	harness.Until(t, "device without a program", func() bool { return !c.hasProgram() })
	before = c.noPorts(c.Recv)
	c.datagrams(7148, 3)
	harness.Until(t, "datagrams at the kernel after the kill", func() bool { return c.noPorts(c.Recv) >= before+3 })
}

// TestXDPBusy: two programs want one device.
func TestXDPBusy(t *testing.T) {
	harness.Need(t, "xdp")
	program := harness.Built(t)
	c := newCable(t)
	r := c.raw(program, rawFaults, "", "--seconds", "300")
	r.wait("ready")
	if !c.promiscuous() {
		t.Error("the device hands over frames to its own address only")
	}
	second := c.raw(program, rawFaults, "", "--seconds", "1")
	second.end(4)
	if !strings.Contains(second.out.String(), "veth0 has an XDP program already: another session or program uses it") {
		t.Errorf("the second program says:\n%s", second.out.String())
	}
	c.permanent()
	c.datagrams(7148, 2)
	r.wait("got 2\n")
	_ = r.cmd.Process.Signal(os.Interrupt)
	r.end(130)
	if c.hasProgram() || c.promiscuous() {
		t.Error("a program is still attached, or the device still promiscuous")
	}
}

// jumbo raises the MTU of both ends.
func (c *cable) jumbo() {
	c.T.Helper()
	for _, ns := range []string{c.Send, c.Recv} {
		c.In(ns, "ip", "link", "set", "veth0", "mtu", "9000")
	}
}

// TestXDPJumbo receives datagrams that take several buffers of AF_XDP's, whose checksums the sender has left unfinished.
func TestXDPJumbo(t *testing.T) {
	harness.Need(t, "xdp", "tshark", "scapy")
	program := harness.Built(t)
	c := newCable(t)
	c.jumbo()
	c.In(c.Send, "ethtool", "-K", "veth0", "tx", "on")
	r := c.raw(program, `
local daqiri = require "daqiri"
local s = daqiri.open("raw.yaml", { set = { ["memory_regions.m.buf_size"] = 9018 } })
`+recordTwenty, "")
	r.wait("ready")
	c.permanent()
	python, _ := harness.ScapyPython()
	c.In(c.Send, python, "-c", `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20): s.sendto(i.to_bytes(4) * 2225, ("`+harness.RecvAddr+`", 7148))
`)
	r.end(0)
	got := payloads(t, filepath.Join(r.dir, "cap.pcap"))
	for i, d := range got {
		if f := strings.Split(d, "\t"); len(f) != 5 || f[3] != "1" || len(f[4]) != 2*8900 {
			t.Errorf("datagram %d: tshark says: %.200s", i+1, d)
		}
	}
	if len(got) != 20 {
		t.Errorf("%d datagrams of 20 in the file", len(got))
	}
}

// TestXDPSend sends packets of many lengths, up to several buffers of AF_XDP's, as the peer's kernel sees them. Then the MTU
// is lowered, and raised: what it does not allow is counted, with what to do, and the next packets go.
func TestXDPSend(t *testing.T) {
	harness.Need(t, "xdp", "tcpdump", "tshark")
	program := harness.Built(t)
	c := newCable(t)
	c.jumbo()
	file := filepath.Join(t.TempDir(), "sent.pcap")
	dump := c.Command(c.Send, "tcpdump", "-i", "veth0", "-w", file, "-U", "-s", "10000", "-B", "32768", "--immediate-mode", "udp port 7148") // room for all

	output := new(harness.Buffer)
	dump.Stderr = output
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dump.Process.Kill(); _ = dump.Wait() })
	harness.Until(t, "tcpdump", func() bool { return strings.Contains(output.String(), "listening on") })
	lengths := []int{18, 64, 1000, 1472, 2000, 4000, 8000, 8958}
	script := `
local daqiri = require "daqiri"
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "m", kind = "host", affinity = 0, num_bufs = 256, buf_size = 9018 } },
  interfaces = { { name = "port", address = "veth0", tx = { queues = {
    { name = "tx", id = 0, cpu_core = -1, batch_size = 16, memory_regions = { "m" } } } } } } } } }
local tx, sent = s:tx_queue("port"), 0
for _, line in ipairs(s:report()) do print(line) end
s:start()
for _, n in ipairs{ ` + strings.Trim(strings.ReplaceAll(fmt.Sprint(lengths), " ", ","), "[]") + ` } do
  tx:transmit{ count = 100, template = tx:template{ payload_bytes = n, udp_dst = 7148, eth_dst = "02:00:00:00:00:77" } }
  sent = sent + 100
  repeat s:measure{ seconds = 0.02 } until s:stats().port.tx[0].out == sent
end
print "lower it"
local function send(port, until_this)
  local long = tx:template{ payload_bytes = 4000, udp_dst = port, eth_dst = "02:00:00:00:00:77" }
  repeat
    tx:transmit{ count = 1, template = long }
    s:measure{ seconds = 0.02 }
  until until_this(s:stats().port.tx[0])
end
send(7149, function(q) return (q.dropped_by.too_long or 0) >= 3 end)
local out = s:stats().port.tx[0].out
print "raise it"
send(7149, function(q) return q.out > out end)
s:stop("all sent")
`
	r := c.raw(program, script, "")
	r.wait("lower it")
	c.In(c.Recv, "ip", "link", "set", "veth0", "mtu", "2000")
	r.wait("raise it")
	c.In(c.Recv, "ip", "link", "set", "veth0", "mtu", "9000")
	r.end(0)
	if !strings.Contains(r.out.String(), "port.tx.0.too_long: ") || !strings.Contains(r.out.String(), "raise buf_size or the MTU") {
		t.Errorf("what the MTU does not allow is not reported:\n%s", r.out.String())
	}
	if !strings.Contains(r.out.String(), "AF_XDP on veth0") {
		t.Errorf("no AF_XDP:\n%s", r.out.String())
	}
	harness.Until(t, "packets in the file", func() bool { return len(harness.PcapLengths(file)) == 100*len(lengths) })
	for i, n := range harness.PcapLengths(file) {
		if n != lengths[i/100]+42 {
			t.Fatalf("packet %d has %d bytes, want %d", i, n, lengths[i/100]+42)
		}
	}
	for i, d := range payloads(t, file) {
		if f := strings.Split(d, "\t"); f[3] != "1" {
			t.Fatalf("datagram %d: tshark says of its checksum: %.200s", i+1, d)
		}
	}
}

// leaveBy has the sending end's kernel use one of its transmit queues for all that it sends, of `of`.
func (c *cable) leaveBy(queue, of int) {
	c.T.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(c.Host("nproc", "--all")))
	if err != nil {
		c.T.Fatal(err)
	}
	all := fmt.Sprintf("%x", new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(n)), big.NewInt(1)))
	for at := len(all) - 8; at > 0; at -= 8 {
		all = all[:at] + "," + all[at:] // the kernel's way to write masks
	}
	for k := range of {
		mask := "0"
		if k == queue {
			mask = all
		}
		c.In(c.Send, "bash", "-c", fmt.Sprintf("echo %s >/sys/class/net/veth0/queues/tx-%d/xps_cpus", mask, k))
	}
}

// redirected is how many frames the receiving device gave to AF_XDP by one of its queues, as its driver counts.
func (c *cable) redirected(queue int) int {
	c.T.Helper()
	m := regexp.MustCompile(fmt.Sprintf(`rx_queue_%d_xdp_redirect: (\d+)`, queue)).
		FindStringSubmatch(c.In(c.Recv, "ethtool", "-S", "veth0"))
	if m == nil {
		c.T.Fatal("ethtool -S counts no redirected frames")
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

const xdpHomes = `
local daqiri = require "daqiri"
local s = daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "m0", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 1600 },
                     { name = "m1", kind = "host", affinity = 0, num_bufs = 1024, buf_size = 1600 } },
  interfaces = { { name = "port", address = "veth0", rx = { flow_isolation = true,
    queues = { { name = "q0", id = 0, cpu_core = -1, batch_size = 16, timeout_us = 500, memory_regions = { "m0" } },
               { name = "q1", id = 1, cpu_core = -1, batch_size = 16, timeout_us = 500, memory_regions = { "m1" } } },
    flows = { { name = "one", id = 11, match = { udp_dst = 7148 }, action = { type = "queue", id = 0 } },
              { name = "two", id = 12, match = { udp_dst = 7149 }, action = { type = "queue", id = 1 } } } } } } } } }
for _, line in ipairs(s:report()) do print(line) end
local total = 0
for k = 0, 1 do
  local q = s:rx_queue("port", k)
  s:pipe(q, s:write_pcap{ name = "disk" .. k, dir = ".", prefix = "cap" .. k, policy = "wait" })
  q:on_burst(function(b)
    total = total + b:count(("udp_dst == %d and flow_id == %d"):format(7148 + k, 11 + k))
    print(("got %d"):format(total))
  end)
end
s:after(0, function() print("ready") end)
s:run{ seconds = 300 }
for k = 0, 1 do
  local q = s:stats().port.rx[k]
  print(("q%d: %d in, %d copied"):format(k, q["in"], q.copied))
end
`

// TestXDPHomes receives by two NIC queues into two regions: what comes by a queue's own stays where it is.
func TestXDPHomes(t *testing.T) {
	harness.Need(t, "xdp", "tshark")
	program := harness.Built(t)
	c := cableBetween(t, "2", "2")
	r := c.raw(program, xdpHomes, "")
	r.wait("ready")
	c.permanent()
	total := 0
	for _, d := range []struct{ by, port, n int }{{0, 7148, 40}, {1, 7149, 30}, {1, 7148, 10}, {0, 7149, 5}} {
		c.leaveBy(d.by, 2)
		c.datagrams(d.port, d.n)
		total += d.n
		r.wait(fmt.Sprintf("got %d\n", total))
	}
	if a, b := c.redirected(0), c.redirected(1); a != 45 || b != 40 {
		t.Errorf("the driver counts %d and %d frames, want 45 and 40", a, b)
	}
	_ = r.cmd.Process.Signal(os.Interrupt)
	r.end(130)
	for _, want := range []string{
		"queue q0: direct: packets from NIC queue 0 stay", "queue q1: direct: packets from NIC queue 1 stay",
		"supports no rules for it (ethtool -N)", "q0: 50 in, 10 copied", "q1: 35 in, 5 copied",
	} {
		if !strings.Contains(r.out.String(), want) {
			t.Errorf("the program does not say %q:\n%s", want, r.out.String())
		}
	}
	for k, counts := range [][]int{{40, 10}, {30, 5}} {
		var want []string
		for _, n := range counts {
			for i := range n {
				want = append(want, fmt.Sprintf("%x", fmt.Sprintf("%0100d", i)))
			}
		}
		got := payloads(t, filepath.Join(r.dir, fmt.Sprintf("cap%d.pcap", k)))
		if len(got) != len(want) {
			t.Fatalf("queue %d: %d datagrams in the file, want %d", k, len(got), len(want))
		}
		for i, d := range got {
			if f := strings.Split(d, "\t"); len(f) != 5 || f[3] != "1" || f[4] != want[i] {
				t.Errorf("queue %d, datagram %d: tshark says: %s", k, i+1, d)
			}
		}
	}
}
