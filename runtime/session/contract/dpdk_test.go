package contract

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
	"github.com/daqiri/daqiri-run/tests/require"
)

// findDPDK locates the library that `make build` creates in the root folder.
func findDPDK() error {
	require.HugePages()
	if os.Getenv("DAQIRI_DPDK") != "" {
		return nil
	}
	lib, err := filepath.Abs("../../../libdaqiri_dpdk.so")
	if err == nil {
		_, err = os.Stat(lib)
	}
	if err != nil {
		return lacks{"dpdk", fmt.Errorf("%w: `make build` makes it where libdpdk is", err)}
	}
	return os.Setenv("DAQIRI_DPDK", lib)
}

var vdevs atomic.Uint32

// vdev returns the address of a new virtual device of this driver.
func vdev(driver, args string) string {
	return strings.TrimSuffix(fmt.Sprintf("vdev:%s%d,%s", driver, vdevs.Add(1), args), ",")
}

// dpdkRig is a session with one dpdk interface for both directions.
type dpdkRig struct {
	regions string // regions of the receive queue, out of "in", "head" and "both"
	tx      string // region of the transmit queue
	rxQueues,
	txQueues int
	extra string // appended to the rx section
}

func (r dpdkRig) yaml(address string) string {
	queues := func(kind, regions string, n int) string {
		var list strings.Builder
		for k := range n {
			fmt.Fprintf(&list, "\n        - {name: %s%d, id: %d, poll_mode: direct, batch_size: 32, memory_regions: [%s]}", kind, k, k, regions)
		}
		return list.String()
	}
	return fmt.Sprintf(`
daqiri:
  cfg:
    version: 1
    stream_type: raw
    master_core: 0
    memory_regions:
    - {name: both, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    - {name: in, kind: host, affinity: 0, num_bufs: 1024, buf_size: 2048}
    - {name: head, kind: host, affinity: 0, num_bufs: 1024, buf_size: 42}
    - {name: few, kind: host, affinity: 0, num_bufs: 20, buf_size: 2048}
    interfaces:
    - name: port
      address: %q
      rx:
        queues:%s
%s
      tx:
        queues:%s
`, address, queues("rx", r.regions, max(r.rxQueues, 1)), r.extra, queues("tx", r.tx, max(r.txQueues, 1)))
}

// open opens a session on the device of this address.
func (r dpdkRig) open(me *task.Task, address string) (*bench, error) {
	if err := findDPDK(); err != nil {
		return nil, err
	}
	cfg, _, err := spec.ParseText("dpdk.yaml", r.yaml(address), spec.Options{})
	if err != nil {
		return nil, err
	}
	s, err := session.Open(cfg, session.Env{Scheduler: me.Scheduler(), Owner: me})
	if err != nil {
		return nil, err
	}
	b := &bench{engine: engine{frames: true, direct: true}, s: s, me: me, l: session.NewLeases()}
	if b.tx, err = s.TxQueue("port", "tx0"); err == nil {
		b.rx, err = s.RxQueue("port", "rx0")
	}
	return b, err
}

// run runs a task with a session on a device of this driver, and closes the session.
func (r dpdkRig) run(t *testing.T, driver string, fn func(b *bench) error) {
	t.Helper()
	t.Parallel()
	onTask(t, func(me *task.Task) error {
		b, err := r.open(me, vdev(driver, ""))
		if err != nil {
			return err
		}
		defer b.end(t)
		return fn(b)
	})
}

// end closes the session and performs the checks common to all tests.
func (b *bench) end(t *testing.T) {
	t.Helper()
	b.quiesce()
	b.l.ReleaseAll()
	if err := b.s.Finish(); err != nil {
		t.Error(err)
	}
	if bad := b.s.Ledger().Balance(); bad != nil {
		t.Errorf("accounts: %v", bad)
	}
	if n := b.s.Close(); n != 0 {
		t.Errorf("%d buffers are not in their pools", n)
	}
}

// report returns the session's report as one text.
func (b *bench) report() string { return strings.Join(b.s.Report(), "\n") }

// TestDPDKRing sends over a device in loopback: by reference, by a copy to another region, and split over two regions.
func TestDPDKRing(t *testing.T) {
	for _, c := range []struct {
		name   string
		rig    dpdkRig
		copied float64 // out of 100 packets
		says   string
	}{
		{"by reference", dpdkRig{regions: "both", tx: "both"}, 0, "stay where the device put them"},
		{"other region", dpdkRig{regions: "in", tx: "both"}, 100, "net_ring hands over the sender's buffers"},
		{"split", dpdkRig{regions: "head, in", tx: "both"}, 100, "copy: packets are split"},
		{"two queues", dpdkRig{regions: "in", tx: "both", rxQueues: 2}, 100, "copy: several queues"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rig.run(t, "net_ring", func(b *bench) error {
				tap, err := b.begin(session.Wait)
				if err != nil {
					return err
				}
				for r := range uint64(10) {
					if err := b.send(r*10, 10, 7148); err != nil {
						return err
					}
					seq := r * 10
					err := b.receive(tap, 10, func(x *session.Burst, i int) error {
						var whole []byte
						for seg := range x.Segments() {
							p, err := x.Packet(seg, i)
							if err != nil {
								return err
							}
							whole = append(whole, p...)
						}
						got, err := b.seq(whole)
						if err == nil && (got != seq || len(whole) != b.length(seq)) {
							err = fmt.Errorf("packet %d of %d bytes where %d of %d was due", got, len(whole), seq, b.length(seq))
						}
						seq++
						return err
					})
					if err != nil {
						return err
					}
				}
				if got, _ := b.s.Ledger().Lookup("port.rx.copied"); got != c.copied {
					t.Errorf("%v packets were copied, want %v", got, c.copied)
				}
				if !strings.Contains(b.report(), c.says) {
					t.Errorf("the report lacks %q:\n%s", c.says, b.report())
				}
				return nil
			})
		})
	}
}

// TestDPDKSegments sends packets of two buffers each from the receiver's region. A burst cannot reference such packets, so they are copied to one
// buffer or to two.
func TestDPDKSegments(t *testing.T) {
	for name, rig := range map[string]dpdkRig{
		"into one buffer":          {regions: "both", tx: "both, both"},
		"into another's one":       {regions: "in", tx: "both, both"},
		"into a head and the rest": {regions: "head, in", tx: "both, both"},
	} {
		t.Run(name, func(t *testing.T) {
			rig.run(t, "net_ring", func(b *bench) error {
				tap, err := b.begin(session.Wait)
				if err != nil {
					return err
				}
				const n = 20
				x, err := b.tx.Alloc(b.l, n)
				if err != nil {
					return err
				}
				for i := range n {
					whole := make([]byte, b.length(uint64(i)))
					b.put(whole, uint64(i), 7148)
					for seg, part := range [][]byte{whole[:50], whole[50:]} {
						if err := x.SetLen(seg, i, len(part)); err != nil {
							return err
						}
						p, err := x.Packet(seg, i)
						if err != nil {
							return err
						}
						copy(p, part)
					}
				}
				if err := b.tx.Send(x); err != nil {
					return err
				}
				next := uint64(0)
				return b.receive(tap, n, func(x *session.Burst, i int) error {
					var whole []byte
					for seg := range x.Segments() {
						p, err := x.Packet(seg, i)
						if err != nil {
							return err
						}
						whole = append(whole, p...)
					}
					if len(whole) != b.length(next) {
						return fmt.Errorf("packet %d has %d bytes, want %d", next, len(whole), b.length(next))
					}
					seq, err := b.seq(whole)
					if err == nil && seq != next {
						err = fmt.Errorf("packet %d where %d was due", seq, next)
					}
					next++
					return err
				})
			})
		})
	}
}

// unseen lists operations on a burst of packets 0 to 9 whose columns were never read, and the packets that return as a result.
var unseen = []struct {
	name string
	do   func(b *bench, x *session.Burst) error
	back []uint64
}{
	{"sent on", func(b *bench, x *session.Burst) error { return b.tx.Send(x) }, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{"freed", func(_ *bench, x *session.Burst) error { return x.Free() }, nil},
	{"kept", func(b *bench, x *session.Burst) error {
		if err := x.Keep(); err != nil {
			return err
		}
		return b.tx.Send(x)
	}, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{"cut short", func(b *bench, x *session.Burst) error {
		if err := x.Truncate(3); err != nil {
			return err
		}
		return b.tx.Send(x)
	}, []uint64{0, 1, 2}},
	{"with a hole", func(b *bench, x *session.Burst) error {
		if err := x.FreePacket(1); err != nil {
			return err
		}
		return b.tx.Send(x)
	}, []uint64{0, 2, 3, 4, 5, 6, 7, 8, 9}},
	{"a selection", func(b *bench, x *session.Burst) error {
		y, err := x.Pick([]uint32{7, 2})
		if err != nil {
			return err
		}
		return errors.Join(b.tx.Send(y), x.Free())
	}, []uint64{7, 2}},
	{"half of it later", func(b *bench, x *session.Burst) error {
		times, err := x.TxTimes()
		if err != nil {
			return err
		}
		for i := 5; i < len(times); i++ {
			times[i] = b.s.Now() + 2e6
		}
		return b.tx.Send(x)
	}, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
	{"half of it later, at a pace", func(b *bench, x *session.Burst) error {
		times, err := x.TxTimes()
		if err != nil {
			return err
		}
		for i := 5; i < len(times); i++ {
			times[i] = b.s.Now() + 2e6
		}
		if err := b.tx.Send(x); err != nil {
			return err
		}
		return b.tx.Pace(0, 1e5)
	}, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
}

// TestDPDKUnseen performs operations on bursts whose columns are not filled yet, and checks that packets are intact and that no buffer is lost.
func TestDPDKUnseen(t *testing.T) {
	for _, c := range unseen {
		t.Run(c.name, func(t *testing.T) {
			dpdkRig{regions: "both", tx: "both"}.run(t, "net_ring", func(b *bench) error {
				tap, err := b.begin(session.Drop)
				if err != nil {
					return err
				}
				before := b.s.Now()
				if err := b.send(0, 10, 7148); err != nil {
					return err
				}
				x, err := tap.Next(b.l, b.deadline())
				if err != nil {
					return err
				}
				if x.N() != 10 {
					return fmt.Errorf("a burst of %d packets, want 10", x.N())
				}
				if err := c.do(b, x); err != nil {
					return err
				}
				back := c.back
				return b.receive(tap, len(back), func(x *session.Burst, i int) error {
					if at := x.RxTimes()[i]; at < before || at > b.s.Now() {
						return fmt.Errorf("packet %d came at %d, and was sent after %d", i, at, before)
					}
					p, err := x.Packet(0, i)
					if err != nil {
						return err
					}
					seq, err := b.seq(p)
					if err == nil && (seq != back[0] || len(p) != b.length(seq)) {
						err = fmt.Errorf("packet %d of %d bytes where %d of %d was due", seq, len(p), back[0], b.length(back[0]))
					}
					back = back[1:]
					return err
				})
			})
		})
	}
}

// TestDPDKFewBuffers receives from a device that delivers either all requested frames or none, into a region with fewer buffers than a batch.
func TestDPDKFewBuffers(t *testing.T) {
	dpdkRig{regions: "few", tx: "both"}.run(t, "net_null", func(b *bench) error {
		tap, err := b.begin(session.Drop)
		if err != nil {
			return err
		}
		for range 10 {
			x, err := tap.Next(b.l, b.deadline())
			if err != nil {
				return err
			}
			if err := x.Free(); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestDPDKRefuses checks that the errors of configurations that cannot be opened name the interface and suggest a fix.
func TestDPDKRefuses(t *testing.T) {
	one, noInterface := dpdkRig{regions: "both", tx: "both"}, "No such device"
	if os.Geteuid() != 0 { // the socket is opened before the interface is looked up
		noInterface = "may need root"
	}
	for _, c := range []struct {
		name, address string
		rig           dpdkRig
		want          []string
	}{
		{"no such driver", "vdev:net_bogus0", one, []string{"interface port", "net_bogus0", "hint: vdev:"}},
		{"argument", "vdev:net_null900,frob=1", one, []string{"interface port", "net_null900"}},
		{"no such interface", "vdev:net_af_packet900,iface=nosuch", one, []string{"net_af_packet900", noInterface}},
		{"no such PCI device", "0000:00:1f.6", one, []string{"no PCI device 0000:00:1f.6"}},
		{"no name", "vdev:", one, []string{"device is missing"}},
		{"queues", "vdev:net_null901", dpdkRig{regions: "both", tx: "both", txQueues: 32}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			onTask(t, func(me *task.Task) error {
				b, err := c.rig.open(me, c.address)
				var l lacks
				switch {
				case errors.As(err, &l):
					return err
				case err == nil:
					b.end(t)
					if c.want != nil {
						t.Error("it opened")
					}
				}
				for _, want := range c.want {
					if err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%q lacks %q", err, want)
					}
				}
				return nil
			})
		})
	}
}
