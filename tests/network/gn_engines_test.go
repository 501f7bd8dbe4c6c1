package network

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/tree"
)

const gnPackets = 1000

// gnSent and gnGot are what the two ends of testdata/gn_engines.lua print.
type gnSent struct {
	RingIn, RingOut, Completed, Failed, QueueOut, QueueDropped int
}

type gnGot struct {
	RingIn, RingOut, RingDropped, RingHeld, QueueDropped, Packets, Again, Wrong, Marked int
}

// gnEnd starts an end of the cable.
func (c *cable) gnEnd(ns, role string, args ...string) *rawRun {
	c.T.Helper()
	script, err := filepath.Abs(filepath.Join(tree.Root, "tests/network/testdata/gn_engines.lua"))
	if err != nil {
		c.T.Fatal(err)
	}
	r := &rawRun{t: c.T, dir: c.T.TempDir(), done: make(chan error, 1)}
	r.cmd = c.Command(ns, append([]string{harness.Built(c.T), "--summary", "full", script, "--role", role}, args...)...)
	r.cmd.Dir, r.cmd.Env = r.dir, os.Environ()
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	c.T.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// figures are what the end printed, once it has ended.
func (r *rawRun) figures(out any) {
	r.t.Helper()
	r.end(0)
	for line := range strings.Lines(r.out.String()) {
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(strings.ReplaceAll(line, "_", "")), out); err != nil {
				r.t.Fatalf("%v in %s", err, line)
			}
		}
	}
}

// gnExchange has a kernel send to a kernel over the cable: each packet that was sent came, was dropped at the receiver's
// queue, or at its ring; and the kernel of the receiving end counts the same.
func (c *cable) gnExchange(counted func() int, args ...string) (got gnGot) {
	t := c.T
	t.Helper()
	rx := c.gnEnd(c.Recv, "receive", args...)
	rx.wait("ready")
	before := counted()
	tx := c.gnEnd(c.Send, "send", args...)
	var sent gnSent
	tx.figures(&sent)
	if want := (gnSent{RingIn: gnPackets, RingOut: gnPackets, Completed: gnPackets, QueueOut: gnPackets}); sent != want {
		t.Errorf("sender: %+v, want %+v", sent, want)
	}
	rx.figures(&got)
	if !strings.Contains(rx.out.String(), c.Driver) {
		t.Errorf("the receiver is not served by %s:\n%s", c.Driver, rx.out.String())
	}
	if n := counted() - before; n != gnPackets {
		t.Errorf("the receiving end's kernel counts %d packets, want %d", n, gnPackets)
	}
	if got.RingIn+got.QueueDropped != gnPackets || got.RingOut+got.RingDropped != got.RingIn || got.RingHeld != 0 {
		t.Errorf("packets are lost in the ledger: %+v", got)
	}
	if got.Packets != got.RingOut || got.Marked != got.Packets || got.Again != 0 || got.Wrong != 0 {
		t.Errorf("the kernel saw %+v", got)
	}
	return got
}

// TestGnEngines: kernels send and receive over udp, AF_XDP, AF_PACKET and dpdk between two ends of a cable.
func TestGnEngines(t *testing.T) {
	t.Run("udp", func(t *testing.T) {
		c := newCable(t)
		c.gnExchange(func() int { delivered, lost := c.udp(); return delivered + lost }, "--udp", harness.RecvAddr+":7148")
	})
	for _, x := range []struct{ driver, queues, needs string }{{"AF_XDP", "1", "xdp"}, {"AF_PACKET", "33", "root"}} {
		t.Run(x.driver, func(t *testing.T) {
			harness.Need(t, x.needs)
			c := cableOf(t, x.queues)
			c.silence()
			c.Driver = x.driver
			c.gnExchange(func() int { return c.received(c.Recv, "veth0") })
			if x.driver != "AF_XDP" {
				return
			}
			if got := c.gnExchange(func() int { return c.received(c.Recv, "veth0") }, "--lossy"); got.RingDropped == 0 {
				t.Errorf("a slow kernel's ring dropped nothing: %+v", got)
			}
		})
	}
	t.Run("dpdk", func(t *testing.T) {
		c := newCable(t)
		c.dpdk()
		c.silence()
		c.gnExchange(func() int { return c.received(c.Recv, "veth0") }, "--address", c.Device+",framecnt=4096")
	})
}
