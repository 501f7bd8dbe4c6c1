package tests

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A cable is two network namespaces joined by a veth pair: `send` with 10.98.0.1 and `recv` with 10.98.0.2. Nothing
// in them touches the host's own network, and their names are this test's alone.
type cable struct {
	t          *testing.T
	send, recv string
	device     string // of raw interfaces at the receiving end, instead of veth0
	driver     string // that raw has to get there, where it matters
}

const (
	sendAddr = "10.98.0.1"
	recvAddr = "10.98.0.2"
)

func newCable(t *testing.T) *cable { return cableOf(t, "1") }

// onDrivers runs a test on a cable on which raw interfaces get AF_XDP, and on one on which they get AF_PACKET, as AF_XDP
// does not take devices with more queues than an interface may have.
func onDrivers(t *testing.T, fn func(t *testing.T, c *cable)) {
	for driver, queues := range map[string]string{"AF_XDP": "1", "AF_PACKET": "33"} {
		t.Run(driver, func(t *testing.T) {
			c := cableOf(t, queues)
			c.driver = driver
			fn(t, c)
		})
	}
}

// cableOf makes a cable whose receiving end has so many receive queues.
func cableOf(t *testing.T, queues string) *cable { return cableBetween(t, "1", queues) }

// cableBetween makes a cable whose sending end has so many transmit queues. A frame that leaves by one of them comes by
// the receive queue of the same number.
func cableBetween(t *testing.T, transmit, queues string) *cable {
	t.Helper()
	need(t, "netns", "ip", "ethtool")
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	c := &cable{t: t, send: "dqs" + hex.EncodeToString(id), recv: "dqr" + hex.EncodeToString(id)}
	for _, ns := range []string{c.send, c.recv} {
		c.host("ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	}
	c.host("ip", "-n", c.send, "link", "add", "veth0", "numrxqueues", queues, "numtxqueues", transmit, "type", "veth",
		"peer", "name", "veth0", "numrxqueues", queues, "netns", c.recv)
	c.end(c.send, sendAddr)
	c.end(c.recv, recvAddr)
	return c
}

// end brings one end of the cable up, without offloads: what the wire carries is what the sender built.
func (c *cable) end(ns, addr string) {
	c.host("ip", "-n", ns, "addr", "add", addr+"/24", "dev", "veth0")
	c.host("ip", "-n", ns, "link", "set", "lo", "up")
	c.host("ip", "-n", ns, "link", "set", "veth0", "up")
	c.in(ns, "ethtool", "-K", "veth0", "gro", "off", "gso", "off", "tso", "off", "tx", "off")
}

func (c *cable) host(args ...string) string {
	c.t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (c *cable) in(ns string, args ...string) string {
	c.t.Helper()
	return c.host(append([]string{"ip", "netns", "exec", ns}, args...)...)
}

func (c *cable) command(ns string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...)
}

// udp reads the receiving namespace's counters: datagrams delivered to sockets, and those lost to full buffers.
func (c *cable) udp() (delivered, lost int) {
	c.t.Helper()
	var lines []string
	for line := range strings.Lines(c.in(c.recv, "cat", "/proc/net/snmp")) {
		if strings.HasPrefix(line, "Udp:") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 2 {
		c.t.Fatalf("/proc/net/snmp has %d lines for UDP", len(lines))
	}
	names, values := strings.Fields(lines[0]), strings.Fields(lines[1])
	for i, name := range names {
		n, _ := strconv.Atoi(values[i])
		switch name {
		case "InDatagrams":
			delivered = n
		case "RcvbufErrors":
			lost = n
		}
	}
	return delivered, lost
}

// until waits for a condition of the running programs; the bound is for a machine that is very busy.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after a minute", what)
		}
	}
}

// A recording is capture.lua at work in the receiving namespace.
type recording struct {
	c       *cable
	cmd     *exec.Cmd
	dir     string
	out     lockedBuffer
	done    chan error // the program's end
	started int        // datagrams delivered before
}

func (c *cable) record(program string) *recording {
	c.t.Helper()
	dir := c.t.TempDir()
	r := &recording{c: c, dir: dir, done: make(chan error, 1)}
	r.started, _ = c.udp()
	script, err := filepath.Abs(filepath.Join(rootDir, "scripts/capture.lua"))
	if err != nil {
		c.t.Fatal(err)
	}
	r.cmd = c.command(c.recv, program, "--summary-json", filepath.Join(dir, "summary.json"), script,
		"--listen", recvAddr+":7148", "--generate=false", "--dir", dir, "--seconds", "300")
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	c.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	until(c.t, "listening socket", func() bool {
		select {
		case err := <-r.done:
			c.t.Fatalf("capture.lua ended early: %v\n%s", err, r.out.String())
		default:
		}
		return strings.Contains(c.in(c.recv, "cat", "/proc/net/udp"), ":1BEC ")
	})
	return r
}

// finish interrupts the recording once the kernel has delivered n datagrams, and returns the pcap's path.
func (r *recording) finish(n int) string {
	t := r.c.t
	t.Helper()
	until(t, fmt.Sprintf("%d delivered datagrams", n), func() bool {
		delivered, _ := r.c.udp()
		return delivered-r.started >= n
	})
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := <-r.done
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("capture.lua ended with %v, want 0 after an interrupt, too\n%s", err, r.out.String())
	}
	files, _ := filepath.Glob(filepath.Join(r.dir, "*.pcap"))
	if len(files) != 1 {
		t.Fatalf("files %v, want one pcap\n%s", files, r.out.String())
	}
	delivered, lost := r.c.udp()
	if delivered-r.started != n || lost != 0 {
		t.Errorf("the kernel delivered %d datagrams and lost %d, want %d and none", delivered-r.started, lost, n)
	}
	r.counts(files[0], n)
	return files[0]
}

// counts compares the file, the ledger and the expectation.
func (r *recording) counts(file string, n int) {
	t := r.c.t
	t.Helper()
	info := r.c.host("capinfos", "-M", "-c", file)
	if m := regexp.MustCompile(`Number of packets: +(\d+)`).FindStringSubmatch(info); m == nil || m[1] != strconv.Itoa(n) {
		t.Errorf("capinfos counts otherwise, want %d packets:\n%s", n, info)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"rx_port", "disk"} {
		want := fmt.Sprintf(`"name":\s*"%s",[^{}]*"in":\s*%d,[^{}]*"out":\s*%d,`, line, n, n)
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("the ledger's line %s has other counts than %d in and out:\n%s", line, n, text)
		}
	}
}

// payloads decodes a pcap with tshark: source address and port, and the UDP payload, of each packet in order.
func payloads(t *testing.T, file string) []string {
	t.Helper()
	out, err := exec.Command("tshark", "-n", "-r", file, "-Y", "udp", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-e", "ip.src",
		"-e", "ip.dst", "-e", "udp.dstport", "-e", "udp.checksum.status", "-e", "udp.payload").Output()
	if err != nil {
		t.Fatalf("tshark -r %s: %v", file, err)
	}
	return strings.Split(strings.Trim(string(out), "\n"), "\n")
}

func samePackets(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d packets in the file, %d were sent", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("packet %d is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
}

// scapyFrames writes a pcap of n UDP frames from the sending end, payloads of 1 to 1400 random bytes from a seed.
const scapyFrames = `
import random, sys
from scapy.all import Ether, IP, UDP, Raw, wrpcap
out, n, src_mac, dst_mac = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
random.seed(7148)
wrpcap(out, [Ether(src=src_mac, dst=dst_mac)/IP(src="` + sendAddr + `", dst="` + recvAddr + `")/
             UDP(sport=4000 + i % 100, dport=7148)/Raw(random.randbytes(random.randint(1, 1400))) for i in range(n)])
`

// scapySend sends the payloads of a pcap as datagrams that scapy builds anew.
const scapySend = `
import sys
from scapy.all import rdpcap, sendp
sendp(rdpcap(sys.argv[1]), iface="veth0", verbose=False)
`

func (c *cable) mac(ns string) string {
	return strings.TrimSpace(c.in(ns, "cat", "/sys/class/net/veth0/address"))
}

func (c *cable) frames(n int) string {
	c.t.Helper()
	python, err := scapyPython()
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "sent.pcap")
	c.host(python, "-c", scapyFrames, file, strconv.Itoa(n), c.mac(c.send), c.mac(c.recv))
	return file
}

// TestCaptureForeignTraffic records what programs send that share no code with this project: every packet is in the
// file, byte for byte and in order, and the file, the ledger and the kernel agree on how many there were.
func TestCaptureForeignTraffic(t *testing.T) {
	need(t, "tshark", "capinfos", "scapy")
	program := built(t)
	t.Run("tcpreplay", func(t *testing.T) {
		need(t, "tcpreplay")
		c := newCable(t)
		sent := c.frames(2000)
		r := c.record(program)
		c.in(c.send, "tcpreplay", "--quiet", "--pps=5000", "--intf1=veth0", sent)
		samePackets(t, payloads(t, r.finish(2000)), payloads(t, sent))
	})
	t.Run("scapy", func(t *testing.T) {
		c := newCable(t)
		sent := c.frames(300)
		r := c.record(program)
		python, _ := scapyPython()
		c.in(c.send, python, "-c", scapySend, sent)
		samePackets(t, payloads(t, r.finish(300)), payloads(t, sent))
	})
	t.Run("nc", func(t *testing.T) {
		need(t, "nc")
		c := newCable(t)
		r := c.record(program)
		var want []string
		for i := range 20 {
			text := fmt.Sprintf("line %d of what somebody typed\n", i)
			send := c.command(c.send, "nc", "-u", "-q", "0", recvAddr, "7148")
			send.Stdin = strings.NewReader(text)
			if out, err := send.CombinedOutput(); err != nil {
				t.Fatalf("nc: %v\n%s", err, out)
			}
			want = append(want, strings.Join([]string{sendAddr, recvAddr, "7148", "1", hex.EncodeToString([]byte(text))}, "\t"))
		}
		samePackets(t, payloads(t, r.finish(20)), want)
	})
}
