package contract

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/kernel"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Contract tests of queues and memory regions that come and go, beside the traffic of the queues of the configuration.

const (
	laterLives  = 3    // times that each queue comes and goes
	laterPort   = 3000 // UDP port of the flow to the later receive queue
	laterEach   = 40   // packets of a life on each queue
	laterQueue  = 2    // id of the later receive queue
	laterRegion = "late"
)

// TestContractResources adds and deletes a region, a receive queue with a flow and a transmit queue, again and again. No packet may be lost or go to
// another queue. What an engine does not support is refused with a reason, and changes nothing.
func TestContractResources(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		var kept *session.Tap
		var err error
		if b.frames {
			var taps []*session.Tap
			if _, taps, err = b.tapAll(); err == nil {
				kept = taps[0]
			}
		} else {
			kept, err = b.begin(session.Wait)
		}
		for life := 0; life < laterLives && err == nil; life++ {
			var memory *session.Binding // every second region lies in memory of the application
			if life%2 == 1 {
				array, err := kernel.NewArray("host", "uint8", []int{512 * 4096}, native.HostGPU)
				if err != nil {
					return err
				}
				memory = &session.Binding{Array: array, Bytes: -1}
			}
			err = b.live(t, kept, memory)
		}
		return err
	})
}

// live adds a region and queues in it, uses them, and deletes them.
func (b *bench) live(t *testing.T, kept *session.Tap, memory *session.Binding) error {
	region, err := b.laterRegion(t, memory)
	if err != nil {
		return err
	}
	if b.rdma != "" {
		return b.noQueues(t, region)
	}
	if err := errors.Join(b.laterRx(t, kept, region), b.laterTx(kept, region)); err != nil {
		return err
	}
	if region != laterRegion {
		return nil
	}
	return b.gone(b.s.DeleteRegion(laterRegion))
}

// laterRegion adds a region and returns its name, or that of one of the configuration where the engine can't.
func (b *bench) laterRegion(t *testing.T, memory *session.Binding) (string, error) {
	_, err := b.s.AddRegion(&spec.MemoryRegion{Name: laterRegion, Kind: "host", NumBufs: 512, BufSize: 2048, Owned: memory == nil}, memory)
	reason := ""
	switch {
	case strings.HasPrefix(b.driver, "AF_XDP"):
		reason = "AF_XDP has registered"
	case b.rdma != "":
		reason = "engine rdma registers"
	default:
		return laterRegion, err
	}
	if !errors.Is(err, session.ErrNotSupported) || !strings.Contains(err.Error(), reason) {
		t.Errorf("a region on %s: %v", b.name, err)
	}
	if _, err := b.s.DeleteRegion("spare"); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("an unknown region: %v", err)
	}
	return "in", nil
}

// conf returns the configuration of a later queue.
func (b *bench) laterConf(name string, id int, region string) map[string]any {
	conf := map[string]any{"name": name, "id": float64(id), "batch_size": float64(32), "memory_regions": []any{region}}
	if b.direct {
		conf["poll_mode"] = "direct"
	} else {
		conf["cpu_core"] = float64(-1)
	}
	return conf
}

// gone waits for the end of a deletion.
func (b *bench) gone(op *session.Op, err error) error {
	if err != nil {
		return err
	}
	for end := b.deadline(); !op.State().Done; {
		if now := b.me.Now(); now > end {
			return fmt.Errorf("%v does not end", op)
		} else if _, err := b.me.Wait(now + 1e6); err != nil {
			return err
		}
	}
	return op.Error()
}

// numbered receives n packets and checks that their numbers follow first, without a gap, on the queue with this id.
func (b *bench) numbered(tap *session.Tap, first uint64, n, queue int) error {
	next := first
	return b.receive(tap, n, func(x *session.Burst, i int) error {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		seq, err := b.seq(p)
		if err == nil && (seq != next || x.Queue().ID() != queue) {
			err = fmt.Errorf("packet %d on queue %d, want %d on %d", seq, x.Queue().ID(), next, queue)
		}
		next++
		return err
	})
}

// laterRx adds a receive queue with a flow, receives on it and on another one, and deletes it.
func (b *bench) laterRx(t *testing.T, kept *session.Tap, region string) error {
	port, err := b.s.Interface("b")
	if err != nil {
		return err
	}
	conf, err := spec.ParseRxQueue(b.laterConf("later", laterQueue, region))
	if err != nil {
		return err
	}
	q, err := port.AddQueue(conf, true)
	if !b.frames {
		if !errors.Is(err, session.ErrNotSupported) || len(port.RxQueues()) != 1 {
			t.Errorf("a receive queue of sockets: %v, %d queues", err, len(port.RxQueues()))
		}
		if _, err := b.rx.Delete(); !errors.Is(err, session.ErrNotSupported) {
			t.Errorf("deletion of a receive queue of sockets: %v", err)
		}
		return nil
	}
	if err == nil && q.Direct() {
		err = q.Adopt(b.me)
	}
	if err != nil {
		return err
	}
	tap, err := q.Tap(b.me, nil, session.TapOptions{Policy: session.Wait})
	if err != nil {
		return err
	}
	match := spec.Match{UDPDst: &spec.PortRange{First: laterPort, Last: laterPort}}
	if _, err := port.AddFlows("later", []flow.Flow{{Name: "later", Match: match, Queues: []int{laterQueue}}}); err != nil {
		return err
	}
	for seq := uint64(0); seq < laterEach; seq += laterEach / 4 {
		err := errors.Join(b.send(seq, laterEach/4, laterPort), b.send(seq, laterEach/4, 7148))
		if err == nil {
			err = errors.Join(b.numbered(tap, seq, laterEach/4, laterQueue), b.numbered(kept, seq, laterEach/4, 0))
		}
		if err != nil {
			return err
		}
	}
	if _, err := q.Delete(); !errors.Is(err, session.ErrInUse) {
		t.Errorf("deletion of a queue that a flow names: %v", err)
	}
	if _, err := port.DeleteFlows("later"); err != nil {
		return err
	}
	return b.gone(q.Delete())
}

// noQueues checks that an engine refuses to add and delete queues.
func (b *bench) noQueues(t *testing.T, region string) error {
	port, err := b.s.Interface("b")
	if err != nil {
		return err
	}
	for rx, parse := range map[bool]func(any) (*spec.Queue, error){true: spec.ParseRxQueue, false: spec.ParseTxQueue} {
		conf, err := parse(b.laterConf("later", laterQueue, region))
		if err != nil {
			return err
		}
		if _, err := port.AddQueue(conf, rx); !errors.Is(err, session.ErrNotSupported) {
			t.Errorf("a queue on %s: %v", b.name, err)
		}
	}
	if _, err := b.rx.Delete(); !errors.Is(err, session.ErrNotSupported) {
		t.Errorf("deletion of a queue on %s: %v", b.name, err)
	}
	return nil
}

// laterTx adds a transmit queue, sends on it beside another one, and deletes it.
func (b *bench) laterTx(kept *session.Tap, region string) error {
	port, err := b.s.Interface("a")
	if err != nil {
		return err
	}
	conf, err := spec.ParseTxQueue(b.laterConf("later", laterQueue, region))
	if err != nil {
		return err
	}
	q, err := port.AddQueue(conf, false)
	if err == nil && q.Direct() {
		err = q.Adopt(b.me)
	}
	if err != nil {
		return err
	}
	first := b.tx
	defer func() { b.tx = first }()
	for seq := uint64(0); seq < laterEach; seq += laterEach / 4 {
		b.tx = q
		if seq/(laterEach/4)%2 == 1 {
			b.tx = first
		}
		if err := errors.Join(b.send(seq, laterEach/4, 7148), b.numbered(kept, seq, laterEach/4, 0)); err != nil {
			return err
		}
	}
	return b.gone(q.Delete())
}
