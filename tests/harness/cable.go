package harness

import (
	"crypto/rand"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"
)

// A Cable is two network namespaces joined by a veth pair: `send` with 10.98.0.1 and `recv` with 10.98.0.2. Nothing
// in them touches the host's own network, and their names are this test's alone.
type Cable struct {
	T          *testing.T
	Send, Recv string
	Device     string // of raw interfaces at the receiving end, instead of veth0
	Driver     string // that raw has to get there, where it matters
}

// The addresses of the two ends.
const (
	SendAddr = "10.98.0.1"
	RecvAddr = "10.98.0.2"
)

// NewCable makes a cable whose ends have one queue each.
func NewCable(t *testing.T) *Cable { return CableOf(t, "1") }

// CableOf makes a cable whose receiving end has so many receive queues.
func CableOf(t *testing.T, queues string) *Cable { return CableBetween(t, "1", queues) }

// CableBetween makes a cable whose sending end has so many transmit queues. A frame that leaves by one of them comes by
// the receive queue of the same number.
func CableBetween(t *testing.T, transmit, queues string) *Cable {
	t.Helper()
	Need(t, "netns", "ip", "ethtool")
	id := make([]byte, 4)
	if _, err := rand.Read(id); err != nil {
		t.Fatal(err)
	}
	c := &Cable{T: t, Send: "dqs" + hex.EncodeToString(id), Recv: "dqr" + hex.EncodeToString(id)}
	for _, ns := range []string{c.Send, c.Recv} {
		c.Host("ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	}
	c.Host("ip", "-n", c.Send, "link", "add", "veth0", "numrxqueues", queues, "numtxqueues", transmit, "type", "veth",
		"peer", "name", "veth0", "numrxqueues", queues, "netns", c.Recv)
	c.end(c.Send, SendAddr)
	c.end(c.Recv, RecvAddr)
	return c
}

// end brings one end of the cable up, without offloads: what the wire carries is what the sender built.
func (c *Cable) end(ns, addr string) {
	c.Host("ip", "-n", ns, "addr", "add", addr+"/24", "dev", "veth0")
	c.Host("ip", "-n", ns, "link", "set", "lo", "up")
	c.Host("ip", "-n", ns, "link", "set", "veth0", "up")
	c.In(ns, "ethtool", "-K", "veth0", "gro", "off", "gso", "off", "tso", "off", "tx", "off")
}

// Host runs a command outside the namespaces and returns its output. A command that fails ends the test.
func (c *Cable) Host(args ...string) string {
	c.T.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		c.T.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// In runs a command in a namespace, as Host does.
func (c *Cable) In(ns string, args ...string) string {
	c.T.Helper()
	return c.Host(append([]string{"ip", "netns", "exec", ns}, args...)...)
}

// Command returns a command that runs in a namespace, not started yet.
func (c *Cable) Command(ns string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...)
}
