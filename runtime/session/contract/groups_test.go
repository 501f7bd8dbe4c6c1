package contract

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/session"
)

// Contract tests of groups and addresses of an interface.

// refuses checks that an error is of a kind, names the interface and contains words.
func refuses(what string, err, kind error, words string) error {
	if err == nil || !errors.Is(err, kind) || !strings.Contains(err.Error(), "interface b") || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("%s: %v, want %v with interface b and %q", what, err, kind, words)
	}
	return nil
}

// TestContractGroups joins and leaves a group while packets flow; engines without groups return an error.
func TestContractGroups(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		i, group := b.rx.Interface(), "239.9.1.7"
		if strings.Contains(b.endpoint, "[") {
			group = "ff15::9:7"
		}
		if strings.HasPrefix(b.endpoint, "tcp:") || b.rdma != "" {
			return refuses("join", i.JoinMulticast(group, ""), session.ErrNotSupported, "multicast is for udp://")
		}
		if err := refuses("no group", i.JoinMulticast("10.1.1.1", ""), session.ErrInvalid, "10.1.1.1"); err != nil {
			return err
		}
		for range 2 { // the second call changes nothing
			if err := i.JoinMulticast(group, ""); err != nil {
				return err
			}
		}
		if err := b.send(1, 4, 7148); err != nil {
			return err
		}
		seen := map[uint64]bool{}
		for !seen[4] { // an interface of frames may receive other packets too
			x, err := tap.Next(b.l, b.deadline())
			if err != nil {
				return fmt.Errorf("after %d of 4 packets: %w", len(seen), err)
			}
			for k := range x.N() {
				if p, err := x.Packet(0, k); err != nil {
					return err
				} else if seq, err := b.seq(p); err == nil {
					seen[seq] = true
				}
			}
			if err := x.Free(); err != nil {
				return err
			}
		}
		if err := i.LeaveMulticast(group, ""); err != nil {
			return err
		}
		if err := i.LeaveMulticast(group, ""); err == nil || !strings.Contains(err.Error(), group) {
			return fmt.Errorf("a second leave: %v, want an error that names %s", err, group)
		}
		return nil
	})
}

// TestContractAnswer requests answers from an interface without a transmit queue and from sockets; both return an error with the reason.
func TestContractAnswer(t *testing.T) {
	withBench(t, "", func(_ *testing.T, b *bench) error {
		err := b.rx.Interface().Answer([]netip.Addr{netip.MustParseAddr("10.9.1.7")})
		if !b.frames {
			return refuses("answer", err, session.ErrNotSupported, "to the kernel")
		}
		return refuses("answer", err, session.ErrInvalid, "it has no transmit queue")
	})
}

// TestConfiguredAnswers checks that a frame interface answers an ARP request for an address of its configuration.
func TestConfiguredAnswers(t *testing.T) {
	both := func(text string) string { // b also sends, and a also receives
		text = strings.Replace(text, "address: left\n", `address: left
      rx:
        queues: [{name: back, id: 0, poll_mode: direct, memory_regions: [out]}]
`, 1)
		return strings.Replace(text, "address: right\n", `address: right
      answers: [10.9.1.7, "fd98::7"]
      tx:
        queues: [{name: reply, id: 0, poll_mode: direct, memory_regions: [in]}]
`, 1)
	}
	virtualBench(t, "", both, func(b *bench) error {
		back, err := b.s.RxQueue("a", "back")
		if err != nil {
			return err
		}
		tap, err := back.Tap(b.me, nil, session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		if _, err := b.rx.Tap(b.me, nil, session.TapOptions{}); err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		request := make([]byte, 60)
		copy(request, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0xbb, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1,
			2, 0, 0, 0, 0, 0xbb, 10, 9, 1, 1, 0, 0, 0, 0, 0, 0, 10, 9, 1, 7})
		tpl, err := b.s.Template(session.TemplateConfig{Packet: request})
		if err != nil {
			return err
		}
		if err := b.tx.Transmit(tpl, 1); err != nil {
			return err
		}
		for {
			x, err := tap.Next(b.l, b.deadline())
			if err != nil {
				return fmt.Errorf("no answer: %w", err)
			}
			for k := range x.N() {
				p, err := x.Packet(0, k)
				if err != nil {
					return err
				}
				if p[12] == 8 && p[13] == 6 { // otherwise a report that it joined fd98::7's group
					if p[21] != 2 || [4]byte(p[28:32]) != [4]byte{10, 9, 1, 7} || p[5] != 0xbb {
						t.Errorf("the answer is % x", p)
					}
					return x.Free()
				}
			}
			if err := x.Free(); err != nil {
				return err
			}
		}
	})
}
