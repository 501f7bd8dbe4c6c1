package network

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// onDrivers runs a test on a cable on which raw interfaces get AF_XDP, and on one on which they get AF_PACKET, as AF_XDP
// does not take devices with more queues than an interface may have.
func onDrivers(t *testing.T, fn func(t *testing.T, c *cable)) {
	for driver, queues := range map[string]string{"AF_XDP": "1", "AF_PACKET": "33"} {
		t.Run(driver, func(t *testing.T) {
			c := cableOf(t, queues)
			c.Driver = driver
			fn(t, c)
		})
	}
}

// udp reads the receiving namespace's counters: datagrams delivered to sockets, and those lost to full buffers.
func (c *cable) udp() (delivered, lost int) {
	c.T.Helper()
	var lines []string
	for line := range strings.Lines(c.In(c.Recv, "cat", "/proc/net/snmp")) {
		if strings.HasPrefix(line, "Udp:") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 2 {
		c.T.Fatalf("/proc/net/snmp has %d lines for UDP", len(lines))
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

// A recording is capture.lua at work in the receiving namespace.
type recording struct {
	c       *cable
	cmd     *exec.Cmd
	dir     string
	out     harness.Buffer
	done    chan error // the program's end
	started int        // datagrams delivered before
}

func (c *cable) record(program string) *recording {
	c.T.Helper()
	dir := c.T.TempDir()
	r := &recording{c: c, dir: dir, done: make(chan error, 1)}
	r.started, _ = c.udp()
	script, err := filepath.Abs(filepath.Join(tree.Root, "scripts/network/capture.lua"))
	if err != nil {
		c.T.Fatal(err)
	}
	r.cmd = c.Command(c.Recv, program, "--summary-json", filepath.Join(dir, "summary.json"), script,
		"--listen", harness.RecvAddr+":7148", "--generate=false", "--dir", dir, "--seconds", "300")
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	c.T.Cleanup(func() { _ = r.cmd.Process.Kill() })
	harness.Until(c.T, "listening socket", func() bool {
		select {
		case err := <-r.done:
			c.T.Fatalf("capture.lua ended early: %v\n%s", err, r.out.String())
		default:
		}
		return strings.Contains(c.In(c.Recv, "cat", "/proc/net/udp"), ":1BEC ")
	})
	return r
}

// finish interrupts the recording once the kernel has delivered n datagrams, and returns the pcap's path.
func (r *recording) finish(n int) string {
	t := r.c.T
	t.Helper()
	harness.Until(t, fmt.Sprintf("%d delivered datagrams", n), func() bool {
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
	t := r.c.T
	t.Helper()
	info := r.c.Host("capinfos", "-M", "-c", file)
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
	out, err := udpLines(file).Output()
	if err != nil {
		t.Fatalf("tshark -r %s: %v", file, err)
	}
	return strings.Split(strings.Trim(string(out), "\n"), "\n")
}

// udpLines returns the command that prints a line for each datagram of a capture.
func udpLines(file string) *exec.Cmd {
	return exec.Command("tshark", "-n", "-r", file, "-Y", "udp", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-e", "ip.src",
		"-e", "ip.dst", "-e", "udp.dstport", "-e", "udp.checksum.status", "-e", "udp.payload")
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
wrpcap(out, [Ether(src=src_mac, dst=dst_mac)/IP(src="` + harness.SendAddr + `", dst="` + harness.RecvAddr + `")/
             UDP(sport=4000 + i % 100, dport=7148)/Raw(random.randbytes(random.randint(1, 1400))) for i in range(n)])
`

// scapySend sends the payloads of a pcap as datagrams that scapy builds again.
const scapySend = `
import sys
from scapy.all import rdpcap, sendp
sendp(rdpcap(sys.argv[1]), iface="veth0", verbose=False)
`

func (c *cable) mac(ns string) string {
	return strings.TrimSpace(c.In(ns, "cat", "/sys/class/net/veth0/address"))
}

func (c *cable) frames(n int) string {
	c.T.Helper()
	python, err := harness.ScapyPython()
	if err != nil {
		c.T.Fatal(err)
	}
	file := filepath.Join(c.T.TempDir(), "sent.pcap")
	c.Host(python, "-c", scapyFrames, file, strconv.Itoa(n), c.mac(c.Send), c.mac(c.Recv))
	return file
}

// TestCaptureForeignTraffic records what programs send that share no code with this project: every packet is in the
// file, byte for byte and in order, and the file, the ledger and the kernel agree on how many there were.
func TestCaptureForeignTraffic(t *testing.T) {
	harness.Need(t, "tshark", "capinfos", "scapy")
	program := harness.Built(t)
	t.Run("tcpreplay", func(t *testing.T) {
		harness.Need(t, "tcpreplay")
		c := newCable(t)
		sent := c.frames(2000)
		r := c.record(program)
		c.In(c.Send, "tcpreplay", "--quiet", "--pps=5000", "--intf1=veth0", sent)
		samePackets(t, payloads(t, r.finish(2000)), payloads(t, sent))
	})
	t.Run("scapy", func(t *testing.T) {
		c := newCable(t)
		sent := c.frames(300)
		r := c.record(program)
		python, _ := harness.ScapyPython()
		c.In(c.Send, python, "-c", scapySend, sent)
		samePackets(t, payloads(t, r.finish(300)), payloads(t, sent))
	})
	t.Run("nc", func(t *testing.T) {
		harness.Need(t, "nc")
		c := newCable(t)
		r := c.record(program)
		var want []string
		for i := range 20 {
			text := fmt.Sprintf("line %d of what somebody typed\n", i)
			send := c.Command(c.Send, "nc", "-u", "-q", "0", harness.RecvAddr, "7148")
			send.Stdin = strings.NewReader(text)
			if out, err := send.CombinedOutput(); err != nil {
				t.Fatalf("nc: %v\n%s", err, out)
			}
			want = append(want, strings.Join([]string{harness.SendAddr, harness.RecvAddr, "7148", "1", hex.EncodeToString([]byte(text))}, "\t"))
		}
		samePackets(t, payloads(t, r.finish(20)), want)
	})
}
