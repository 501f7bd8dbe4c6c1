package contract

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Tests of raw Ethernet on Linux interfaces beyond the contract.

// onVeth runs fn on a session over a pair of virtual Ethernet devices, left to right, in direct mode. extra is appended after the receive queues.
func onVeth(t *testing.T, extra string, fn func(b *bench, tap *session.Tap) error) {
	t.Helper()
	onTask(t, func(me *task.Task) error {
		b, err := engine{name: "xdp", frames: true, veth: true, direct: true}.open(me, extra)
		if err != nil {
			return err
		}
		defer func() {
			b.quiesce()
			b.l.ReleaseAll()
			err := b.s.Finish()
			if bad := b.s.Ledger().Balance(); err != nil || bad != nil {
				t.Errorf("finish %v, accounts: %v", err, bad)
			}
			if n := b.s.Close(); n != 0 {
				t.Errorf("%d buffers are not in their pools", n)
			}
		}()
		tap, err := b.rx.Tap(me, nil, session.TapOptions{Policy: session.Wait})
		if err == nil {
			err = b.s.Start(me)
		}
		if err != nil {
			return err
		}
		return fn(b, tap)
	})
}

// link changes an interface in the calling task's namespace.
func link(args string) error {
	out, err := exec.Command("ip", strings.Fields("link set "+args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip link set %s: %w: %s", args, err, out)
	}
	return nil
}

// await serves the task until a figure of the ledger has the expected value.
func (b *bench) await(name string, want float64) error {
	for until := b.deadline(); b.figure(name) != want; {
		if b.me.Now() > until {
			return fmt.Errorf("%s: got %v, want %v\n%v", name, b.figure(name), want, b.s.Ledger().QueueErrors)
		}
		if _, err := b.me.Wait(b.me.Now() + int64(time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) arrives(tap *session.Tap, seq uint64) error {
	return b.receive(tap, 1, func(x *session.Burst, i int) error {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		if got, err := b.seq(p); err != nil || got != seq {
			return fmt.Errorf("packet %d, want %d: %w", got, seq, err)
		}
		return nil
	})
}

// TestXDPTooLong checks that frames above the current MTU are counted as dropped, and that others are sent.
func TestXDPTooLong(t *testing.T) {
	onVeth(t, "", func(b *bench, tap *session.Tap) error {
		const long = 17 // 60 + 17 * 37 = 689 bytes
		if err := errors.Join(link("left mtu 500"), link("right mtu 500")); err != nil {
			return err
		}
		if err := errors.Join(b.send(0, 1, 7148), b.arrives(tap, 0), b.send(long, 1, 7148), b.send(1, 1, 7148),
			b.arrives(tap, 1), b.await("a.tx.dropped_by.too_long", 1)); err != nil {
			return err
		}
		if err := errors.Join(link("left mtu 1500"), link("right mtu 1500"), b.send(long, 1, 7148)); err != nil {
			return err
		}
		return b.arrives(tap, long)
	})
}

// TestXDPSendDown sends while the interface or its peer is down, and checks that packets are counted as dropped after a while and that sending
// continues when both are up.
func TestXDPSendDown(t *testing.T) {
	onVeth(t, "", func(b *bench, tap *session.Tap) error {
		lost := 0.0
		for k, who := range []string{"left", "right"} {
			seq := uint64(10 * k)
			if err := errors.Join(b.send(seq, 1, 7148), b.arrives(tap, seq), link(who+" down")); err != nil {
				return err
			}
			lost++
			if err := errors.Join(b.send(seq+1, 1, 7148), b.await("a.tx.dropped_by.send_error", lost)); err != nil {
				return err
			}
			if err := errors.Join(link(who+" up"), b.carrier(), b.send(seq+2, 1, 7148), b.arrives(tap, seq+2)); err != nil {
				return err
			}
		}
		var faults []string
		for _, f := range b.s.Ledger().QueueErrors {
			faults = append(faults, f.Text)
		}
		if !strings.Contains(strings.Join(faults, ", "), "network is down") {
			t.Errorf("faults: %v", faults)
		}
		return nil
	})
}

// TestXDPReplaced replaces both interfaces by new ones of the same names, and checks that sent packets are counted with the reason.
func TestXDPReplaced(t *testing.T) {
	onVeth(t, "", func(b *bench, tap *session.Tap) error {
		if err := errors.Join(b.send(0, 1, 7148), b.arrives(tap, 0)); err != nil {
			return err
		}
		if out, err := exec.Command("ip", "link", "del", "left").CombinedOutput(); err != nil {
			return fmt.Errorf("ip link del left: %w: %s", err, out)
		}
		if err := addPair(1); err != nil {
			return err
		}
		if err := errors.Join(b.carrier(), b.send(1, 1, 7148), b.await("a.tx.dropped_by.send_error", 1)); err != nil {
			return err
		}
		output := map[string]string{}
		for _, f := range b.s.Ledger().QueueErrors {
			output[f.Line] += f.Text
		}
		for _, line := range []string{"a.tx.0", "b.rx.0"} {
			if !strings.Contains(output[line], "no such device: the interface was removed; one made again") {
				t.Errorf("faults: %v", output)
			}
		}
		return nil
	})
}

// carrier waits until left has a carrier.
func (b *bench) carrier() error {
	for until := b.deadline(); b.me.Now() < until; time.Sleep(5 * time.Millisecond) {
		out, err := exec.Command("ip", "link", "show", "left").Output()
		if err != nil || strings.Contains(string(out), "LOWER_UP") {
			return err
		}
	}
	return errors.New("left gets no carrier")
}

// TestXDPHearsNoEcho checks that an interface does not receive what it sends itself, also with a fanout group of two queues.
func TestXDPHearsNoEcho(t *testing.T) {
	own := "      tx:\n        queues:\n        - {name: back, id: 0, poll_mode: direct, batch_size: 32, memory_regions: [out]}\n"
	onVeth(t, own, func(b *bench, tap *session.Tap) error {
		back, err := b.s.TxQueue("b", "back")
		if err != nil {
			return err
		}
		if err := back.Adopt(b.me); err != nil {
			return err
		}
		there := b.tx
		b.tx = back
		err = b.send(100, 5, 7148)
		b.tx = there
		if err = errors.Join(err, b.await("b.tx.out", 5), b.send(1, 1, 7148)); err != nil {
			return err
		}
		return errors.Join(b.arrives(tap, 1), b.await("b.wire.in", 1))
	})
}
