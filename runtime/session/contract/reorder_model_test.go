package contract

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/tests/gpu"
)

// Tests of the reorder stage against a slow and simple model. It knows each packet's full number before truncation to a field's bits, stores every
// payload separately, and processes the packets of all queues in order of arrival. If queues wait for each other it processes them batch by batch: no
// packet may be late.

// A reorderCase is a stream of packets and the options of its reordering.
type reorderCase struct {
	name      string
	bits      int    // width of the sequence number
	little    bool   // endian
	per       uint64 // packets per batch
	window    int
	start     uint64 // number of the first packet
	loss      string
	dup       float64
	displaced int  // maximum distance of swapped packets; 0: none
	unequal   bool // payloads of 1 to 64 bytes, instead of 64
	byBatch   bool // with a batch number: seq_batch_number
	drop      bool // missing_action
	queues    int  // number of queues with packets in turn; 0: one
	skew      int  // numbers whose packets of one queue are sent before those of the next
	waits     bool // hand_over; else eager
	data      *session.DataTypes
	mover     string // mover of payloads and destination: see movers
}

// movers maps movers of payloads to the kind of the destination region.
var movers = map[string]string{
	"cpu":        "host",
	"gpu":        "device",      // aggregates are returned by a copy stage
	"gpu to cpu": "host_pinned", // reorder_type: gpu, to host memory
}

const (
	reorderHead  = 30 // byte offset of the payload; the number's bits are at 14, the full number at 22
	reorderSlot  = 64
	reorderFill  = 0xa5
	reorderCount = 4000
	reorderType  = 0x88b5 // EtherType of the second queue's packets; that of the third is the next value
)

func reorderCases() []reorderCase {
	var all []reorderCase
	for _, loss := range []string{"0", "0.001", "0.01", "0.1", "0.5"} {
		for _, bits := range []int{8, 16, 32, 64} {
			c := reorderCase{bits: bits, little: bits == 32, per: 16, window: 4, loss: loss, dup: 0.02, displaced: 20}
			c.start = 1<<(bits-1)<<1 - 1000 // wraps around
			if bits == 8 {
				c.start = 17
			}
			c.name = fmt.Sprintf("%d bits, loss %s", bits, loss)
			all = append(all, c)
		}
	}
	for i, d := range []session.DataTypes{{Input: "int16", Output: "fp32", Network: true}, {Input: "u12/16le", Output: "fp32", Scale: 0.3, Offset: -1000.5},
		{Input: "o4", Output: "int16"}, {Input: "int4", Output: "fp16", Network: false}, {Input: "int32", Output: "bf16", Network: true}, {Input: "int16", Output: "fp64", Network: false},
		{Input: "int8", Output: "int32", Network: true}, {Input: "int32", Output: "fp16", Network: false}, {Input: "int32", Output: "int8", Network: true}, {Input: "int32", Output: "int32", Network: false}} {
		all = append(all, reorderCase{name: d.Input + " to " + d.Output, bits: 16, per: 16, window: 4, start: 65000, loss: "0.01", dup: 0.01,
			displaced: 20, unequal: i < 6, data: &d})
	}
	return append(all,
		reorderCase{name: "not a power of two", bits: 16, per: 100, window: 3, start: 65001, loss: "0.01", dup: 0.01, displaced: 50},
		reorderCase{name: "not a power of two, 64 bits", bits: 64, per: 7, window: 2, start: 1<<64 - 501, loss: "0.1", displaced: 3},
		reorderCase{name: "behind the window", bits: 32, per: 8, window: 2, loss: "0.01", dup: 0.01, displaced: 60},
		reorderCase{name: "one packet a batch", bits: 32, per: 1, window: 1, start: 9, loss: "0.1", displaced: 3},
		reorderCase{name: "unequal payloads", bits: 24, per: 16, window: 4, start: 5, loss: "0.01", dup: 0.01, displaced: 20, unequal: true},
		reorderCase{name: "a batch number", bits: 12, per: 64, window: 4, start: 4000, loss: "0.01", dup: 0.01, displaced: 70, byBatch: true},
		reorderCase{name: "two queues", bits: 16, per: 16, window: 4, start: 64992, loss: "0.01", dup: 0.02, displaced: 20, queues: 2},
		reorderCase{name: "three queues, far apart", bits: 32, per: 16, window: 4, start: 3, loss: "0.05", dup: 0.02, displaced: 20, queues: 3, skew: 120, unequal: true},
		reorderCase{name: "two queues that wait", bits: 16, per: 16, window: 4, start: 64992, loss: "0.01", dup: 0.02, displaced: 5, queues: 2, skew: 400, waits: true},
		reorderCase{name: "three queues that wait", bits: 8, per: 16, window: 4, start: 48, loss: "0.05", dup: 0.02, displaced: 5, queues: 3, skew: 90, waits: true},
		reorderCase{name: "only complete", bits: 16, per: 16, window: 4, start: 65000, loss: "0.01", dup: 0.01, displaced: 20, drop: true},
	)
}

// ---- the model --------------------------------------------------------------------------------------------

type modelBlock struct {
	ordinal uint64
	slots   map[uint64][]byte
	size    int // size of a slot
	cut     bool
}

// image returns the expected bytes and bitmap of the block.
func (m *modelBlock) image(per uint64) (data []byte, present string) {
	for slot := range per {
		cell := bytes.Repeat([]byte{reorderFill}, m.size)
		p, there := m.slots[slot]
		copy(cell, p)
		data = append(data, cell...)
		present += map[bool]string{true: "1", false: "0"}[there]
	}
	return data, present
}

type model struct {
	per, window, base uint64 // base: the number of slot 0 of batch 0
	low, top, first   uint64
	number            uint64 // number of the first packet
	synced            bool
	longest           int
	open              map[uint64]*modelBlock
	full              map[uint64]bool
	out               []*modelBlock
	trial             modelTrial

	late, duplicate, outliers, tooLong, skipped, badPayload int
}

func (m *model) close(cut bool) {
	if b := m.open[m.low]; b == nil {
		m.skipped++
	} else {
		m.full[m.low] = len(b.slots) == int(m.per)
		b.cut = !m.full[m.low] && (cut || m.low == m.first)
		m.out = append(m.out, b)
		delete(m.open, m.low)
	}
	m.low++
}

func (m *model) closeFull() {
	for m.open[m.low] != nil && len(m.open[m.low].slots) == int(m.per) {
		m.close(false)
	}
}

func (m *model) packet(number uint64, payload []byte) {
	if !m.synced {
		m.synced, m.first, m.number = true, 1000, number
		m.low, m.top = m.first, m.first
		m.base = number - number%m.per - m.first*m.per
	}
	ordinal, slot := (number-m.base)/m.per, (number-m.base)%m.per
	for !m.expects(ordinal) {
		why := m.whyNot(ordinal)
		if why != &m.outliers {
			*why++
			return
		}
		if m.try(ordinal, slot, payload, why) {
			return
		}
	}
	for ordinal >= m.low+m.window {
		m.close(false)
	}
	m.closeFull()
	m.top = max(m.top, ordinal)
	m.longest = max(m.longest, len(payload))
	if m.place(m.open, ordinal, slot, payload) {
		m.trialLoses()
	}
	m.closeFull()
}

// place stores a payload in a batch, which may be new, if its slot is free.
func (m *model) place(open map[uint64]*modelBlock, ordinal, slot uint64, payload []byte) bool {
	b := open[ordinal]
	if b == nil {
		b = &modelBlock{ordinal: ordinal, slots: map[uint64][]byte{}, size: max(m.longest, len(payload))}
		open[ordinal] = b
	}
	switch {
	case len(payload) > b.size:
		m.tooLong++
	case b.slots[slot] != nil:
		m.duplicate++
	default:
		b.slots[slot] = payload
		return true
	}
	return false
}

// end closes the open batches: those before a full batch were lost, the rest was cut.
func (m *model) end() {
	m.trialEnds()
	last, full := m.low, m.low
	for o := m.low; o < m.low+m.window; o++ {
		if b := m.open[o]; b != nil {
			last = o + 1
			if len(b.slots) == int(m.per) {
				full = last
			}
		}
	}
	for m.low < last {
		m.close(m.low >= full)
	}
}

// missing returns the number of missing packets of the closed blocks. By sequence it counts between the first and the last packet received; by batch
// and slot it counts before full blocks, except the first one, and a window or more before the last one.
func (m *model) missing(byBatch bool) int {
	var from, to, came, full, n uint64
	from = 1 << 63
	for _, b := range m.out {
		came += uint64(len(b.slots))
		for slot := range b.slots {
			from, to = min(from, b.ordinal*m.per+slot), max(to, b.ordinal*m.per+slot+1)
		}
		if len(b.slots) == int(m.per) {
			full = b.ordinal
		}
	}
	if !byBatch {
		return int(to - from - came)
	}
	last := m.out[len(m.out)-1].ordinal
	for _, b := range m.out[1:] {
		if b.ordinal < full || b.ordinal+m.window <= last {
			n += m.per - uint64(len(b.slots))
		}
	}
	return int(n) + m.skipped*int(m.per)
}

// ---- the stream -------------------------------------------------------------------------------------------

// field returns the field of the number, with the bits of c.
func (c reorderCase) field(bits int) *session.Field {
	f := session.Field{Base: session.BaseStart, BitOffset: 14 * 8, BitWidth: uint16(bits)}
	if c.little {
		f.Flags = session.FieldLE
	}
	return &f
}

// frame writes one packet and returns its length.
func (c reorderCase) frame(p []byte, number uint64, rng *rand.Rand) int {
	clear(p[:14])
	if q := c.queue(number); q > 0 {
		binary.BigEndian.PutUint16(p[12:], reorderType-1+uint16(q))
	}
	if c.little {
		binary.LittleEndian.PutUint64(p[14:], number)
	} else {
		binary.BigEndian.PutUint64(p[14:], number<<(64-c.bits))
	}
	binary.BigEndian.PutUint64(p[22:], number)
	n := reorderSlot
	if c.unequal {
		n = 1 + rng.IntN(reorderSlot)
	}
	for i := range n {
		p[reorderHead+i] = byte(rng.Uint32())
	}
	return reorderHead + n
}

// queue returns the queue of a packet.
func (c reorderCase) queue(number uint64) int { return int(number % uint64(max(c.queues, 1))) }

// flows returns the flows that steer packets to their queues.
func (c reorderCase) flows() string {
	if c.queues == 0 {
		return ""
	}
	text := "        flows:\n"
	for q := 1; q < c.queues; q++ {
		text += fmt.Sprintf("        - {name: to%d, id: %[1]d, match: {ethertype: %d}, action: {type: queue, id: %[1]d}}\n", q, reorderType-1+q)
	}
	return text
}

// numbers returns the packets' numbers in the order of sending.
func (c reorderCase) numbers(rng *rand.Rand) []uint64 {
	all := make([]uint64, reorderCount)
	for i := range all {
		all[i] = c.start + uint64(i)
	}
	for i := 1; c.displaced > 0 && i < len(all); i++ {
		if rng.IntN(4) == 0 {
			k := max(1, i-rng.IntN(c.displaced)) // the first packet stays first
			all[i], all[k] = all[k], all[i]
		}
	}
	for part := all; c.skew > 0 && len(part) > 0; part = part[min(c.skew, len(part)):] {
		slices.SortStableFunc(part[:min(c.skew, len(part))], func(a, b uint64) int { return c.queue(a) - c.queue(b) })
	}
	return all
}

func (c reorderCase) options() session.ReorderOptions {
	timeout := int64(0)
	if c.waits {
		timeout = int64(10 * time.Second) // required, but longer than the stream
	}
	o := session.ReorderOptions{MemoryRegion: "batches", Sequence: c.field(c.bits), Slots: int(c.per), PayloadByteOffset: reorderHead,
		Window: c.window, Data: c.data, Fill: reorderFill, DropIncomplete: c.drop, WaitForOthers: c.waits, TimeoutNS: timeout, Policy: session.Wait}
	o.ByGPU = c.mover == "gpu to cpu"
	if c.byBatch {
		o.BatchNumber = c.field(c.bits - 6)
	}
	return o
}

// arrival is a packet passed to the stage.
type arrival struct {
	number  uint64
	payload []byte
}

// reorderRun is the state and the result of one case.
type reorderRun struct {
	c     reorderCase
	b     *bench
	model *model
	kept  []arrival // if queues wait: packets for the model, processed at the end
	got   []string  // each block's bytes, bitmap and account as text
	want  []string
}

func (r *reorderRun) send(rng *rand.Rand) error {
	for all := r.c.numbers(rng); len(all) > 0; {
		n := min(len(all), 32)
		x, err := r.b.tx.Alloc(r.b.l, n)
		if errors.Is(err, session.ErrNoBurst) || errors.Is(err, session.ErrNoPacket) {
			if _, err := r.b.me.Wait(r.b.me.Now() + int64(10*time.Microsecond)); err != nil {
				return err
			}
			continue
		} else if err != nil {
			return err
		}
		for i, number := range all[:n] {
			if err := x.SetLen(0, i, 200); err != nil {
				return err
			}
			p, err := x.Packet(0, i)
			if err != nil {
				return err
			}
			if err := x.SetLen(0, i, r.c.frame(p, number, rng)); err != nil {
				return err
			}
		}
		if err := r.b.tx.Send(x); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// arrive passes a burst to the model in order of arrival.
func (r *reorderRun) arrive(x *session.Burst) error {
	for i := range x.N() {
		p, err := x.Packet(0, i)
		if err != nil {
			return err
		}
		payload, whole := converted(r.c.data, bytes.Clone(p[reorderHead:]))
		if !whole {
			r.model.badPayload++
			continue
		}
		number := binary.BigEndian.Uint64(p[22:])
		if !r.c.waits {
			r.model.packet(number, payload)
			continue
		}
		if len(r.kept) == 0 {
			r.model.number = number
		}
		r.kept = append(r.kept, arrival{number, payload})
	}
	return nil
}

func (r *reorderRun) aggregate(x *session.Burst) error {
	a, ok := x.Aggregate()
	data, err := x.Packet(0, 0)
	if err != nil || !ok {
		return fmt.Errorf("aggregate %v: %w", ok, err)
	}
	present := ""
	for cell := range a.Cells {
		present += string("01"[a.PresentBits[cell/64]>>(cell%64)&1])
	}
	cut := a.Flags&(session.AggregateFirst|session.AggregateStopped) != 0
	r.got = append(r.got, fmt.Sprintf("batch +%d %s %v %d %x", a.Ordinal-r.model.number<<(64-r.c.bits)>>(64-r.c.bits)/r.c.per, present, cut, a.Packets, data))
	return nil
}

// blocks returns the model's blocks as texts.
func (r *reorderRun) blocks() {
	slices.SortStableFunc(r.kept, func(a, b arrival) int { return cmp.Compare(a.number/r.c.per, b.number/r.c.per) })
	for _, a := range r.kept {
		r.model.packet(a.number, a.payload)
	}
	r.model.end()
	for _, m := range r.model.out {
		if r.c.drop && len(m.slots) < int(r.c.per) {
			continue
		}
		data, present := m.image(r.c.per)
		r.want = append(r.want, fmt.Sprintf("batch +%d %s %v %d %x", m.ordinal-r.model.first, present, m.cut, len(m.slots), data))
	}
}

// drain takes bursts from the taps until no more arrive.
func (r *reorderRun) drain(raw, out *session.Tap) error {
	for _, t := range []struct {
		tap  *session.Tap
		take func(*session.Burst) error
	}{{raw, r.arrive}, {out, r.aggregate}} {
		for {
			x, err := t.tap.Next(r.b.l, r.b.me.Now()+int64(50*time.Microsecond))
			if errors.Is(err, session.ErrNotReady) {
				break
			} else if err != nil {
				return err
			}
			if err := errors.Join(t.take(x), x.Free()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reorderRun) run() error {
	st, err := r.b.s.Reorder("blocks", r.c.options())
	if err != nil {
		return err
	}
	raw, err := r.b.s.Tap("", r.b.me, nil, session.TapOptions{Policy: session.Wait, Depth: 1024})
	if err != nil {
		return err
	}
	stages := []*session.Stage{raw.Stage, st}
	if r.c.mover == "gpu" {
		back, err := r.b.s.Copy("back", session.CopyOptions{MemoryRegion: "host", Policy: session.Wait})
		if err != nil {
			return err
		}
		stages = append(stages, back)
	}
	out, err := stages[len(stages)-1].Out().Tap(r.b.me, nil, session.TapOptions{Policy: session.Wait, Depth: 8192})
	if err != nil {
		return err
	}
	if _, err := r.b.s.Pipe(r.b.s.Interfaces()[1].RxQueues()[:max(r.c.queues, 1)], stages...); err != nil {
		return err
	}
	if err := r.b.s.Start(r.b.me); err != nil {
		return err
	}
	if err := r.send(rand.New(rand.NewPCG(1, uint64(r.c.bits)))); err != nil {
		return err
	}
	for range 3 {
		if err := r.drain(raw, out); err != nil {
			return err
		}
	}
	for r.b.s.Quiesce(time.Second) > 0 {
		if err := r.drain(raw, out); err != nil {
			return err
		}
	}
	if err := r.drain(raw, out); err != nil {
		return err
	}
	r.blocks()
	return nil
}

// figures checks the ledger's figures that the model also computes.
func (r *reorderRun) figures(t *testing.T) {
	t.Helper()
	m := r.model
	if r.c.skew > 0 && (m.late > 0) == r.c.waits {
		t.Errorf("%d packets are late", m.late)
	}
	missing, partial := m.missing(r.c.byBatch), 0
	for _, b := range m.out {
		if len(b.slots) < int(m.per) {
			partial++
		}
	}
	for name, want := range map[string]int{
		"blocks.late": m.late, "blocks.outliers": m.outliers, "blocks.dropped_by.duplicate": m.duplicate, "blocks.dropped_by.too_long": m.tooLong, "blocks.dropped_by.bad_payload": m.badPayload,
		"blocks.skipped": m.skipped, "blocks.missing": missing, "blocks.partial": partial,
		"blocks.batches": len(m.out) - partial, "blocks.held": 0, "blocks.resyncs": 0, "blocks.dropped_by.no_packet_buffer": 0,
	} {
		if got := r.b.figure(name); got != float64(want) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
	l := r.b.s.Ledger()
	if bad := l.Balance(); bad != nil {
		t.Error(bad)
	}
	for i := range l.Lines {
		if l.Lines[i].Histograms.Get("run_time") != nil {
			t.Errorf("%s has times of launches, on a clock that stands still meanwhile", l.Lines[i].Name)
		}
	}
}

func TestReorderModel(t *testing.T) {
	gpu.Use(t)
	for mover, kind := range movers {
		t.Run(mover, func(t *testing.T) { testReorderModel(t, mover, kind) })
	}
}

func testReorderModel(t *testing.T, mover, kind string) {
	const second = "        - {name: rx1, id: 1, memory_regions: [in], poll_mode: direct, batch_size: 32}\n"
	const regions = `memory_regions:
    - {name: batches, kind: %s, affinity: 0, num_bufs: 8192, buf_size: 6400}
    - {name: host, kind: host, affinity: 0, num_bufs: 8192, buf_size: 6400}
`
	for _, c := range reorderCases() {
		c.mover = mover
		t.Run(c.name, func(t *testing.T) {
			wire := fmt.Sprintf("rate: 10Gbit/s, loss: %s, dup: %g, reorder: 0.05", c.loss, c.dup)
			change := func(text string) string {
				text = strings.Replace(text, "rate: 10Gbit/s", wire, 1)
				text = strings.Replace(text, second, second+strings.NewReplacer("rx1", "rx2", "id: 1", "id: 2").Replace(second), 1)
				text = strings.ReplaceAll(text, "num_bufs: 1024", "num_bufs: 8192")
				return strings.Replace(text, "memory_regions:\n", fmt.Sprintf(regions, kind), 1)
			}
			virtualBench(t, c.flows(), change, func(b *bench) error {
				r := &reorderRun{c: c, b: b, model: &model{per: c.per, window: uint64(c.window), open: map[uint64]*modelBlock{},
					full: map[uint64]bool{}, trial: modelTrial{open: map[uint64]*modelBlock{}}}}
				if err := r.run(); err != nil {
					return err
				}
				if len(r.got) != len(r.want) || len(r.want) < 10 {
					t.Errorf("%d blocks, want %d", len(r.got), len(r.want))
				}
				for i := range min(len(r.got), len(r.want)) {
					if r.got[i] != r.want[i] {
						t.Errorf("block %d:\n got %s\nwant %s", i, r.got[i], r.want[i])
						break
					}
				}
				r.figures(t)
				b.l.ReleaseAll()
				return nil
			})
		})
	}
}
