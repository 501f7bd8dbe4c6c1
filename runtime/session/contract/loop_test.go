package contract

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Tests of the loop engine beyond the contract. On the virtual clock the figures are exact.

// virtualBench opens the loop engine on the virtual clock; change edits its configuration.
func virtualBench(t *testing.T, extra string, change func(string) string, fn func(b *bench) error) {
	t.Helper()
	e := engine{name: "loop-virtual", frames: true, direct: true, virtual: true, faults: ", rate: 10Gbit/s"}
	onTask(t, func(me *task.Task) error {
		text, err := e.yaml(extra)
		if err != nil {
			return err
		}
		cfg, _, err := spec.ParseText("loop.yaml", change(text), spec.Options{})
		if err != nil {
			return err
		}
		s, err := session.Open(cfg, session.Env{Scheduler: me.Scheduler(), Owner: me})
		if err != nil {
			return err
		}
		defer s.Close()
		b := &bench{engine: e, s: s, me: me, l: session.NewLeases()}
		b.tx, b.rx = s.Interfaces()[0].TxQueues()[0], s.Interfaces()[1].RxQueues()[0]
		return fn(b)
	})
}

func asItIs(text string) string { return text }

// transmit sends count packets of a length from a template; vary selects changing fields.
func (b *bench) transmit(length int, count uint64, vary ...session.Vary) error {
	packet := make([]byte, length)
	b.put(packet, 0, 7148)
	tpl, err := b.s.Template(session.TemplateConfig{Packet: packet, Vary: vary, Checksums: true})
	if err != nil {
		return err
	}
	return b.tx.Transmit(tpl, count)
}

// figure returns a figure of the ledger, or NaN.
func (b *bench) figure(name string) float64 {
	if v, ok := b.s.Ledger().Lookup(name); ok {
		return v
	}
	return math.NaN()
}

func TestPaceChangesWhileItRuns(t *testing.T) {
	virtualBench(t, "", asItIs, func(b *bench) error {
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		if err := b.transmit(100, 0); err != nil {
			return err
		}
		before := 0.0
		for _, c := range []struct {
			bps, pps float64
			want     float64 // expected packets in 10 ms
		}{
			{0, 1e6, 10000}, {0, 5e4, 500}, {8e7, 0, 1000}, {1.6e9, 1e5, 1000},
		} {
			if err := b.tx.Pace(c.bps, c.pps); err != nil {
				return err
			}
			if _, err := b.me.Wait(b.me.Now() + int64(10*time.Millisecond)); err != nil {
				return err
			}
			now := b.figure("a.tx.packets")
			if got := now - before; math.Abs(got-c.want) > 2 {
				t.Errorf("pace %g bit/s, %g packets/s: %v packets in 10 ms, want %v", c.bps, c.pps, got, c.want)
			}
			before = now
		}
		if err := b.tx.StopTransmit(); err != nil {
			return err
		}
		if n, endless := b.tx.Remaining(); n != 0 || endless {
			t.Errorf("remaining %d, endless %v", n, endless)
		}
		return nil
	})
}

func TestHashSpreadsFlows(t *testing.T) {
	const flows = "        flows:\n        - {name: all, id: 5, action: {type: queue, ids: [0, 1]}}\n"
	virtualBench(t, flows, asItIs, func(b *bench) error {
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		queues, err := b.s.RxQueues("b")
		if err != nil {
			return err
		}
		count, err := b.s.Count("both")
		if err != nil {
			return err
		}
		if _, err := b.s.Pipe(queues, count); err != nil {
			return err
		}
		src, ok := session.FieldNamed("udp_src")
		if !ok {
			return fmt.Errorf("no field udp_src")
		}
		if err := b.transmit(100, 1000, session.Vary{Field: src, Start: 4000, Step: 1}); err != nil {
			return err
		}
		if _, err := b.me.Wait(b.me.Now() + int64(10*time.Millisecond)); err != nil {
			return err
		}
		zero, one := b.figure("b.rx.0.in"), b.figure("b.rx.1.in")
		if zero+one != 1000 || zero < 300 || one < 300 {
			t.Errorf("%v and %v of 1000 packets", zero, one)
		}
		return nil
	})
}

// split adds a region for headers to the receive queues.
func split(text string) string {
	text = strings.ReplaceAll(text, "[in]", "[headers, in]")
	return strings.Replace(text, "memory_regions:\n", `memory_regions:
    - {name: headers, kind: host, affinity: 0, num_bufs: 1024, buf_size: 42}
`, 1)
}

func TestHeaderDataSplit(t *testing.T) {
	virtualBench(t, "", split, func(b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		if err := b.send(3, 1, 7148); err != nil {
			return err
		}
		x, err := tap.Next(b.l, b.deadline())
		if err != nil {
			return err
		}
		defer x.EndHandler()
		var whole []byte
		for seg, want := range []int{headers, b.length(3) - headers} {
			p, err := x.Packet(seg, 0)
			if err != nil || len(p) != want || x.Segments() != 2 {
				return fmt.Errorf("segment %d of %d: %d bytes, want %d, %w", seg, x.Segments(), len(p), want, err)
			}
			whole = append(whole, p...)
		}
		_, err = b.seq(whole)
		return err
	})
}

func TestSourceAddressIsFilledIn(t *testing.T) {
	offload := func(text string) string {
		return strings.Replace(text, "memory_regions: [out]", "memory_regions: [out]\n          offloads: [tx_eth_src]", 1)
	}
	virtualBench(t, "", offload, func(b *bench) error {
		mac, err := b.tx.Interface().MAC()
		if err != nil {
			return err
		}
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		if err := b.sendFrame(with(datagram(), 6, 0x0e, 1, 2, 3, 4, 5)); err != nil {
			return err
		}
		return b.receive(tap, 1, func(x *session.Burst, i int) error {
			p, err := x.Packet(0, i)
			if err == nil && !bytes.Equal(p[6:12], mac) {
				err = fmt.Errorf("source %x, want %v", p[6:12], mac)
			}
			return err
		})
	})
}

func TestDropAllTraffic(t *testing.T) {
	virtualBench(t, "", asItIs, func(b *bench) error {
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		port := b.rx.Interface()
		for n, drop := range []bool{true, false} {
			if err := port.DropAll(drop); err != nil {
				return err
			}
			if err := b.send(uint64(n), 10, 7148); err != nil {
				return err
			}
			if _, err := b.me.Wait(b.me.Now() + int64(time.Millisecond)); err != nil {
				return err
			}
		}
		// Packets that b drops end on a's wire and never reach a queue.
		if dropped, in := b.figure("a.wire.dropped_by.drop_all"), b.figure("b.rx.in"); dropped != 10 || in != 10 {
			t.Errorf("dropped %v, taken in %v, of 20", dropped, in)
		}
		return nil
	})
}

func TestStagesInAPipe(t *testing.T) {
	virtualBench(t, "", asItIs, func(b *bench) error {
		sample, err := b.s.Sample("tenth", 10)
		if err != nil {
			return err
		}
		count, err := b.s.Count("")
		if err != nil {
			return err
		}
		if _, err := b.s.Pipe([]*session.Queue{b.rx}, sample, count); err != nil {
			return err
		}
		if _, err := b.s.Count("tenth"); err == nil {
			t.Error("two stages of one name")
		}
		if _, err := b.s.Count("a"); err == nil {
			t.Error("a stage named as an interface")
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		for seq := range uint64(30) {
			if err := b.send(seq, 1, 7148); err != nil {
				return err
			}
			if _, err := b.me.Wait(b.me.Now() + int64(100*time.Microsecond)); err != nil {
				return err
			}
		}
		for name, want := range map[string]float64{"tenth.in": 30, "count1.in": 3, "tenth.dropped_by.not_sampled": 27} {
			if got := b.figure(name); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		return nil
	})
}

func TestForwardSendsOn(t *testing.T) {
	echo := func(text string) string { // b sends back to a on a second wire
		text = strings.Replace(text, "address: left\n", `address: left
      rx:
        queues: [{name: back, id: 0, poll_mode: direct, memory_regions: [out]}]
`, 1)
		return strings.Replace(text, "address: right\n", `address: right
      tx:
        queues: [{name: reply, id: 0, poll_mode: direct, memory_regions: [in]}]
`, 1)
	}
	virtualBench(t, "", echo, func(b *bench) error {
		reply, err := b.s.TxQueue("b", "reply")
		if err != nil {
			return err
		}
		on, err := b.s.Forward("on", reply, session.Wait)
		if err != nil {
			return err
		}
		if _, err := b.s.Pipe([]*session.Queue{b.rx}, on); err != nil {
			return err
		}
		back, err := b.s.RxQueue("a", "back")
		if err != nil {
			return err
		}
		tap, err := back.Tap(b.me, nil, session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		if err := b.send(40, 5, 7148); err != nil {
			return err
		}
		next := uint64(40)
		err = b.receive(tap, 5, func(x *session.Burst, i int) error {
			p, err := x.Packet(0, i)
			if err != nil {
				return err
			}
			if seq, err := b.seq(p); err != nil || seq != next {
				return fmt.Errorf("packet %d where %d was due: %w", seq, next, err)
			}
			next++
			return nil
		})
		if n := b.figure("on.out"); n != 5 {
			t.Errorf("forwarded %v of 5", n)
		}
		return err
	})
}

// TestTransmitTellsWhatDoesNotFit checks that the error for a template longer than a region's buffers names the region.
func TestTransmitTellsWhatDoesNotFit(t *testing.T) {
	onTask(t, func(me *task.Task) error {
		b, err := loop(false).open(me, "")
		if err != nil {
			return err
		}
		defer b.s.Close()
		tpl, err := b.s.Template(session.TemplateConfig{Packet: make([]byte, 2049)})
		if err != nil {
			return err
		}
		err = b.tx.Transmit(tpl, 1)
		if want := "2049 bytes don't fit the 2048 of region out's buffers"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
		return nil
	})
}

// TestUnread checks that the ledger marks a queue as unread until a pipe reads it.
func TestUnread(t *testing.T) {
	virtualBench(t, "", asItIs, func(b *bench) error {
		unread := func() (names []string) {
			for _, l := range b.s.Ledger().Lines {
				if l.Unread {
					names = append(names, l.Title())
				}
			}
			return names
		}
		if got := strings.Join(unread(), " "); got != "b.rx.0 b.rx.1" {
			return fmt.Errorf("unread at first: %s", got)
		}
		tap, err := b.rx.Tap(b.me, nil, session.TapOptions{})
		if err != nil {
			return err
		}
		tap.Close()
		if got := strings.Join(unread(), " "); got != "b.rx.1" {
			return fmt.Errorf("unread behind a tap: %s", got)
		}
		return nil
	})
}
