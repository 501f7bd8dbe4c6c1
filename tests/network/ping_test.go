package network

import (
	"os"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
)

// kernelPing has the kernel ask for echoes through a raw ICMP socket and prints how many answers are its questions' own, byte for
// byte.
const kernelPing = `
import os, socket, struct, sys
def summed(p):
    s = sum(struct.unpack("!%dH" % (len(p) // 2), p))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.settimeout(30)
right = 0
for n in range(20):
    rest = struct.pack("!HH", 77, n) + os.urandom(56)
    s.sendto(struct.pack("!BBH", 8, 0, summed(struct.pack("!BBH", 8, 0, 0) + rest)) + rest, (sys.argv[1], 0))
    while True:
        p = s.recv(4096)[20:]
        if p[0] == 0 and p[4:8] == rest[:4]: break
    right += p == struct.pack("!BBH", 0, 0, summed(struct.pack("!BBH", 0, 0, 0) + rest)) + rest
print(right)
`

// TestPing: the script asks the kernel, which answers, and counts the questions; and it answers the kernel's own.
func TestPing(t *testing.T) {
	harness.Need(t, "netns", "root")
	program, c := harness.Built(t), newCable(t)
	echoes := func() string {
		lines := strings.Split(c.In(c.Recv, "cat", "/proc/net/snmp"), "\n")
		for n, line := range lines {
			if strings.HasPrefix(line, "Icmp:") {
				return counter(t, line, lines[n+1], "InEchos") + " " + counter(t, line, lines[n+1], "InCsumErrors")
			}
		}
		t.Fatal("no ICMP counters")
		return ""
	}
	if before := echoes(); before != "0 0" {
		t.Fatal(before)
	}
	out := c.In(c.Send, program, "--summary", "none", "ping", "--device", "veth0", "--from", harness.SendAddr, "--to", harness.RecvAddr, "--count", "8")
	if !strings.Contains(out, "8 packets transmitted, 8 received, 0% packet loss") || strings.Count(out, "64 bytes from "+harness.RecvAddr) != 8 {
		t.Error(out)
	}
	if after := echoes(); after != "8 0" {
		t.Errorf("the kernel saw %s echo requests (of which with a wrong checksum), want 8 0", after)
	}

	mac := strings.TrimSpace(c.In(c.Send, "cat", "/sys/class/net/veth0/address"))
	c.In(c.Recv, "ip", "neigh", "add", "10.98.0.77", "lladdr", mac, "dev", "veth0")
	answers := c.Command(c.Send, program, "--summary", "none", "ping", "--device", "veth0", "--answer", "10.98.0.77")
	var output harness.Buffer
	answers.Stdout, answers.Stderr = &output, &output
	if err := answers.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "answerer", func() bool {
		return strings.Contains(c.In(c.Send, "cat", "/proc/net/packet"), "\n") && strings.Contains(output.String(), "answering")
	})
	if got := strings.TrimSpace(c.In(c.Recv, "python3", "-c", kernelPing, "10.98.0.77")); got != "20" {
		t.Errorf("%s of 20 answers are right", got)
	}
	if err := answers.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = answers.Wait()
	if !strings.Contains(output.String(), "20 questions answered for 10.98.0.77") {
		t.Error(output.String())
	}
}

// counter is a value of /proc/net/snmp.
func counter(t *testing.T, names, values, name string) string {
	t.Helper()
	v := strings.Fields(values)
	for i, n := range strings.Fields(names) {
		if n == name {
			return v[i]
		}
	}
	t.Fatalf("no counter %s in %s", name, names)
	return ""
}
