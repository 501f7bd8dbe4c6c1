package network

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// TestRecordJoined records a TCP stream whose segments the kernels join: the file has the frames that tcpdump sees, whole, with the
// checksums that the sender left to a device.
func TestRecordJoined(t *testing.T) { recordJoined(t, 0, 20000) }

// TestRecordBigTCP does the same over IPv6 with frames that are longer than a packet's length field can tell.
func TestRecordBigTCP(t *testing.T) { recordJoined(t, 180000, 1<<16) }

// recordJoined records with frames of at most `limit` bytes (0: the kernel's default), of which some have at least this length.
func recordJoined(t *testing.T, limit, least int) {
	harness.Need(t, "tcpdump", "tshark", "iperf3")
	program := harness.Built(t)
	c := newCable(t)
	c.permanent()
	peer := harness.RecvAddr
	if limit > 0 {
		peer = "fd98::2"
	}
	for _, ns := range []string{c.Send, c.Recv} {
		c.In(ns, "ethtool", "-K", "veth0", "tx", "on", "gso", "on", "tso", "on", "gro", "on")
		if limit > 0 {
			c.In(ns, "ip", "addr", "add", map[string]string{c.Send: "fd98::1/64", c.Recv: peer + "/64"}[ns], "dev", "veth0", "nodad")
			set := exec.Command("ip", "-n", ns, "link", "set", "veth0", "gso_max_size", strconv.Itoa(limit), "gro_max_size", strconv.Itoa(limit))
			if out, err := set.CombinedOutput(); err != nil {
				t.Skipf("no BIG TCP: %s", out)
			}
		}
	}
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.pcap"), filepath.Join(dir, "theirs.pcap")
	var out harness.Buffer
	record := c.Command(c.Recv, program, "record", "veth0", "-w", ours, "--seconds", "120")
	record.Stdout, record.Stderr = &out, &out
	// In immediate mode libpcap cuts frames off at 64 KiB.
	dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "-Q", "in", "-s", "0", "-B", "32768", "-U", "-w", theirs)
	var served harness.Buffer
	server := c.Command(c.Recv, "iperf3", "-s", "-1", "--forceflush")
	server.Stdout = &served
	for _, p := range []*exec.Cmd{record, dump, server} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	}
	harness.Until(t, "a server that listens", func() bool { return strings.Contains(served.String(), "listening") })
	c.probe(ours, theirs)
	c.In(c.Send, "iperf3", "-c", peer, "-n", "4M")
	c.datagrams(7148, 1) // behind the stream
	for _, file := range []string{ours, theirs} {
		harness.Until(t, "the end in "+file, func() bool { return len(c.recorded(file)) > 0 })
	}
	for _, p := range []*exec.Cmd{record, dump} {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait()
	}
	if code := record.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out.String())
	}
	got := segments(t, ours)
	samePackets(t, got, segments(t, theirs))
	longest := 0
	for _, line := range got {
		n, _ := strconv.Atoi(line[:strings.IndexByte(line, '\t')])
		longest = max(longest, n)
	}
	if longest < least {
		t.Errorf("the longest frame has %d bytes: no segments were joined", longest)
	}
	if n := countTCP(t, ours, "tcp.checksum.status != 1"); n != 0 {
		t.Errorf("%d frames have a wrong TCP checksum", n)
	}
	if head, err := os.ReadFile(ours); err != nil || binary.LittleEndian.Uint32(head[16:]) != 262144 {
		t.Errorf("the header's snaplen is not 262144 (%v)", err)
	}
}

// segments describes each TCP frame of a capture: its length, headers and the hash of its payload.
func segments(t *testing.T, file string) []string {
	args := []string{"-n", "-r", file, "-Y", "tcp", "-T", "fields"}
	for _, field := range []string{"frame.len", "frame.cap_len", "eth.src", "ip.id", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.options", "tcp.payload"} {
		args = append(args, "-e", field)
	}
	out, err := exec.Command("tshark", args...).Output()
	if err != nil {
		t.Fatalf("tshark %s: %v", file, err)
	}
	var list []string
	for line := range strings.Lines(string(out)) {
		cut := strings.LastIndexByte(line, '\t') + 1
		list = append(list, fmt.Sprintf("%s%x", line[:cut], sha256.Sum256([]byte(line[cut:]))))
	}
	return list
}

// countTCP returns how many TCP frames match a display filter, with checksums checked.
func countTCP(t *testing.T, file, filter string) int {
	out, err := exec.Command("tshark", "-n", "-o", "tcp.check_checksum:TRUE", "-r", file, "-Y", "tcp && "+filter).Output()
	if err != nil {
		t.Fatalf("tshark %s: %v", file, err)
	}
	return strings.Count(string(out), "\n")
}
