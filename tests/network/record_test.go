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
	"time"

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
	dump := c.Command(c.Recv, "tcpdump", "-i", "veth0", "--immediate-mode", "-U", "-w", theirs, "-c", "200", "udp port 7148")
	var dumped harness.Buffer
	dump.Stderr = &dumped
	for _, p := range []interface{ Start() error }{cmd, dump} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = dump.Process.Kill() })
	harness.Until(t, "tcpdump that listens", func() bool { return strings.Contains(dumped.String(), "listening on") })
	harness.Until(t, "file of record", func() bool { _, err := os.Stat(ours); return err == nil })
	time.Sleep(200 * time.Millisecond) // the file is made before packets move
	refused := c.In(c.Recv, "cat", "/proc/net/snmp")
	c.datagrams(7148, 200)
	c.datagrams(7149, 50)
	if err := dump.Wait(); err != nil {
		t.Fatal(err, dumped.String())
	}
	harness.Until(t, "200 packets in the file", func() bool {
		return strings.Count(c.Host("tshark", "-r", ours, "-T", "fields", "-e", "udp.port"), "\n") >= 200
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out.String())
	}
	samePackets(t, payloads(t, ours), payloads(t, theirs))
	// No socket listens at these ports: the kernel, which got the datagrams, counts them.
	if now := c.In(c.Recv, "cat", "/proc/net/snmp"); now == refused {
		t.Error("the kernel has seen none of the frames")
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
