package contract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Tests of configuration keys by their effect at the other end of the wire, so that a key that is parsed and not applied fails. They use the virtual
// clock, where times are exact. Keys of sockets are in socket_keys_test.go, those of a match in match_keys_test.go.

// keyBench opens the loop engine on the virtual clock, with pairs of texts replaced in its configuration.
func keyBench(t *testing.T, pairs []string, fn func(b *bench) error) {
	t.Helper()
	change := func(text string) string {
		for k := 0; k < len(pairs); k += 2 {
			if !strings.Contains(text, pairs[k]) {
				t.Fatalf("%q is not in\n%s", pairs[k], text)
			}
			text = strings.Replace(text, pairs[k], pairs[k+1], 1)
		}
		return text
	}
	virtualBench(t, "", change, fn)
}

// arrived is a packet at the other end.
type arrived struct {
	seq   uint64
	ts    int64
	burst int // index of its burst
	whole bool
}

// drain reads the receive queues of interface b into a counter, and starts the session.
func (b *bench) drain() error {
	queues, err := b.s.RxQueues("b")
	if err != nil {
		return err
	}
	count, err := b.s.Count("drain")
	if err != nil {
		return err
	}
	if _, err := b.s.Pipe(queues, count); err != nil {
		return err
	}
	return b.s.Start(b.me)
}

// through sends n packets of a length in one burst and returns those that arrive within a second.
func (b *bench) through(n, length int) (got []arrived, err error) {
	tap, err := b.begin(session.Wait)
	if err != nil {
		return nil, err
	}
	x, err := b.tx.Alloc(b.l, n)
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := x.SetLen(0, i, length); err != nil {
			return nil, err
		}
		p, err := x.Packet(0, i)
		if err != nil {
			return nil, err
		}
		b.put(p, uint64(i), 7148)
	}
	if err := b.tx.Send(x); err != nil {
		return nil, err
	}
	for burst := 0; ; burst++ {
		x, err := tap.Next(b.l, b.s.StartTime()+int64(time.Second))
		if errors.Is(err, session.ErrNotReady) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range x.N() {
			p, err := x.Packet(0, i)
			if err != nil {
				return nil, err
			}
			seq, err := b.seq(p)
			got = append(got, arrived{seq, x.RxTimes()[i] - b.s.StartTime(), burst, err == nil && len(p) == length})
		}
		if err := x.Free(); err != nil {
			return nil, err
		}
	}
}

func numbers(got []arrived) (list []uint64) {
	for _, p := range got {
		list = append(list, p.seq)
	}
	return list
}

// steps checks that the times of packets are first, first + gap ...
func steps(got []arrived, first, gap int64) error {
	for i, p := range got {
		if want := first + int64(i)*gap; p.ts < want || p.ts > want+1 {
			return fmt.Errorf("packet %d came at %d ns, want %d", i, p.ts, want)
		}
	}
	return nil
}

// size checks the number of packets.
func size(got []arrived, n int) error {
	if len(got) != n {
		return fmt.Errorf("%d packets, want %d", len(got), n)
	}
	return nil
}

// A wireKey is a key whose effect is visible in 20 packets of 1000 bytes, sent in one burst.
type wireKey struct {
	key   string
	pairs []string // texts of the configuration and their replacements
	sees  func(got []arrived) error
}

const wireRate = "rate: 10Gbit/s"

func wireKeys() []wireKey {
	return []wireKey{
		{"loopback.loss", []string{wireRate, "loss: 1"}, func(got []arrived) error { return size(got, 0) }},
		{"loopback.dup", []string{wireRate, "dup: 1"}, func(got []arrived) error { return size(got, 40) }},
		{"loopback.corrupt", []string{wireRate, "corrupt: 1"}, func(got []arrived) error {
			if slices.ContainsFunc(got, func(p arrived) bool { return p.whole && p.seq < 20 }) {
				return fmt.Errorf("a packet is whole: %v", got)
			}
			return size(got, 20)
		}},
		{"loopback.reorder", []string{wireRate, "reorder: 0.5"}, func(got []arrived) error {
			list := numbers(got)
			if slices.IsSorted(list) {
				return fmt.Errorf("in order: %v", list)
			}
			return size(got, 20)
		}},
		{"loopback.delay", []string{wireRate, "delay: 3ms"}, func(got []arrived) error {
			if len(got) > 0 && (got[0].ts < 3e6 || got[19].ts > 3e6+20*80) { // the wire's default rate is 100 Gbit/s
				return fmt.Errorf("from %d to %d ns", got[0].ts, got[19].ts)
			}
			return size(got, 20)
		}},
		{"loopback.rate", []string{wireRate, "rate: 80Mbit/s"}, func(got []arrived) error {
			return errors.Join(size(got, 20), steps(got, 100e3, 100e3))
		}},
		{"queue.pacing_mbps", []string{"memory_regions: [out]", "memory_regions: [out]\n          pacing_mbps: 8"}, func(got []arrived) error {
			return errors.Join(size(got, 20), steps(got, 800, 1e6))
		}},
		{"queue.batch_size of a receive queue", []string{"name: rx0\n          id: 0\n          poll_mode: direct\n          batch_size: 32",
			"name: rx0\n          id: 0\n          poll_mode: direct\n          batch_size: 3"}, func(got []arrived) error {
			per := map[int]int{}
			for _, p := range got {
				per[p.burst]++
			}
			for burst, n := range per {
				if n > 3 {
					return fmt.Errorf("burst %d has %d packets", burst, n)
				}
			}
			return size(got, 20)
		}},
		{"region.buf_size of a receive queue", []string{"num_bufs: 1024, buf_size: 2048}\n    interfaces", "num_bufs: 1024, buf_size: 999}\n    interfaces"},
			func(got []arrived) error { return size(got, 0) }},
		{"region.num_bufs of a receive queue", []string{"{name: in, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}",
			"{name: in, kind: host, affinity: 0, num_bufs: 7, buf_size: 4096}"}, func(got []arrived) error {
			if len(got) > 19 {
				return fmt.Errorf("%d packets through 7 buffers", len(got))
			}
			return nil
		}},
	}
}

func TestKeysOfTheWire(t *testing.T) {
	for _, c := range wireKeys() {
		t.Run(c.key, func(t *testing.T) {
			keyBench(t, c.pairs, func(b *bench) error {
				got, err := b.through(20, 1000)
				if err != nil {
					return err
				}
				return c.sees(got)
			})
		})
	}
}

// TestKeySeed checks that equal seeds lose the same packets, and different seeds different ones.
func TestKeySeed(t *testing.T) {
	lost := func(seed string) (list []uint64) {
		keyBench(t, []string{"seed: 7", "seed: " + seed, wireRate, "loss: 0.5"}, func(b *bench) error {
			got, err := b.through(32, 100)
			list = numbers(got)
			return err
		})
		return list
	}
	seven, again, eight := lost("7"), lost("7"), lost("8")
	if !slices.Equal(seven, again) || slices.Equal(seven, eight) || len(seven) == 0 {
		t.Errorf("seed 7: %v and %v, seed 8: %v", seven, again, eight)
	}
}

// TestKeyTimeout checks that a partial burst is delivered after timeout_us, and never if that is 0.
func TestKeyTimeout(t *testing.T) {
	const direct = "name: rx0\n          id: 0\n          poll_mode: direct\n          batch_size: 32"
	for us, want := range map[int]int64{0: 0, 300: 300e3, 5000: 5e6} {
		t.Run(fmt.Sprint(us), func(t *testing.T) {
			indirect := fmt.Sprintf("name: rx0\n          id: 0\n          cpu_core: -1\n          batch_size: 32\n          timeout_us: %d", us)
			keyBench(t, []string{direct, indirect}, func(b *bench) error {
				tap, err := b.begin(session.Wait)
				if err != nil {
					return err
				}
				if err := b.send(0, 3, 7148); err != nil {
					return err
				}
				x, err := tap.Next(b.l, b.s.StartTime()+int64(time.Second))
				if want == 0 {
					if !errors.Is(err, session.ErrNotReady) {
						t.Errorf("a burst of 3 of 32, %v", err)
					}
					return nil
				}
				if err != nil {
					return err
				}
				if late := b.s.Now() - x.RxTimes()[0]; late < want || late > want+1000 || x.N() != 3 {
					t.Errorf("%d packets after %d ns, want %d", x.N(), late, want)
				}
				return x.Free()
			})
		})
	}
}

// TestKeysOfSupplies checks the limits on packets of a region, bursts of a queue and bytes of a buffer.
func TestKeysOfSupplies(t *testing.T) {
	const in, longer = "{name: in, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}", "{name: in, kind: host, affinity: 0, num_bufs: 1024, buf_size: 4096}"
	for meta, all := range map[int]bool{40: true, 5: false} { // different buffer sizes: packets are copied to the receiver's bursts
		keyBench(t, []string{"master_core: 0", fmt.Sprintf("master_core: 0\n    tx_meta_buffers: 11\n    rx_meta_buffers: %d", meta), in, longer}, func(b *bench) error {
			if n, err := b.spareBursts(); n != 11 || err != nil {
				return errors.Join(err, fmt.Errorf("%d transmit bursts, want 11", n))
			}
			tap, err := b.begin(session.Wait)
			if err != nil {
				return err
			}
			held := 0
			for ; held < 100; held++ { // a polled queue has 16 times as many
				if err := b.sendFrame(datagram()); err != nil {
					return err
				}
				if _, err := tap.Next(b.l, b.me.Now()+int64(time.Second)); errors.Is(err, session.ErrNotReady) {
					break
				} else if err != nil {
					return err
				}
			}
			if (held == 100) != all || held < meta {
				t.Errorf("with rx_meta_buffers %d the receiver held %d bursts", meta, held)
			}
			return nil
		})
	}
	keyBench(t, []string{"{name: out, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}", "{name: out, kind: host, affinity: 0, num_bufs: 21, buf_size: 777}"},
		func(b *bench) error {
			x, err := b.tx.Alloc(b.l, 21)
			if err != nil {
				return err
			}
			if _, err := b.tx.Alloc(b.l, 1); !errors.Is(err, session.ErrNoPacket) {
				t.Errorf("a packet of a region of 21, all held: %v", err)
			}
			if err := x.SetLen(0, 0, 777); err != nil {
				t.Errorf("777 bytes: %v", err)
			}
			if err := x.SetLen(0, 0, 778); err == nil {
				t.Error("778 bytes in a buffer of 777")
			}
			return nil
		})
	keyBench(t, []string{"batch_size: 32", "batch_size: 9"}, func(b *bench) error { // the first match is the transmit queue's
		if _, err := b.tx.Alloc(b.l, 10); err == nil {
			t.Error("10 packets of a queue whose batch_size is 9")
		}
		_, err := b.tx.Alloc(b.l, 9)
		return err
	})
}

// spareBursts returns the number of bursts available from the transmit queue, and frees them.
func (b *bench) spareBursts() (n int, err error) {
	for ; err == nil; n++ {
		_, err = b.tx.Alloc(b.l, 1)
	}
	b.l.ReleaseAll()
	if errors.Is(err, session.ErrNoBurst) {
		err = nil
	}
	return n - 1, err
}

// TestKeyFlowIsolation checks that packets without a matching flow go to the first queue, or are dropped.
func TestKeyFlowIsolation(t *testing.T) {
	for isolation, want := range map[string]float64{"true": 0, "false": 1} {
		keyBench(t, []string{"      rx:\n", "      rx:\n        flow_isolation: " + isolation +
			"\n        flows:\n        - {name: other, id: 5, match: {udp_dst: 9}, action: {type: queue, id: 1}}\n"}, func(b *bench) error {
			if err := b.s.Start(b.me); err != nil {
				return err
			}
			if err := b.send(0, 1, 7148); err != nil {
				return err
			}
			if _, err := b.me.Wait(b.me.Now() + int64(time.Millisecond)); err != nil {
				return err
			}
			if got := b.figure("b.rx.0.in"); got != want {
				t.Errorf("flow_isolation %s: %v packets, want %v", isolation, got, want)
			}
			return nil
		})
	}
}

// TestKeyCore checks that the worker's thread is allowed on its core only.
func TestKeyCore(t *testing.T) {
	text, err := loop(false).yaml("")
	if err != nil {
		t.Fatal(err)
	}
	if runtime.NumCPU() == 1 {
		t.Skip("one core alone: a pinned thread looks like any other")
	}
	pinned := func() map[string]bool { // threads allowed on core 0 only; earlier sessions may have left some
		found := map[string]bool{}
		files, _ := filepath.Glob("/proc/self/task/*/status")
		for _, f := range files {
			status, _ := os.ReadFile(f)
			if strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
				found[f] = true
			}
		}
		return found
	}
	text = strings.Replace(text, "name: rx0\n          id: 0\n          cpu_core: -1", "name: rx0\n          id: 0\n          cpu_core: 0", 1)
	onTaskWith(t, text, func(b *bench) error {
		before := pinned()
		more := func() (n int) {
			for f := range pinned() {
				if !before[f] {
					n++
				}
			}
			return n
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		for at := b.deadline(); more() != 1 && b.me.Now() < at; {
			if _, err := b.me.Wait(b.me.Now() + int64(time.Millisecond)); err != nil {
				return err
			}
		}
		if n := more(); n != 1 {
			t.Errorf("%d threads more are on core 0 alone, want one", n)
		}
		return nil
	})
}

// onTaskWith opens a configuration and runs fn; its queues are those of the first interface that has any.
func onTaskWith(t *testing.T, text string, fn func(b *bench) error) {
	t.Helper()
	onTaskIn(t, func() error { return nil }, text, fn)
}

// onTaskIn calls move on the task's thread, then onTaskWith.
func onTaskIn(t *testing.T, move func() error, text string, fn func(b *bench) error) {
	t.Helper()
	onTask(t, func(me *task.Task) error {
		if err := move(); err != nil {
			return err
		}
		cfg, _, err := spec.ParseText("keys.yaml", text, spec.Options{})
		if err != nil {
			return err
		}
		s, err := session.Open(cfg, session.Env{Scheduler: me.Scheduler(), Owner: me})
		if err != nil {
			return err
		}
		defer s.Close()
		b := &bench{s: s, me: me, l: session.NewLeases()}
		for _, i := range s.Interfaces() {
			if b.tx == nil && len(i.TxQueues()) > 0 {
				b.tx = i.TxQueues()[0]
			}
			if b.rx == nil && len(i.RxQueues()) > 0 {
				b.rx = i.RxQueues()[0]
			}
		}
		err = fn(b)
		b.quiesce()
		b.l.ReleaseAll()
		if bad := s.Ledger().Balance(); bad != nil {
			t.Errorf("accounts: %v", bad)
		}
		return err
	})
}
