// Package contract tests sessions as callers use them: what every engine must do, in worker and in direct mode, and what each key of a configuration
// does.
package contract

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// The contract suite checks the guarantees that all engines give, in worker and in direct mode. The engines are listed by engines.

func TestContractOrderAndLengths(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		const rounds, n = 20, 10
		next := uint64(0)
		for r := range uint64(rounds) {
			if err := b.send(r*n, n, 7148); err != nil {
				return err
			}
			err := b.receive(tap, n, func(x *session.Burst, i int) error {
				p, err := x.Packet(0, i)
				if err != nil {
					return err
				}
				seq, err := b.seq(p)
				if err == nil && seq != next || len(p) != b.length(seq) {
					err = fmt.Errorf("packet %d of %d bytes where %d of %d was due", seq, len(p), next, b.length(next))
				}
				if x.RxTimes()[i] < b.s.StartTime() || x.RxTimes()[i] > b.s.Now() {
					err = fmt.Errorf("packet %d: time %d is outside the session", seq, x.RxTimes()[i])
				}
				next++
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func TestContractCounters(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		const rounds, n = 10, 7
		bytes := 0
		for r := range uint64(rounds) {
			if err := b.send(r*n, n, 7148); err != nil {
				return err
			}
			if err := b.receive(tap, n, func(x *session.Burst, i int) error { return nil }); err != nil {
				return err
			}
			for i := range uint64(n) {
				bytes += b.length(r*n + i)
			}
		}
		b.quiesce()
		l := b.s.Ledger()
		for name, want := range map[string]float64{
			"a.tx.packets":   rounds * n,
			"a.tx.in":        rounds * n,
			"a.tx.bytes":     float64(bytes),
			"a.tx.held":      0,
			"a.tx.dropped":   0,
			"b.rx.packets":   rounds * n,
			"b.rx.0.out":     rounds * n,
			"b.rx.bytes":     float64(bytes),
			"b.rx.held":      0,
			"b.rx.dropped":   0,
			"tap1.in":        rounds * n,
			"tap1.out_bytes": float64(bytes),
		} {
			if got, ok := l.Lookup(name); !ok || got != want {
				t.Errorf("%s: got %v, want %v", name, got, want)
			}
		}
		return nil
	})
}

// checkGone checks that all uses of a burst fail after its ownership has ended.
func (b *bench) checkGone(t *testing.T, x *session.Burst, how string) {
	t.Helper()
	if x.Live() || !strings.Contains(fmt.Sprint(x.Check()), how) {
		t.Errorf("a burst that %s: %v", how, x.Check())
	}
	_, packet := x.Packet(0, 0)
	_, column := x.Column(b.seqField(), make([]uint64, 8), nil)
	for what, err := range map[string]error{
		"packet": packet, "column": column, "free": x.Free(), "send": b.tx.Send(x), "length": x.SetLen(0, 0, 1),
	} {
		var g *session.GoneError
		if !errors.As(err, &g) {
			t.Errorf("%s of a burst that %s: %v", what, how, err)
		}
	}
}

func TestContractOwnership(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		gone := func(x *session.Burst, how string) { t.Helper(); b.checkGone(t, x, how) }
		freed, err := b.tx.Alloc(b.l, 3)
		if err != nil {
			return err
		}
		if err := freed.Free(); err != nil {
			return err
		}
		gone(freed, "was freed")
		sent, err := b.tx.Alloc(b.l, 1)
		if err != nil {
			return err
		}
		if err := b.fill(sent); err != nil {
			return err
		}
		if err := b.tx.Send(sent); err != nil {
			return err
		}
		gone(sent, "was sent")
		handled, err := tap.Next(b.l, b.deadline())
		if err != nil {
			return err
		}
		handled.EndHandler()
		gone(handled, "ended with its handler")

		kept, err := b.tx.Alloc(b.l, 2)
		if err != nil {
			return err
		}
		if err := kept.Keep(); err != nil {
			return err
		}
		kept.EndHandler()
		if !kept.Live() || b.l.Held() != 1 {
			t.Errorf("a kept burst lives on: %v, held %d", kept.Check(), b.l.Held())
		}
		if n := b.l.ReleaseAll(); n != 1 || b.l.Held() != 0 {
			t.Errorf("released %d, held %d", n, b.l.Held())
		}
		gone(kept, "ended with its task")
		return nil
	})
}

func TestContractErrors(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		x, err := b.tx.Alloc(b.l, 4)
		if err != nil {
			return err
		}
		_, few := b.tx.Alloc(b.l, 0)
		_, many := b.tx.Alloc(b.l, 33)
		_, receiver := b.rx.Alloc(b.l, 1)
		_, past := x.Packet(0, 4)
		_, before := x.Packet(0, -1)
		_, segment := x.Packet(1, 0)
		_, pipe := b.s.Pipe([]*session.Queue{b.tx}, nil)
		_, empty := b.s.Pipe(nil)
		_, queue := b.s.RxQueue("b", "rx9")
		_, other := b.s.RxQueue("b", "something")
		_, iface := b.s.Interface("bb")
		for _, c := range []struct {
			name string
			err  error
			want string
		}{
			{"alloc of none", few, "1 to 32"},
			{"alloc of too many", many, "33 packets"},
			{"alloc on a receive queue", receiver, "transmit queue"},
			{"packet past the end", past, "packet 4: the burst has 4 packets"},
			{"packet before the start", before, "packet -1"},
			{"segment", segment, "segment 1"},
			{"send on a receive queue", b.rx.Send(x), "it receives"},
			{"length past the buffer", x.SetLen(0, 0, 1<<20), "invalid parameter"},
			{"truncate to more", x.Truncate(5), "the burst has 4"},
			{"pipe from a transmit queue", pipe, "not a receive queue"},
			{"pipe of nothing", empty, "needs a source"},
			{"no such queue", queue, `interface b: receive queue "rx9": not in this session; did you mean "rx0"?`},
			{"no such queue at all", other, `interface b: receive queue "something": not in this session; there is rx0`},
			{"no such interface", iface, `interface "bb": not in this session; did you mean "b"?`},
		} {
			if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, c.err, c.want)
			}
		}
		if err := x.Check(); err != nil {
			t.Errorf("errors must leave the burst to its owner: %v", err)
		}
		return nil
	})
}

func TestContractPoolsRunDry(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		var held []*session.Burst
		for {
			x, err := b.tx.Alloc(b.l, 32)
			if err != nil {
				if !errors.Is(err, session.ErrNoPacket) && !errors.Is(err, session.ErrNoBurst) {
					return err
				}
				break
			}
			held = append(held, x)
		}
		if len(held) == 0 || len(held) > 1024/32 {
			t.Errorf("%d bursts of 32 from 1024 buffers", len(held))
		}
		if err := held[0].Free(); err != nil {
			return err
		}
		_, err := b.tx.Alloc(b.l, 32)
		return err
	})
}

func TestContractTapDropsForItself(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		slow, err := b.rx.Tap(b.me, "slow", session.TapOptions{Depth: 2, Policy: session.Drop})
		if err != nil {
			return err
		}
		count, err := b.s.Count("all")
		if err != nil {
			return err
		}
		if _, err := b.s.Pipe([]*session.Queue{b.rx}, count); err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		const n = 50
		for seq := range uint64(n) {
			if err := b.send(seq, 1, 7148); err != nil {
				return err
			}
		}
		for at := b.deadline(); b.me.Now() < at; {
			if got, _ := b.s.Ledger().Lookup("all.in"); got == n {
				break
			}
			if _, err := b.me.WaitFor(b.me.Now()+1e6, func(*task.Item) bool { return false }); err != nil {
				return err
			}
		}
		b.quiesce()
		l := b.s.Ledger()
		in, _ := l.Lookup("all.in")
		tapIn, _ := l.Lookup(slow.Name() + ".in")
		if in != n || tapIn != n {
			t.Errorf("the counter saw %v, the tap %v of %d packets", in, tapIn, n)
		}
		return nil
	})
}

func TestContractCloseInMidTraffic(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			onTask(t, func(me *task.Task) error {
				b, err := e.open(me, "")
				if err != nil {
					return err
				}
				tap, err := b.rx.Tap(me, nil, session.TapOptions{})
				if err != nil {
					return err
				}
				packet := make([]byte, 200)
				b.put(packet, 1, 7148)
				tpl, err := b.s.Template(session.TemplateConfig{Packet: packet})
				if err != nil {
					return err
				}
				if err := b.tx.Pace(1e9, 0); err != nil {
					return err
				}
				if err := b.s.Start(me); err != nil {
					return err
				}
				if err := b.tx.Transmit(tpl, 0); err != nil {
					return err
				}
				x, err := tap.Next(b.l, b.deadline())
				if err != nil {
					return err
				}
				if err := x.Free(); err != nil {
					return err
				}
				kept, err := tap.Next(b.l, b.deadline())
				if err != nil {
					return err
				}
				if leaked := b.s.Close(); leaked == 0 || b.s.Close() != leaked {
					t.Errorf("%d buffers are missing, and one burst of %d is held", leaked, kept.N())
				}
				if err := kept.Check(); err == nil || !strings.Contains(err.Error(), "closed") {
					t.Errorf("a burst of a closed session: %v", err)
				}
				if _, err := b.tx.Alloc(b.l, 1); !errors.Is(err, session.ErrClosed) {
					t.Errorf("alloc after the close: %v", err)
				}
				if got, _ := b.s.Ledger().Lookup("b.rx.packets"); got == 0 {
					t.Error("the last ledger has gone")
				}
				return nil
			})
		})
	}
}

// pinnedMemory returns the kernel's figure of memory of this process pinned by devices.
func pinnedMemory() (string, error) {
	text, err := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(text), "\nVmPin:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line), err
}

func TestContractReopen(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			onTask(t, func(me *task.Task) error {
				fds, rounds := -1, 100
				switch {
				case e.cards != "" || e.devices != "":
					rounds = 4 // a card needs time to find its link, more so if emulated
				case e.veth:
					rounds = 10 // the kernel needs time to close the sockets
				case e.rdma != "" && e.name != "rdma-rc/worker":
					rounds = 10 // emulated; one variant runs all hundred
				}
				for round := range rounds {
					b, err := e.open(me, "")
					if err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
					tap, err := b.begin(session.Drop)
					if err != nil {
						return err
					}
					if err := b.send(0, 3, 7148); err != nil {
						return err
					}
					if err := b.receive(tap, 3, func(*session.Burst, int) error { return nil }); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
					if n := b.s.Close(); n != 0 {
						return fmt.Errorf("round %d: %d buffers are missing", round, n)
					}
					if kept, err := pinnedMemory(); e.rdma != "" && (err != nil || kept != "0 kB") {
						return fmt.Errorf("round %d: %q of pinned memory are left: %v", round, kept, err)
					}
					entries, err := os.ReadDir("/proc/self/fd")
					switch now := len(entries); {
					case err != nil:
						return err
					case round == 1:
						fds = now
					case round > 1 && now > fds:
						return fmt.Errorf("round %d: %d descriptors, %d after the first rounds", round, now, fds)
					}
				}
				return nil
			})
		})
	}
}

func TestContractStopIsSeen(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		if _, err := b.rx.Tap(b.me, nil, session.TapOptions{}); err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		if _, ok := b.s.Stopping(); ok {
			t.Error("stopping before anybody asked")
		}
		go func() {
			b.s.Stop("first")
			b.s.Stop("second")
		}()
		for {
			if reason, ok := b.s.Stopping(); ok {
				if reason != "first" {
					t.Errorf("reason %q", reason)
				}
				return nil
			}
			if _, err := b.me.Wait(b.me.Now() + int64(time.Second)); err != nil && !errors.Is(err, task.ErrIdle) {
				return err
			}
		}
	})
}
