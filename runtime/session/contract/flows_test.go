package contract

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/session/flow"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Contract tests of flows of frame engines: queues, hits, tunnels and tags.

func TestContractFlows(t *testing.T) {
	static := `        flows:
        - {name: first, id: 11, match: {udp_dst: 1000}, action: {type: queue, id: 0}}
        - {name: second, id: 22, match: {udp_dst: 1001}, action: {type: queue, id: 1}}
`
	for _, e := range engines() {
		if !e.frames {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			onTask(t, func(me *task.Task) error {
				b, err := e.open(me, static)
				if err != nil {
					return err
				}
				defer b.s.Close()
				return b.changeFlows(t)
			})
		})
	}
}

// expectFlow sends packets to a port and expects them on a queue with a flow's id.
func (b *bench) expectFlow(tap *session.Tap, udp uint16, queue int, id uint32) error {
	if err := b.send(1, 2, udp); err != nil {
		return err
	}
	return b.receive(tap, 2, func(x *session.Burst, i int) error {
		if x.FlowIDs()[i] != id || x.Queue().ID() != queue {
			return fmt.Errorf("port %d: flow %d on queue %d, want %d on %d", udp, x.FlowIDs()[i], x.Queue().ID(), id, queue)
		}
		return nil
	})
}

// tapAll starts the session with a tap on each receive queue of interface b.
func (b *bench) tapAll() (*session.Interface, []*session.Tap, error) {
	port, err := b.s.Interface("b")
	if err != nil {
		return nil, nil, err
	}
	var taps []*session.Tap
	for _, q := range port.RxQueues() {
		tap, err := q.Tap(b.me, nil, session.TapOptions{Policy: session.Wait})
		if err != nil {
			return nil, nil, err
		}
		taps = append(taps, tap)
	}
	return port, taps, b.s.Start(b.me)
}

// expectHits compares the hits of all flows with the number of packets sent by expectFlow.
func (b *bench) expectHits(t *testing.T, port *session.Interface, want map[uint32]uint64) {
	for _, f := range port.Flows() {
		n := want[f.ID]
		if h := f.Hits; h == nil || *h != (flow.Hits{Packets: n, Bytes: n / 2 * uint64(b.length(1)+b.length(2))}) {
			t.Errorf("flow %s: hits %+v, want %d packets", f.Name, h, n)
		}
		delete(want, f.ID)
	}
	if len(want) > 0 {
		t.Errorf("no flows %v", want)
	}
}

// ledgerFlow returns a flow's counts in the ledger, on any queue.
func (b *bench) ledgerFlow(port *session.Interface, id uint32) stats.Flow {
	for _, l := range b.s.Ledger().Lines {
		for _, f := range l.Flows {
			if l.Name == port.Name() && f.ID == id {
				return f
			}
		}
	}
	return stats.Flow{}
}

// changeFlows adds, replaces and deletes flows while packets pass, and checks the ids and queues of the packets.
func (b *bench) changeFlows(t *testing.T) error {
	port, taps, err := b.tapAll()
	if err != nil {
		return err
	}
	expect := func(udp uint16, queue int, id uint32) error { return b.expectFlow(taps[queue], udp, queue, id) }
	udp := func(p uint16) spec.Match { return spec.Match{UDPDst: &spec.PortRange{First: p, Last: p}} }
	if err := errors.Join(expect(1000, 0, 11), expect(1001, 1, 22)); err != nil {
		return err
	}
	ids, err := port.AddFlows("dyn", []flow.Flow{{Name: "x", Match: udp(2000), Queues: []int{1}}, {Name: "y", Match: udp(2001), Queues: []int{0}}})
	if err != nil {
		return err
	}
	if err := errors.Join(expect(2000, 1, ids[0]), expect(2001, 0, ids[1]), expect(1000, 0, 11)); err != nil {
		return err
	}
	if _, err := port.AddFlows("dyn", []flow.Flow{{Name: "z", Match: udp(2002), Queues: []int{0}}, {Name: "w", Match: udp(2003), Queues: []int{5}}}); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a queue that there is not: %v", err)
	}
	if n := len(port.Flows()); n != 4 {
		t.Errorf("a refused group left %d flows, want 4", n)
	}
	b.expectHits(t, port, map[uint32]uint64{11: 4, 22: 2, ids[0]: 2, ids[1]: 2})
	next, err := port.ReplaceFlows("dyn", []flow.Flow{{Name: "x", Match: udp(2000), Queues: []int{0}}})
	if err != nil {
		return err
	}
	if err := expect(2000, 0, next[0]); err != nil {
		return err
	}
	if n, err := port.DeleteFlows("dyn"); n != 1 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	for id, name := range map[uint32]string{ids[0]: "x", ids[1]: "y", next[0]: "x"} {
		if f := b.ledgerFlow(port, id); f.Name != name || f.Packets != 2 {
			t.Errorf("the ledger has %+v of deleted flow %d, want %s with 2 packets", f, id, name)
		}
	}
	if _, err := port.DeleteFlows("dyn"); !errors.Is(err, session.ErrInvalid) || !strings.Contains(err.Error(), "there are static") {
		t.Errorf("a group that has gone: %v", err)
	}
	if err := port.DeleteFlow(22); err != nil {
		return err
	}
	return expect(1000, 0, 11)
}

const outer = `outer_eth_src: "02:00:00:00:00:01", outer_eth_dst: "02:00:00:00:00:02", outer_ipv4_src: 192.0.2.1, outer_ipv4_dst: 192.0.2.2`

const putOn = `        flows:
        - {name: vxlan, id: 1, match: {udp_dst: 1000}, actions: [{type: tunnel_encap, tunnel: {type: vxlan, vni: 5, ` + outer + `}}]}
        - {name: tag, id: 2, match: {udp_dst: 1001}, actions: [{type: vlan_push, vlan_id: 7}]}
`

const takeOff = `        flows:
        - {name: vxlan, id: 11, match: {udp_dst: 1000}, actions: [{type: tunnel_decap, tunnel: {type: vxlan, vni: 5, ` + outer + `}}, {type: queue, id: 1}]}
        - {name: tag, id: 12, match: {vlan_id: 7}, actions: [{type: vlan_pop}, {type: queue, id: 0}]}
`

// TestContractTransforms encapsulates frames on one side and decapsulates them on the other, by flows of the configuration and by dynamic ones.
func TestContractTransforms(t *testing.T) {
	for _, e := range engines() {
		if !e.frames {
			continue
		}
		e.tx = putOn
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			onTask(t, func(me *task.Task) error {
				b, err := e.open(me, takeOff)
				if err != nil {
					return err
				}
				defer b.s.Close()
				return b.transform(t)
			})
		})
	}
}

// expectWhole sends packets to a port and expects them unchanged, on a queue with a flow's id.
func (b *bench) expectWhole(tap *session.Tap, udp uint16, queue int, id uint32) error {
	if err := b.send(100, 5, udp); err != nil {
		return err
	}
	want := uint64(100)
	return b.receive(tap, 5, func(x *session.Burst, i int) error {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		seq, err := b.seq(p)
		if err != nil || seq != want || len(p) != b.length(seq) || x.FlowIDs()[i] != id || x.Queue().ID() != queue {
			return fmt.Errorf("port %d: packet %d of %d bytes, flow %d on queue %d, %v; want packet %d, flow %d on %d",
				udp, seq, len(p), x.FlowIDs()[i], x.Queue().ID(), err, want, id, queue)
		}
		want++
		return nil
	})
}

func (b *bench) transform(t *testing.T) error {
	port, taps, err := b.tapAll()
	if err != nil {
		return err
	}
	if err := errors.Join(b.expectWhole(taps[1], 1000, 1, 11), b.expectWhole(taps[0], 1001, 0, 12)); err != nil {
		return err
	}
	sender, err := b.s.Interface("a")
	if err != nil {
		return err
	}
	tunnel := map[string]any{"type": "nvgre", "tni": 6, "outer_eth_src": "02:00:00:00:00:01", "outer_eth_dst": "02:00:00:00:00:02",
		"outer_ipv4_src": "192.0.2.1", "outer_ipv4_dst": "192.0.2.2"}
	off, err := spec.ParseFlows([]any{map[string]any{"name": "nvgre", "match": map[string]any{"udp_dst": 1002},
		"actions": []any{map[string]any{"type": "tunnel_decap", "tunnel": tunnel}, map[string]any{"type": "queue", "id": 0}}}})
	if err != nil {
		return err
	}
	on, err := spec.ParseTxFlows([]any{map[string]any{"match": map[string]any{"udp_dst": 1002},
		"action": map[string]any{"type": "tunnel_encap", "tunnel": tunnel}}})
	if err != nil {
		return err
	}
	rule := flow.Flow{Name: "nvgre", Match: off[0].Match, Queues: off[0].QueueIDs(), Transforms: off[0].Transforms()}
	for range 3 {
		ids, err := port.AddFlows("dyn", []flow.Flow{rule})
		if err != nil {
			return err
		}
		if _, err := sender.AddTxFlows("dyn", []flow.Flow{{Match: on[0].Match, Transforms: on[0].Actions}}); err != nil {
			return err
		}
		if _, err := sender.AddTxFlows("dyn", []flow.Flow{{Match: on[0].Match, Transforms: off[0].Transforms()}, {Match: on[0].Match}}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("a group with a transmit flow without actions: %v", err)
		}
		if n := len(sender.TxFlows()); n != 3 {
			t.Errorf("%d transmit flows, want 3", n)
		}
		if err := b.expectWhole(taps[0], 1002, 0, ids[0]); err != nil {
			return err
		}
		_, err = port.DeleteFlows("dyn")
		if _, err2 := sender.DeleteTxFlows("dyn"); err != nil || err2 != nil {
			return errors.Join(err, err2)
		}
	}
	b.quiesce()
	for name, want := range map[string]float64{"a.tx.transformed": 25, "b.rx.transformed": 25, "b.rx.dropped": 0} {
		if got := b.figure(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	return nil
}
