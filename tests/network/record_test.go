package network

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// TestRecordBesideKernel records an interface by the command record: tcpdump there sees the same frames, and the kernel still
// gets them, which a socket of its shows.
func TestRecordBesideKernel(t *testing.T) {
	harness.Need(t, "tcpdump", "tshark")
	program := harness.Built(t)
	c := newCable(t)
	c.permanent()
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.pcapng"), filepath.Join(dir, "theirs.pcap")
	cmd := c.Command(c.Recv, program, "record", "veth0", "-w", ours, "--seconds", "60", "--summary-json", filepath.Join(dir, "sum.json"), "udp port 7148")
	var out harness.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "--immediate-mode", "-U", "-w", theirs, "udp port 7148")
	var dumped harness.Buffer
	dump.Stderr = &dumped
	for _, p := range []interface{ Start() error }{cmd, dump} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = dump.Process.Kill() })
	harness.Until(t, "tcpdump that listens", func() bool { return strings.Contains(dumped.String(), "listening on") })
	c.probe(ours)
	refused := c.In(c.Recv, "cat", "/proc/net/snmp")
	c.datagrams(7148, 200)
	c.datagrams(7149, 50)
	for _, file := range []string{ours, theirs} {
		harness.Until(t, "200 packets in "+file, func() bool { return len(c.recorded(file)) >= 200 })
	}
	for _, p := range []*exec.Cmd{cmd, dump} {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = p.Wait()
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out.String())
	}
	samePackets(t, c.recorded(ours), c.recorded(theirs))
	// No socket listens at these ports: the kernel, which got the datagrams, counts them.
	if now := c.In(c.Recv, "cat", "/proc/net/snmp"); now == refused {
		t.Error("the kernel has seen none of the frames")
	}
}

// probeHex is the payload of datagrams that show that a recording has begun, as tshark prints it.
const probeHex = "70726f6265"

// probe sends datagrams until each of the recordings has one.
func (c *cable) probe(files ...string) {
	c.T.Helper()
	harness.Until(c.T, "a probe in each recording", func() bool {
		c.In(c.Send, "bash", "-c", "printf probe >/dev/udp/"+harness.RecvAddr+"/7148")
		for _, file := range files {
			out, _ := exec.Command("tshark", "-n", "-r", file, "-T", "fields", "-e", "udp.payload").Output() // an error: the file is not there yet
			if !strings.Contains(string(out), probeHex) {
				return false
			}
		}
		return true
	})
}

// recorded returns the packets of a recording that may grow, without probes.
func (c *cable) recorded(file string) (lines []string) {
	c.T.Helper()
	out, _ := udpLines(file).Output() // an error: the last packet is not complete yet
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, "\t"+probeHex) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestRecordBothDirections records what an interface receives and sends: with --both what tcpdump there sees; without it what comes.
func TestRecordBothDirections(t *testing.T) {
	harness.Need(t, "tcpdump", "tshark")
	program := harness.Built(t)
	c := newCable(t)
	c.permanent()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".pcapng") }
	record := []string{program, "record", "veth0", "--seconds", "60", "udp port 7148", "-w"}
	commands := map[string]*exec.Cmd{
		"both": c.Command(c.Recv, append(record, file("both"), "--both")...), "in": c.Command(c.Recv, append(record, file("in"))...),
		"tcpdump": c.Command(c.Recv, "tcpdump", "-i", "veth0", "--immediate-mode", "-U", "-w", file("tcpdump"), "udp port 7148"),
	}
	out := map[string]*harness.Buffer{}
	for name, cmd := range commands {
		out[name] = &harness.Buffer{}
		cmd.Stdout, cmd.Stderr = out[name], out[name]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	}
	c.probe(file("both"), file("in"), file("tcpdump"))
	c.datagrams(7148, 100)
	c.In(c.Recv, "bash", "-c", "for n in {1..50}; do echo $n >/dev/udp/"+harness.SendAddr+"/7148; done")
	for name, want := range map[string]int{"both": 150, "in": 100, "tcpdump": 150} {
		harness.Until(t, "packets in the file "+name, func() bool { return len(c.recorded(file(name))) >= want })
		if err := commands[name].Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = commands[name].Wait()
		if code := commands[name].ProcessState.ExitCode(); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", name, code, out[name])
		}
	}
	all := c.recorded(file("tcpdump"))
	samePackets(t, c.recorded(file("both")), all)
	samePackets(t, c.recorded(file("in")), all[:100])
	refused, err := exec.Command(program, "record", ":7148", "-w", filepath.Join(dir, "x.pcap"), "--both").CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "--both: :7148 is not a Linux interface") {
		t.Errorf("%v\n%s", err, refused)
	}
}

// TestRecordWithoutRights names the right that is missing and how to get it.
func TestRecordWithoutRights(t *testing.T) {
	harness.Need(t, "root", "netns")
	program := harness.Built(t)
	c := newCable(t)
	dir, err := os.MkdirTemp("", "daqiri-record-") // open to another user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, path := range []string{dir, filepath.Dir(program)} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := c.Command(c.Recv, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "record", "veth0", "-w", dir+"/x.pcap")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(string(out), "CAP_NET_RAW (sudo setcap cap_net_raw+ep") {
		t.Errorf("exit code %d, want 4 and how to get the right:\n%s", code, out)
	}
}

// TestRecordSize: no byte more than --size is recorded, and no packet less than fits, in one file or in several; what a
// capture has behind it doesn't matter.
func TestRecordSize(t *testing.T) {
	harness.Need(t, "tcpdump")
	const n, frame, size = 50000, 1000, 1_000_000
	var capture bytes.Buffer
	_ = binary.Write(&capture, binary.LittleEndian, []uint32{0xa1b2c3d4, 2 | 4<<16, 0, 0, 65535, 1}) // libpcap's savefile format
	packet := make([]byte, frame)
	for k := range uint32(n) {
		_ = binary.Write(&capture, binary.LittleEndian, []uint32{k / 1000, k % 1000, frame, frame})
		binary.BigEndian.PutUint16(packet[12:], 0x88b5)
		binary.BigEndian.PutUint32(packet[14:], k)
		capture.Write(packet)
	}
	program, dir := harness.Built(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "long.pcap"), capture.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	record := func(args ...string) string {
		cmd := exec.Command(program, append([]string{"--summary", "none", "record", "long.pcap"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	fits := (size - 24) / (16 + frame)
	if out := record("-w", "one.pcap", "--size", "1MB"); !strings.Contains(out, fmt.Sprintf("%d packets, %d bytes: one.pcap", fits, 24+fits*(16+frame))) {
		t.Error(out)
	}
	listed, err := exec.Command("tcpdump", "-nr", filepath.Join(dir, "one.pcap")).Output()
	if got := strings.Count(string(listed), "ethertype Unknown"); err != nil || got != fits {
		t.Errorf("tcpdump reads %d packets, want %d (%v)", got, fits, err)
	}
	record("-w", "many.pcap", "--size", "1000000", "--rotate", "300kB")
	record("-w", "next.pcapng", "--size", "1MB")
	for pattern, least := range map[string]int64{"many_*.pcap": size - 4*24 - 16 - frame, "next.pcapng": size - 5*frame} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		total := int64(0)
		for _, file := range files {
			if st, err := os.Stat(file); err == nil {
				total += st.Size()
			}
		}
		if total > size || total < least {
			t.Errorf("%s: %d bytes in %d files, want %d to %d", pattern, total, len(files), least, int64(size))
		}
	}
}
