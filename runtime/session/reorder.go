package session

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// KindReorder is the kind of a stage that assembles packets to aggregates.
const KindReorder = "reorder"

// FillKeep leaves the previous buffer content in the gaps of an aggregate.
const FillKeep = native.FillKeep

// MaxWindow is the maximum number of open batches of a reorder stage.
const MaxWindow = native.MaxWindow

// ReorderOptions describes the position of each packet's payload in an aggregate. It is given by Sequence alone (Slots consecutive packets are a
// batch), by Sequence and BatchNumber (the slot is the sequence number modulo Slots), or by the texts Batch and Slot, over Fields and the common
// names.
type ReorderOptions struct {
	MemoryRegion                  string
	Sequence, BatchNumber         *Field
	SequenceName, BatchName       string // names of these in Fields, whose positions may depend on the packet
	Batch, Slot, Offset, Extra    string
	Fields                        Fields
	Source                        string              // number by which packets are counted per source, or SourcePeer; empty: none
	SourceText                    func(uint64) string // formats such a number; nil: decimal
	Wrap                          uint64              // value at which Batch wraps to 0; 0: 2^64
	Slots, SlotBytes, PacketBytes int                 // SlotBytes 0: the longest payload so far
	Segment                       int                 // segment of the payload, from 0
	PayloadByteOffset             int                 // relative to the segment, or with AtPayload to the innermost payload
	AtPayload                     bool
	Header, Length                string     // bytes before the payload, and its length: numbers over Fields; empty: none, and all
	Data                          *DataTypes // conversion of payloads; nil: none
	FlowIDs                       []uint32   // empty: packets of all flows; others pass
	Window                        int        // batches open at a time; 0: up to 4
	TimeoutNS                     int64      // timeout of a batch since its first packet; 0: none
	Fill                          int        // value of gaps: a byte, or FillKeep
	DropIncomplete                bool
	WaitForOthers                 bool   // queues that are ahead wait for the others
	Policy                        Policy // if no buffer is free
	ByGPU                         bool   // a GPU copies payloads to any region; to regions in GPU memory it always does
	Ring                          int    // batches after which Sequence or BatchNumber restarts at 0: the buffers of MemoryRegion, in order; 0: no ring
}

// SourcePeer is the value of ReorderOptions.Source that selects the peer's address of socket packets.
const SourcePeer = "peer"

// Reorder creates a stage that assembles packets to aggregates in order, which are output through the stage's own queue, Out.
func (s *Session) Reorder(name string, o ReorderOptions) (*Stage, error) {
	conf, err := o.compile()
	if err != nil {
		return nil, fmt.Errorf("reorder %s: %w", name, err)
	}
	return s.aggregates(KindReorder, name, o.MemoryRegion, o.TimeoutNS, func(region native.Region, n string) (native.Stage, native.Queue, error) {
		if o.SourceText != nil {
			s.sourceTexts.Store(n, o.SourceText)
		}
		conf.Region = region
		return s.native.AddReorder(n, conf)
	})
}

// aggregates creates a stage that assembles packets in a memory region, and its output queue.
func (s *Session) aggregates(kind, name, memoryRegion string, timeoutNS int64,
	add func(native.Region, string) (native.Stage, native.Queue, error)) (*Stage, error) {
	region, err := s.Region(memoryRegion)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, name, err)
	}
	var out native.Queue
	st, err := s.stage(name, kind, "", func(n string) (st native.Stage, err error) {
		st, out, err = add(region.native, n)
		return st, err
	})
	if err != nil {
		return nil, err
	}
	st.region, st.timeoutNS = memoryRegion, timeoutNS
	s.ownQueue(st, out, &spec.Queue{Name: st.name, BatchSize: 1, MemoryRegions: []string{memoryRegion}})
	return st, nil
}

// ruleText is a number of a rule: the name of its option, its text (empty: none), and the destination of its program.
type ruleText struct {
	key, text string
	to        *[]native.Insn
}

// compileRule compiles the programs of a rule. Errors name the option.
func compileRule(fields Fields, rule []ruleText) error {
	for _, x := range rule {
		if x.text == "" {
			continue
		}
		insns, _, err := compileNumber(x.text, fields)
		if err != nil {
			return fmt.Errorf("%s %w", x.key, err)
		}
		*x.to = insns
	}
	return nil
}

// Out returns the output queue of a reorder or similar stage; nil for other stages.
func (st *Stage) Out() *Queue { return st.out }

// placeFields resolves the two fields of the reference's methods by name, before the script's own fields.
type placeFields struct {
	own   map[string]*Field
	names map[string]string // their names in more
	more  Fields
}

// Derived resolves computed names of more, also under the names of own fields.
func (p placeFields) Derived(name string) (expr.Derived, bool) {
	if p.own[name] != nil {
		name = p.names[name]
	}
	return resolver{p.more}.Derived(name)
}

// Constant resolves a value's name through more.
func (p placeFields) Constant(name string) (uint64, bool) { return resolver{p.more}.Constant(name) }

func (p placeFields) Field(name string) (Field, bool) {
	if f := p.own[name]; f != nil {
		return *f, true
	}
	if p.more == nil {
		return Field{}, false
	}
	return p.more.Field(name)
}

func (p placeFields) Names() []string {
	if p.more == nil {
		return nil
	}
	return p.more.Names()
}

// compile compiles the programs of the rule; the reference's methods become texts too.
func (o ReorderOptions) compile() (native.ReorderConf, error) {
	types, err := o.Data.native()
	if err != nil {
		return native.ReorderConf{}, err
	}
	c := native.ReorderConf{
		Wrap: o.Wrap, Slots: o.Slots, SlotBytes: o.SlotBytes, PacketBytes: o.PacketBytes,
		Segment: o.Segment, PayloadOffset: o.PayloadByteOffset, AtPayload: o.AtPayload, Types: types, FlowIDs: o.FlowIDs,
		Window: o.Window, TimeoutNS: o.TimeoutNS, Fill: o.Fill, DropIncomplete: o.DropIncomplete,
		Wait: o.WaitForOthers, Policy: o.Policy, ByGPU: o.ByGPU, Ring: o.Ring > 0, SourcePeer: o.Source == SourcePeer,
	}
	source := o.Source
	if c.SourcePeer {
		source = ""
	}
	fields := placeFields{map[string]*Field{"sequence_number": o.Sequence, "batch_number": o.BatchNumber},
		map[string]string{"sequence_number": o.SequenceName, "batch_number": o.BatchName}, o.Fields}
	seq, batch, slot := "", o.Batch, o.Slot
	switch {
	case o.Sequence != nil && o.BatchNumber != nil:
		batch, slot = "batch_number", fmt.Sprintf("sequence_number %% %d", max(o.Slots, 1))
		if o.BatchNumber.BitWidth < 64 {
			c.Wrap = 1 << o.BatchNumber.BitWidth
		}
	case o.Sequence != nil:
		seq, c.SeqBits = "sequence_number", int(o.Sequence.BitWidth)
	}
	if c.Ring && seq != "" {
		c.SeqBits = bits.Len(uint(o.Ring*o.Slots)) - 1 // both are powers of two
	} else if c.Ring {
		c.Wrap = uint64(o.Ring)
	}
	err = compileRule(fields, []ruleText{
		{"sequence_number", seq, &c.Seq}, {"batch", batch, &c.Batch}, {"slot", slot, &c.Slot},
		{"offset", o.Offset, &c.Offset}, {"extra", o.Extra, &c.Extra}, {"source", source, &c.Source},
		{"header", o.Header, &c.Header}, {"payload", o.Length, &c.Length},
	})
	return c, err
}

// Aggregate describes the aggregate in a burst. Its slices are valid while the burst lives.
type Aggregate = native.Aggregate

// Flags of an aggregate.
const (
	AggregateTimeout = native.AggregateTimeout
	AggregatePushed  = native.AggregatePushed
	AggregateFirst   = native.AggregateFirst
	AggregateStopped = native.AggregateStopped
)

// Aggregate returns the description of the burst's aggregate; false for any other burst. It requires a live burst.
func (b *Burst) Aggregate() (Aggregate, bool) {
	if b.view.Flags&native.BurstReordered == 0 {
		return Aggregate{}, false
	}
	return b.native.Aggregate()
}

// addPlans creates the configured reorder stages, which take the packets of their flows before any pipe.
func (i *Interface) addPlans() error {
	if i.spec.RX == nil {
		return nil
	}
	for _, r := range i.spec.RX.ReorderConfigs {
		sources := i.queuesOf(r)
		opts := planOptions(r, sources)
		opts.ByGPU = r.ReorderType == "gpu" && i.s.onGPU(r.MemoryRegion)
		if r.ReorderEngine == "hw" {
			opts.SlotBytes, opts.Ring = r.PacketSize, i.s.cfg.Region(r.MemoryRegion).NumBufs
		}
		st, err := i.s.Reorder(r.Name, opts)
		if err != nil {
			return r.Source.Wrap(err)
		}
		st.out.home, st.out.leader = sources[0], sources[0]
		for _, q := range sources {
			q.plans = append(q.plans, st)
		}
		if opts.Ring > 0 {
			i.s.note("reorder %s: reorder_engine hw: emulated in software", r.Name)
		}
		if r.ReorderType == "gpu" && !opts.ByGPU {
			i.s.note("reorder %s: on the CPU", r.Name)
		}
	}
	for _, q := range i.rx {
		if len(q.plans) == 0 {
			continue
		}
		stages := make([]native.Stage, len(q.plans))
		for k, st := range q.plans {
			stages[k] = st.native
		}
		if err := q.native.Claim(stages); err != nil {
			return q.named(err)
		}
	}
	return nil
}

// hold returns for how many us a receive queue gathers a burst. A queue of a reorder config does so for a quarter of its timeout_us, so that what it
// gathers is in time for the batches, which have the whole of it. With reorder_engine hw it does not: a network card places each packet as it arrives.
func (i *Interface) hold(q *spec.Queue) int64 {
	for _, r := range i.spec.RX.ReorderConfigs {
		for _, f := range i.spec.RX.Flows {
			switch {
			case !slices.Contains(r.FlowIDs, f.ID) || !slices.Contains(f.QueueIDs(), q.ID):
			case r.ReorderEngine == "hw":
				return 1
			default:
				return max(q.TimeoutUS/4, min(q.TimeoutUS, 1))
			}
		}
	}
	return q.TimeoutUS
}

// onGPU reports whether a region is as configured, and not replaced by host memory (Options.Memory).
func (s *Session) onGPU(region string) bool {
	r := s.cfg.Region(region)
	return r != nil && r.Declared == ""
}

// queuesOf returns the queues that the flows of a reorder config lead to.
func (i *Interface) queuesOf(r *spec.Reorder) (queues []*Queue) {
	for _, f := range i.spec.RX.Flows {
		if !slices.Contains(r.FlowIDs, f.ID) {
			continue
		}
		for _, q := range i.rx {
			if slices.Contains(f.QueueIDs(), q.ID()) && !slices.Contains(queues, q) {
				queues = append(queues, q)
			}
		}
	}
	return queues
}

// planOptions returns the options of a reorder config; a batch's timeout is the longest timeout_us of its queues.
func planOptions(r *spec.Reorder, sources []*Queue) ReorderOptions {
	place := func(f spec.BitField) *Field {
		return &Field{Base: BaseStart, BitOffset: uint32(f.BitOffset), BitWidth: uint16(f.BitWidth)}
	}
	o := ReorderOptions{
		MemoryRegion: r.MemoryRegion, Sequence: place(r.SequenceNumber), Slots: int(r.PacketsPerBatch),
		Segment: r.PayloadSegment, PayloadByteOffset: r.PayloadByteOffset, FlowIDs: r.FlowIDs, DropIncomplete: r.MissingAction == "drop",
	}
	if len(r.FlowIDs) > 1 {
		o.Source = "flow_id"
	}
	if r.BatchNumber != nil {
		o.BatchNumber = place(*r.BatchNumber)
	}
	if d := r.DataTypes; d != nil {
		o.Data = &DataTypes{Input: d.InputType, Output: d.OutputType, Network: d.Endianness == "network"}
	}
	for _, q := range sources {
		if !q.spec.DefaultTimeout {
			o.TimeoutNS = max(o.TimeoutNS, 1000*q.spec.TimeoutUS)
		}
	}
	return o
}
