package network

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// doctorFinding is what a row of doctor --json is.
type doctorFinding struct{ Row, Of, State, Found, Command string }

// doctorConfig asks for a frame that the MTU has no room for, and an address that is not there.
const doctorConfig = `
daqiri:
  cfg:
    version: 1
    stream_type: mixed
    master_core: 0
    memory_regions:
    - {name: packets, kind: host, affinity: 0, num_bufs: 256, buf_size: 9000}
    interfaces:
    - name: wire
      address: veth0
      engine: packet
      rx:
        queues:
        - {name: rx, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
      tx:
        queues:
        - {name: tx, id: 0, cpu_core: -1, batch_size: 64, memory_regions: [packets]}
    - name: port
      address: 10.98.0.77
      socket_config: {mode: server, local_addr: "udp://10.98.0.77:7148"}
      rx:
        queues:
        - {name: datagrams, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
    - name: group
      address: 127.0.0.1
      socket_config: {mode: server, local_addr: "udp://239.1.2.3:7149"}
      rx:
        queues:
        - {name: joined, id: 0, cpu_core: -1, batch_size: 64, timeout_us: 1000, memory_regions: [packets]}
`

// TestDoctorMends makes a network namespace wrong in many ways: doctor finds each by name, and the command that it gives mends it, so
// that the row passes. Rows about the whole machine are tested on machines laid out in folders (host/doctor).
func TestDoctorMends(t *testing.T) {
	harness.Need(t, "root", "netns", "ethtool")
	c := newCable(t)
	dir, err := os.MkdirTemp("", "daqiri-doctor-") // open to another user, who has no rights
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "daqiri-run")
	c.Host("cp", harness.Built(t), program)
	if err := os.WriteFile(filepath.Join(dir, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(doctorConfig), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range [][]string{
		{"ip", "link", "set", "veth0", "down"},
		{"ethtool", "-K", "veth0", "gro", "on"},
		{"sysctl", "-qw", "net.ipv4.conf.veth0.rp_filter=1"},
		{"sysctl", "-qw", "net.ipv4.igmp_max_memberships=10"},
	} {
		c.In(c.Recv, wrong...)
	}
	disk := filepath.Join(dir, "captures")
	rows := []string{"link", "joined packets", "reverse path", "group limit", "multicast route", "MTU", "addresses", "rights", "files"}

	found, code := runDoctor(t, c, program, dir, disk)
	if code != 8 {
		t.Errorf("exit code %d, want 8", code)
	}
	for _, row := range rows {
		command := ""
		for _, f := range found {
			if f.Row == row && f.State == "fail" && (row != "reverse path" || f.Of == "veth0") {
				command = f.Command
			}
		}
		if command == "" {
			t.Errorf("row %s does not fail: %+v", row, found)
			continue
		}
		command, _, _ = strings.Cut(command, ", or ") // the rest is in words
		mend := c.Command(c.Recv, "bash", "-c", command)
		mend.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		mend.Dir = dir
		if out, err := mend.CombinedOutput(); err != nil {
			t.Errorf("row %s: %s: %v\n%s", row, command, err, out)
		}
		if row == "files" {
			_ = os.Chmod(disk, 0o777)
		}
	}
	found, _ = runDoctor(t, c, program, dir, disk)
	for _, f := range found {
		if slices.Contains(rows, f.Row) && f.State != "pass" && (f.Row != "reverse path" || f.Of == "veth0") {
			t.Errorf("row %s does not pass after its command: %+v", f.Row, f)
		}
	}
	copied := slices.ContainsFunc(found, func(f doctorFinding) bool {
		return f.Row == "features" && f.State == "pass" && strings.Contains(f.Found, "AF_PACKET") && strings.HasPrefix(f.Found, "copy: ")
	})
	if !copied {
		t.Errorf("no row tells that AF_PACKET copies: %+v", found)
	}
}

// runDoctor is what doctor reports to a user without rights.
func runDoctor(t *testing.T, c *cable, program, dir, disk string) (found []doctorFinding, code int) {
	t.Helper()
	cmd := c.Command(c.Recv, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "doctor", "--json", "--dir", disk, "x.yaml")
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || len(out) == 0) {
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return found, cmd.ProcessState.ExitCode()
}
