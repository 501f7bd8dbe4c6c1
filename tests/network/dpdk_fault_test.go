package network

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// dpdkFaults counts what comes in and, where it is to, sends without end; it reports when it has started.
const dpdkFaults = `
local daqiri = require "daqiri"
local args = daqiri.args{ device = "vdev:net_af_packet0,iface=veth0", second = "", send = false }
local function queues(name)
  return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } }
end
local function open(address)
  return daqiri.open{ daqiri = { cfg = { version = 1, stream_type = "raw", master_core = 0,
    memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
    interfaces = { { name = "port", address = address, rx = queues("rx"), tx = queues("tx") } } } } }
end
local s = open(args.device)
if args.second ~= "" then open(args.second) end
s:rx_queue("port"):on_burst(function() end, { policy = "wait" })
s:start()
if args.send then
  local tx = s:tx_queue("port")
  tx:pace{ pps = 20000 }
  tx:transmit{ template = tx:template{ eth_dst = "02:00:00:00:00:02", ipv4_src = "10.0.0.1", ipv4_dst = "10.0.0.2",
    udp_src = 4000, udp_dst = 7148, payload_bytes = 60 } }
end
print "ready"
s:run{ seconds = 300 }
`

// silence leaves nothing on the cable but what a test sends.
func (c *cable) silence() {
	c.T.Helper()
	for _, ns := range []string{c.Send, c.Recv} {
		c.In(ns, "sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/veth0/disable_ipv6")
	}
}

// dpdkFaulty runs dpdkFaults in the receiving end of a silent cable.
func (c *cable) dpdkFaulty(args ...string) *rawRun {
	c.T.Helper()
	return c.dpdkRun(dpdkFaults, args...)
}

// stop ends the run as Ctrl-C does; its ledger has to add up.
func (r *rawRun) stop() string { return r.stopWith(130) }

// stopWith is stop of a run that ends with another code.
func (r *rawRun) stopWith(code int) string {
	r.t.Helper()
	_ = r.cmd.Process.Signal(os.Interrupt)
	summary := r.end(code)
	if !strings.Contains(r.out.String(), "every packet is accounted for") {
		r.t.Errorf("the ledger does not add up:\n%s", r.out.String())
	}
	return summary
}

// received is how many frames the kernel has got on an interface of one end.
func (c *cable) received(ns, iface string) int {
	c.T.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(c.In(ns, "cat", "/sys/class/net/"+iface+"/statistics/rx_packets")))
	if err != nil {
		c.T.Fatal(err)
	}
	return n
}

// TestDPDKStopped stops the process while more frames come than the device's ring holds: each is in the ledger.
func TestDPDKStopped(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "scapy", "tcpreplay")
	c := newCable(t)
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	python, _ := harness.ScapyPython()
	c.Host(python, "-c", rawFrames, sent, "2000")
	r := c.dpdkFaulty()
	r.wait("ready")
	_ = r.cmd.Process.Signal(syscall.SIGSTOP)
	c.In(c.Send, "tcpreplay", "--quiet", "--topspeed", "--intf1=veth0", sent)
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
	c.In(c.Send, "tcpreplay", "--quiet", "--pps=1000", "--limit=10", "--intf1=veth0", sent)
	summary := []byte(r.stop())
	in, lost := figure(t, summary, "in"), figure(t, summary, "kernel_dropped")
	if in+lost != 2010 || lost == 0 {
		t.Errorf("%d frames came in and %d are reported as dropped by the kernel, of 2010 sent\n%s", in, lost, r.out.String())
	}
}

// TestDPDKIdle has an idle queue sleep, also after its interface was down, and wake for frames. Without its descriptor it
// looks ten thousand times a second.
func TestDPDKIdle(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "ip", "scapy", "tcpreplay")
	c := newCable(t)
	sent := filepath.Join(t.TempDir(), "sent.pcap")
	python, _ := harness.ScapyPython()
	c.Host(python, "-c", rawFrames, sent, "10")
	r := c.dpdkFaulty()
	r.wait("ready")
	for _, how := range []string{"up", "up again"} {
		before := r.wakes()
		time.Sleep(time.Second)
		if n := r.wakes() - before; n > 2000 {
			t.Errorf("%s: an idle second has %d sleeps", how, n)
		}
		c.In(c.Send, "tcpreplay", "--quiet", "--pps=1000", "--intf1=veth0", sent)
		c.In(c.Recv, "ip", "link", "set", "veth0", "down")
		r.wait("network is down") // the first time at least, so that the run always ends with an error
		c.In(c.Recv, "ip", "link", "set", "veth0", "up")
	}
	if in := figure(t, []byte(r.stopWith(5)), "in"); in != 20 {
		t.Errorf("%d frames came in, of 20 sent\n%s", in, r.out.String())
	}
}

// wakes is how often the program's threads have gone to sleep.
func (r *rawRun) wakes() (n int) {
	r.t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.cmd.Process.Pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if _, after, ok := strings.Cut(string(text), "\nvoluntary_ctxt_switches:"); ok {
			k, _ := strconv.Atoi(strings.Fields(after)[0])
			n += k
		}
	}
	if n == 0 {
		r.t.Fatal("the program has no threads")
	}
	return n
}

// TestDPDKKilled kills the process: the interface is no longer promiscuous.
func TestDPDKKilled(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "ip")
	c := newCable(t)
	promiscuous := func() bool {
		return !strings.Contains(c.In(c.Recv, "ip", "-d", "link", "show", "veth0"), "promiscuity 0")
	}
	r := c.dpdkFaulty()
	r.wait("ready")
	if !promiscuous() {
		t.Error("the interface is not promiscuous while it is open")
	}
	_ = r.cmd.Process.Kill()
	<-r.done
	if promiscuous() {
		t.Error("the interface is promiscuous after the process was killed")
	}
}

// TestDPDKSendDown sends on an interface that goes down and up again, and away for good.
func TestDPDKSendDown(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "ip")
	for _, x := range []struct{ device, iface string }{
		{"vdev:net_af_packet0,iface=veth0", "veth0"},
		{"vdev:net_tap0,iface=dtap0", "dtap0"},
	} {
		t.Run(x.iface, func(t *testing.T) {
			c := newCable(t)
			peer, iface := c.Send, "veth0"
			if x.iface != "veth0" {
				peer, iface = c.Recv, x.iface
			}
			r := c.dpdkFaulty("--device", x.device, "--send")
			flows := func() {
				n := c.received(peer, iface)
				r.until("frames at the peer", func() bool { return c.received(peer, iface) > n+100 })
			}
			r.wait("ready")
			flows()
			c.In(c.Recv, "ip", "link", "set", x.iface, "down")
			r.wait("network is down")
			c.In(c.Recv, "ip", "link", "set", x.iface, "up")
			flows()
			c.In(c.Recv, "ip", "link", "del", x.iface)
			r.wait("no such device")
			if n := figure(t, []byte(r.stopWith(5)), "send_error"); n == 0 { // errors == 0
				t.Errorf("no frame is reported as not sent\n%s", r.out.String())
			}
			if x.iface == "dtap0" && strings.Contains(r.out.String(), "nic_tx_errors") {
				t.Errorf("frames that the device refused are reported as lost by it, too\n%s", r.out.String())
			}
		})
	}
}

// TestDPDKSmallPages runs where no huge pages are free: the report shows it, and packets flow.
func TestDPDKSmallPages(t *testing.T) {
	harness.Need(t, "dpdk", "netns")
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "dpdk.lua")
	if err := os.WriteFile(script, []byte(dpdkScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t tmpfs none /sys/kernel/mm/hugepages && exec "$@"`, "sh", harness.Built(t),
		"--summary", "full", script, "--device", "vdev:net_ring0", "--count", "100", "--want", "100", "--seconds", "30", "--dir", dir)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{`"marked":100`, "no huge pages were free: DPDK works on small ones", "every packet is accounted for"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%v, and no %q in\n%s", err, want, out)
		}
	}
}

// TestDPDKShares refuses what would lose frames, or parts of them, in silence.
func TestDPDKShares(t *testing.T) {
	harness.Need(t, "dpdk", "netns", "ip")
	for _, x := range []struct{ name, mtu, second, want string }{
		{"two devices on one interface", "1500", "vdev:net_af_packet1,iface=veth0", "the two would share the frames"},
		{"one device twice", "1500", "vdev:net_af_packet0,iface=veth0", "is in use by another interface of this process; hint: s:close()"},
		{"frames longer than the ring's", "9000", "", "hint: framesz=16384,blocksz=16384 in its arguments"},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCable(t)
			c.In(c.Recv, "ip", "link", "set", "veth0", "mtu", x.mtu)
			r := c.dpdkFaulty("--second", x.second)
			r.end(4)
			if !strings.Contains(r.out.String(), x.want) {
				t.Errorf("%q is not in\n%s", x.want, r.out.String())
			}
		})
	}
}

// TestRawKilled kills a program with an AF_PACKET socket: nothing of it is left on the interface.
func TestRawKilled(t *testing.T) {
	harness.Need(t, "netns", "ip")
	c := newCable(t)
	r := c.raw(harness.Built(t), rawFaults, "", "--seconds", "300")
	r.wait("ready")
	_ = r.cmd.Process.Kill()
	<-r.done
	if text := c.In(c.Recv, "ip", "-d", "link", "show", "veth0"); !strings.Contains(text, "promiscuity 0") {
		t.Errorf("the interface is promiscuous after the process was killed:\n%s", text)
	}
	if text := c.In(c.Recv, "cat", "/proc/net/packet"); strings.Count(text, "\n") != 1 {
		t.Errorf("sockets are left:\n%s", text)
	}
}

// TestDPDKNotStarted closes a session that has not started: no device is polled, which DPDK would report with its stack.
func TestDPDKNotStarted(t *testing.T) {
	harness.Need(t, "dpdk")
	script := harness.WriteScript(t, `
local function queues(name) return { queues = { { name = name, id = 0, cpu_core = -1, batch_size = 64, memory_regions = { "packets" } } } } end
local s = require "daqiri".open{ version = 1, stream_type = "raw", master_core = 0,
  memory_regions = { { name = "packets", kind = "host", affinity = 0, num_bufs = 4096, buf_size = 2048 } },
  interfaces = { { name = "port", address = "vdev:net_null0", engine = "dpdk", rx = queues "rx", tx = queues "tx" } } }
s:close()
print "closed"
`)
	lib, err := filepath.Abs(filepath.Join(tree.Root, "libdaqiri_dpdk.so"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness.Built(t), "--summary", "none", script)
	cmd.Env = append(os.Environ(), "DAQIRI_DPDK="+lib)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "closed\n" {
		t.Errorf("%v:\n%s", err, out)
	}
}
