package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRecordBesideKernel records an interface by the command record: tcpdump there sees the same frames, and the kernel still
// gets them, which a socket of its shows.
func TestRecordBesideKernel(t *testing.T) {
	need(t, "tcpdump", "tshark")
	program := built(t)
	c := newCable(t)
	c.permanent()
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours.pcapng"), filepath.Join(dir, "theirs.pcap")
	cmd := c.command(c.recv, program, "record", "veth0", "-w", ours, "--seconds", "60", "--summary-json", filepath.Join(dir, "sum.json"), "udp port 7148")
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	dump := c.command(c.recv, "tcpdump", "-i", "veth0", "--immediate-mode", "-U", "-w", theirs, "-c", "200", "udp port 7148")
	var dumped lockedBuffer
	dump.Stderr = &dumped
	for _, p := range []interface{ Start() error }{cmd, dump} {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = dump.Process.Kill() })
	until(t, "tcpdump that listens", func() bool { return strings.Contains(dumped.String(), "listening on") })
	until(t, "file of record", func() bool { _, err := os.Stat(ours); return err == nil })
	time.Sleep(200 * time.Millisecond) // the file is made before packets move
	refused := c.in(c.recv, "cat", "/proc/net/snmp")
	c.datagrams(7148, 200)
	c.datagrams(7149, 50)
	if err := dump.Wait(); err != nil {
		t.Fatal(err, dumped.String())
	}
	until(t, "200 packets in the file", func() bool {
		return strings.Count(c.host("tshark", "-r", ours, "-T", "fields", "-e", "udp.port"), "\n") >= 200
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, out.String())
	}
	samePackets(t, payloads(t, ours), payloads(t, theirs))
	// Nobody listens at these ports: the kernel, which got the datagrams, counts them.
	if now := c.in(c.recv, "cat", "/proc/net/snmp"); now == refused {
		t.Error("the kernel has seen none of the frames")
	}
}

// TestRecordWithoutRights names the right that is missing and how to get it.
func TestRecordWithoutRights(t *testing.T) {
	need(t, "root", "netns")
	program := built(t)
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
	cmd := c.command(c.recv, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "record", "veth0", "-w", dir+"/x.pcap")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(string(out), "CAP_NET_RAW (sudo setcap cap_net_raw+ep") {
		t.Errorf("exit code %d, want 4 and how to get the right:\n%s", code, out)
	}
}
