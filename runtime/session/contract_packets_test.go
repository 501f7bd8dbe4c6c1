package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/stats"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// The part of the contract suite about what is in packets: flows, filters, columns, files.

// seqField is where put writes a packet's number.
func (b *bench) seqField() Field { return Field{Base: BasePayload, BitWidth: 64} }

func TestContractColumnsAndSelections(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(Wait)
		if err != nil {
			return err
		}
		if err := b.send(100, 8, 7148); err != nil {
			return err
		}
		odd, err := CompileSelector("seq % 2 == 1 and len > 64", only{"seq", b.seqField()})
		if err != nil {
			return err
		}
		var values, picked []uint64
		for len(values) < 8 {
			x, err := tap.Next(b.l, b.deadline())
			if err != nil {
				return err
			}
			out, has := make([]uint64, x.N()), make([]uint8, x.N())
			if n, err := x.Column(b.seqField(), out, has); err != nil || n != x.N() || slices.Contains(has, 0) {
				return fmt.Errorf("column: %d of %d, %w", n, x.N(), err)
			}
			values = append(values, out...)
			sel, err := x.Select(odd)
			if err != nil {
				return err
			}
			if err := x.Free(); err != nil { // the selection holds what it needs
				return err
			}
			for i := range sel.N() {
				p, err := sel.Packet(0, i)
				if err != nil {
					return err
				}
				seq, err := b.seq(p)
				if err != nil {
					return err
				}
				picked = append(picked, seq)
			}
			if err := sel.Free(); err != nil {
				return err
			}
		}
		if !slices.Equal(values, []uint64{100, 101, 102, 103, 104, 105, 106, 107}) {
			t.Errorf("column: %v", values)
		}
		if !slices.Equal(picked, []uint64{101, 103, 105, 107}) {
			t.Errorf("selected: %v", picked)
		}
		return nil
	})
}

// only is a format of one field.
type only struct {
	name string
	f    Field
}

func (o only) Field(name string) (Field, bool) { return o.f, name == o.name }
func (o only) Names() []string                 { return []string{o.name} }

func TestContractTeeIsReadOnly(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		one, err := b.rx.Tap(b.me, "one", TapOptions{Policy: Wait})
		if err != nil {
			return err
		}
		two, err := b.rx.Tap(b.me, "two", TapOptions{Policy: Wait})
		if err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		if err := b.send(0, 4, 7148); err != nil {
			return err
		}
		for _, tap := range []*Tap{one, two} {
			err := b.receive(tap, 4, func(x *Burst, i int) error {
				if _, err := x.Set(b.seqField(), 1, 0, CsumKeep); x.Writable() == nil || !errors.Is(err, ErrInvalid) {
					return fmt.Errorf("shared %v, set: %w", x.Writable() != nil, err)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		two.Close()
		if err := b.send(4, 1, 7148); err != nil {
			return err
		}
		return b.receive(one, 1, func(x *Burst, i int) error {
			if n, err := x.Set(b.seqField(), 9, 0, CsumKeep); err != nil || n != 1 || x.Writable() != nil {
				return fmt.Errorf("alone: writable %w, set %d, %w", x.Writable(), n, err)
			}
			return nil
		})
	})
}

// sieve is a case of the filter test.
type sieve struct {
	name   string
	cond   Condition
	frames bool // for queues that hold frames only
	pass   func(b *bench, seq uint64) bool
}

func TestContractFilters(t *testing.T) {
	all := func(*bench, uint64) bool { return true }
	none := func(*bench, uint64) bool { return false }
	for _, c := range []sieve{
		{"where", Condition{Where: "len >= 400"}, false, func(b *bench, seq uint64) bool { return b.length(seq) >= 400 }},
		{"field of a format", Condition{Where: "seq < 3", Fields: only{"seq", Field{Base: BasePayload, BitWidth: 64}}}, false,
			func(b *bench, seq uint64) bool { return seq < 3 }},
		{"match", Condition{Match: &spec.Match{UDPDst: &spec.PortRange{First: 7000, Last: 7200}}}, true, all},
		{"match nothing", Condition{Match: &spec.Match{UDPDst: &spec.PortRange{First: 1, Last: 2}}}, true, none},
		{"pcap", Condition{Pcap: "udp dst port 7148 and src host 10.0.0.1"}, true, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			withBench(t, "", func(t *testing.T, b *bench) error { return c.run(t, b) })
		})
	}
}

func (c sieve) run(t *testing.T, b *bench) error {
	f, err := b.s.Filter("sieve", c.cond)
	if errors.Is(err, ErrNotSupported) && c.cond.Pcap != "" {
		return lacks{"libpcap", err}
	}
	if err != nil {
		return err
	}
	count, err := b.s.Count("passed")
	if err != nil {
		return err
	}
	_, err = b.s.Pipe([]*Queue{b.rx}, f, count)
	if c.frames && !b.frames {
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "works on frames") {
			t.Errorf("a filter of frames on payloads: %v", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	tap, err := b.begin(Wait)
	if err != nil {
		return err
	}
	const n = 10
	if err := b.send(0, n, 7148); err != nil {
		return err
	}
	want := 0.0
	for seq := range uint64(n) {
		if c.pass(b, seq) {
			want++
		}
	}
	if err := b.receive(tap, n, func(*Burst, int) error { return nil }); err != nil {
		return err
	}
	b.quiesce()
	l := b.s.Ledger()
	passed, _ := l.Lookup("passed.in")
	refused, _ := l.Lookup("sieve.dropped_by.filtered")
	if passed != want || refused != n-want {
		t.Errorf("passed %v, refused %v; want %v of %d", passed, refused, want, n)
	}
	return nil
}

func TestContractWritesEveryPacket(t *testing.T) {
	for _, kind := range []string{KindPcap, KindRaw} {
		t.Run(kind, func(t *testing.T) {
			withBench(t, "", func(t *testing.T, b *bench) error {
				dir := t.TempDir()
				add := b.s.WritePcap
				if kind == KindRaw {
					add = b.s.WriteRaw
				}
				disk, err := add("disk", WriterOptions{NoManifest: true, Dirs: []string{dir}, Prefix: "cap", Policy: Wait})
				if err != nil {
					return err
				}
				if _, err := b.s.Pipe([]*Queue{b.rx}, disk); err != nil {
					return err
				}
				tap, err := b.begin(Wait)
				if err != nil {
					return err
				}
				if err := b.send(0, 12, 7148); err != nil {
					return err
				}
				if err := b.receive(tap, 12, func(*Burst, int) error { return nil }); err != nil {
					return err
				}
				b.quiesce()
				if err := b.s.Finish(); err != nil {
					return err
				}
				if got, _ := b.s.Ledger().Lookup("disk.written"); got != 12 {
					t.Errorf("written %v of 12", got)
				}
				if kind == KindRaw {
					files, err := filepath.Glob(filepath.Join(dir, "cap*"))
					if len(files) != 12 {
						t.Errorf("%d files of 12, %v", len(files), err)
					}
					return nil
				}
				return b.checkPcap(disk.Paths()[0], 12)
			})
		})
	}
}

// checkPcap reads a nanosecond pcap with a reader of its own.
func (b *bench) checkPcap(path string, want uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(data) < 24 || binary.LittleEndian.Uint32(data) != 0xa1b23c4d {
		return fmt.Errorf("%s: not a nanosecond pcap: % x", path, data[:min(24, len(data))])
	}
	data = data[24:]
	for seq := range want {
		if len(data) < 16 {
			return fmt.Errorf("%s: ends after %d of %d packets", path, seq, want)
		}
		n := int(binary.LittleEndian.Uint32(data[8:]))
		p := data[16 : 16+n]
		data = data[16+n:]
		got, err := b.seq(p[len(p)-b.length(seq):])
		if err == nil && got != seq {
			err = fmt.Errorf("number %d", got)
		}
		if err != nil {
			return fmt.Errorf("%s: packet %d: %w", path, seq, err)
		}
	}
	if len(data) != 0 {
		return fmt.Errorf("%s: %d bytes too many", path, len(data))
	}
	return nil
}

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

// expectFlow sends packets to a port and wants them on a queue with a flow's id.
func (b *bench) expectFlow(tap *Tap, udp uint16, queue int, id uint32) error {
	if err := b.send(1, 2, udp); err != nil {
		return err
	}
	return b.receive(tap, 2, func(x *Burst, i int) error {
		if x.FlowIDs()[i] != id || x.Queue().ID() != queue {
			return fmt.Errorf("port %d: flow %d on queue %d, want %d on %d", udp, x.FlowIDs()[i], x.Queue().ID(), id, queue)
		}
		return nil
	})
}

// tapAll starts the session with a tap on each receive queue of interface b.
func (b *bench) tapAll() (*Interface, []*Tap, error) {
	port, err := b.s.Interface("b")
	if err != nil {
		return nil, nil, err
	}
	var taps []*Tap
	for _, q := range port.RxQueues() {
		tap, err := q.Tap(b.me, nil, TapOptions{Policy: Wait})
		if err != nil {
			return nil, nil, err
		}
		taps = append(taps, tap)
	}
	return port, taps, b.s.Start(b.me)
}

// expectHits wants so many packets, of those that expectFlow sends, in the list of flows; no others are there.
func (b *bench) expectHits(t *testing.T, port *Interface, want map[uint32]uint64) {
	for _, f := range port.Flows() {
		n := want[f.ID]
		if h := f.Hits; h == nil || *h != (FlowHits{n, n / 2 * uint64(b.length(1)+b.length(2))}) {
			t.Errorf("flow %s: hits %+v, want %d packets", f.Name, h, n)
		}
		delete(want, f.ID)
	}
	if len(want) > 0 {
		t.Errorf("no flows %v", want)
	}
}

// ledgerFlow is what the ledger says of a flow, on whichever queue.
func (b *bench) ledgerFlow(port *Interface, id uint32) stats.Flow {
	for _, l := range b.s.Ledger().Lines {
		for _, f := range l.Flows {
			if l.Name == port.Name() && f.ID == id {
				return f
			}
		}
	}
	return stats.Flow{}
}

// changeFlows adds, replaces and deletes flows while packets pass, and looks at the ids and
// queues that packets come with.
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
	ids, err := port.AddFlows("dyn", []Flow{{Name: "x", Match: udp(2000), Queues: []int{1}}, {Name: "y", Match: udp(2001), Queues: []int{0}}})
	if err != nil {
		return err
	}
	if err := errors.Join(expect(2000, 1, ids[0]), expect(2001, 0, ids[1]), expect(1000, 0, 11)); err != nil {
		return err
	}
	if _, err := port.AddFlows("dyn", []Flow{{Name: "z", Match: udp(2002), Queues: []int{0}}, {Name: "w", Match: udp(2003), Queues: []int{5}}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a queue that there is not: %v", err)
	}
	if n := len(port.Flows()); n != 4 {
		t.Errorf("a refused group left %d flows, want 4", n)
	}
	b.expectHits(t, port, map[uint32]uint64{11: 4, 22: 2, ids[0]: 2, ids[1]: 2})
	next, err := port.ReplaceFlows("dyn", []Flow{{Name: "x", Match: udp(2000), Queues: []int{0}}})
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
	if _, err := port.DeleteFlows("dyn"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "there are static") {
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

// TestContractTransforms puts frames into tunnels on one side and takes them out on the other, by flows of the
// configuration and by others that come and go.
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

// expectWhole sends packets to a port and wants them as they were sent, on a queue with a flow's id.
func (b *bench) expectWhole(tap *Tap, udp uint16, queue int, id uint32) error {
	if err := b.send(100, 5, udp); err != nil {
		return err
	}
	want := uint64(100)
	return b.receive(tap, 5, func(x *Burst, i int) error {
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
	flow := Flow{Name: "nvgre", Match: off[0].Match, Queues: off[0].QueueIDs(), Transforms: off[0].Transforms()}
	for range 3 {
		ids, err := port.AddFlows("dyn", []Flow{flow})
		if err != nil {
			return err
		}
		if _, err := sender.AddTxFlows("dyn", []Flow{{Match: on[0].Match, Transforms: on[0].Actions}}); err != nil {
			return err
		}
		if _, err := sender.AddTxFlows("dyn", []Flow{{Match: on[0].Match, Transforms: off[0].Transforms()}, {Match: on[0].Match}}); !errors.Is(err, ErrInvalid) {
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

func TestContractTimedSend(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(Wait)
		if err != nil {
			return err
		}
		x, err := b.tx.Alloc(b.l, 3)
		if err != nil {
			return err
		}
		if err := b.fill(x); err != nil {
			return err
		}
		due := b.s.Now() + int64(5*time.Millisecond)
		times, err := x.TxTimes()
		if err != nil {
			return err
		}
		for i := range times {
			times[i] = due + int64(i)*1e6
		}
		if err := b.tx.Send(x); err != nil {
			return err
		}
		n := int64(0)
		return b.receive(tap, 3, func(x *Burst, i int) error {
			if at := x.RxTimes()[i]; at < due+n*1e6 {
				return fmt.Errorf("packet %d came %d ns before its time", n, due+n*1e6-at)
			}
			n++
			return nil
		})
	})
}

// TestContractConvert: payloads become floats, whoever brought them, and come from where they came.
func TestContractConvert(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		data := DataTypes{Input: "int16", Output: "fp32", Network: true}
		head := 8 // the number
		if b.frames {
			head += headers
		}
		st, err := b.s.Convert("floats", ConvertOptions{MemoryRegion: "out", Data: data, PayloadByteOffset: 8, AtPayload: true})
		if err != nil {
			return err
		}
		if st.Kind() != KindConvert || st.Name() != "floats" {
			t.Errorf("%s %s", st.Kind(), st.Name())
		}
		return b.convert(t, st, &data, head)
	})
}

// convert sends packets of which every second has an odd length through the stage.
func (b *bench) convert(t *testing.T, st *Stage, data *DataTypes, head int) error {
	tap, err := b.s.Tap("", b.me, nil, TapOptions{Policy: Wait})
	if err != nil {
		return err
	}
	if _, err := b.s.Pipe([]*Queue{b.rx}, st, tap.Stage); err != nil {
		return err
	}
	if err := b.s.Start(b.me); err != nil {
		return err
	}
	if err := b.send(0, 10, 7148); err != nil {
		return err
	}
	next := uint64(0)
	err = b.receive(tap, 5, func(x *Burst, i int) error {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		sent := make([]byte, b.length(next))
		b.put(sent, next, 7148)
		want, _ := data.convert(sent[head:])
		if number := binary.BigEndian.Uint64(p[head-8:]); number != next || !slices.Equal(p[head:], want) {
			return fmt.Errorf("packet %d where %d was due, of %d bytes: %x", number, next, len(p), p[head:])
		}
		if peer, err := x.Peer(i); err != nil || (peer == "") != b.frames {
			return fmt.Errorf("packet %d: from %q, %w", next, peer, err)
		}
		next += 2
		return nil
	})
	b.quiesce()
	if n, _ := b.s.Ledger().Lookup("floats.dropped_by.bad_payload"); n != 5 {
		t.Errorf("%v packets of an odd length", n)
	}
	return err
}
