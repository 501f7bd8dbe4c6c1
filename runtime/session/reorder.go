package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/expr"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// KindReorder is the kind of a stage that puts packets together to aggregates.
const KindReorder = "reorder"

// FillKeep leaves in the gaps of an aggregate what its buffer had.
const FillKeep = native.FillKeep

// MaxWindow is how many batches a reorder stage can have open.
const MaxWindow = native.MaxWindow

// ReorderOptions say where in an aggregate each packet's payload belongs. Either Sequence alone (Slots packets are a
// batch, on and on), or Sequence and BatchNumber (the slot is the sequence number modulo Slots), or the texts Batch and
// Slot, with Fields beside the names that every packet has.
type ReorderOptions struct {
	MemoryRegion                  string
	Sequence, BatchNumber         *Field
	SequenceName, BatchName       string // with them: the names of Fields that they are, as those may be elsewhere in each packet
	Batch, Slot, Offset, Extra    string
	Fields                        Fields
	Source                        string              // what came and is missing is counted by this number, or by SourcePeer; empty: not so
	SourceText                    func(uint64) string // writes such a number; nil: in decimal
	Wrap                          uint64              // Batch goes on at 0 instead of this; 0: 2^64
	Slots, SlotBytes, PacketBytes int                 // SlotBytes 0: the longest payload so far
	Segment                       int                 // that has the payload, from 0
	PayloadByteOffset             int                 // from the segment's start, or with AtPayload from the innermost payload's
	AtPayload                     bool
	Header, Length                string     // further bytes in front of the payload, and its own: numbers over Fields; empty: none, and all there are
	Data                          *DataTypes // of payloads; nil: bytes stay as they are
	FlowIDs                       []uint32   // none: packets of all flows; others pass
	Window                        int        // batches open at a time; 0: up to 4
	TimeoutNS                     int64      // of a batch, from its first packet; 0: none
	Fill                          int        // of gaps: a byte, or FillKeep
	DropIncomplete                bool
	WaitForOthers                 bool   // a queue that is ahead of the others waits
	Policy                        Policy // when no buffer is free
	ByGPU                         bool   // a GPU moves payloads, whatever the region: into that of a GPU's memory one always does
}

// SourcePeer is the value of ReorderOptions.Source that takes the peer's address, of packets of sockets, as their source.
const SourcePeer = "peer"

// DataTypes converts the elements of payloads, of one of spec.InputTypes, to one of spec.OutputTypes.
// SlotBytes, PacketBytes and Offset are bytes of input.
type DataTypes struct {
	Input, Output string
	Network       bool // Input has its highest byte first; else it has the host's order
}

func (d *DataTypes) native() native.DataTypes {
	if d == nil {
		return native.DataTypes{}
	}
	return native.DataTypes{Input: native.DtypeNamed(d.Input), Output: native.DtypeNamed(d.Output), Network: d.Network}
}

// Reorder makes a stage that puts packets together to aggregates in order. They come from the stage's own queue, Out.
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

// aggregates makes a stage that puts packets together in a memory region, and the queue that they come from.
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

// ruleText is a number of a rule: the option that has it, and where its program goes. Empty: there is none.
type ruleText struct {
	key, text string
	to        *[]native.Insn
}

// compileRule makes the programs of a rule. Errors name the option.
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

// Out is the queue that a reorder stage's aggregates come from, nil of any other stage.
func (st *Stage) Out() *Queue { return st.out }

// placeFields are the reference's two fields under names for the text grammar, before the script's own.
type placeFields struct {
	own   map[string]*Field
	names map[string]string // what they are called by more
	more  Fields
}

// Derived finds what more knows, under its name or ours.
func (p placeFields) Derived(name string) (expr.Derived, bool) {
	if p.own[name] != nil {
		name = p.names[name]
	}
	return resolver{p.more}.Derived(name)
}

// Constant finds the name of a value.
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

// compile makes programs of the rule; the reference's methods are texts, too.
func (o ReorderOptions) compile() (native.ReorderConf, error) {
	c := native.ReorderConf{
		Wrap: o.Wrap, Slots: o.Slots, SlotBytes: o.SlotBytes, PacketBytes: o.PacketBytes,
		Segment: o.Segment, PayloadOffset: o.PayloadByteOffset, AtPayload: o.AtPayload, Types: o.Data.native(), FlowIDs: o.FlowIDs,
		Window: o.Window, TimeoutNS: o.TimeoutNS, Fill: o.Fill, DropIncomplete: o.DropIncomplete,
		Wait: o.WaitForOthers, Policy: o.Policy, ByGPU: o.ByGPU, SourcePeer: o.Source == SourcePeer,
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
	err := compileRule(fields, []ruleText{
		{"sequence_number", seq, &c.Seq}, {"batch", batch, &c.Batch}, {"slot", slot, &c.Slot},
		{"offset", o.Offset, &c.Offset}, {"extra", o.Extra, &c.Extra}, {"source", source, &c.Source},
		{"header", o.Header, &c.Header}, {"payload", o.Length, &c.Length},
	})
	return c, err
}

// Aggregate is what a reorder stage says about its burst. The slices are valid while the burst lives.
type Aggregate = native.Aggregate

// Flags of an aggregate.
const (
	AggregateTimeout = native.AggregateTimeout
	AggregatePushed  = native.AggregatePushed
	AggregateFirst   = native.AggregateFirst
	AggregateStopped = native.AggregateStopped
)

// Aggregate is what a reorder stage says about the burst; false for any other burst. For a live burst.
func (b *Burst) Aggregate() (Aggregate, bool) {
	if b.view.Flags&native.BurstReordered == 0 {
		return Aggregate{}, false
	}
	return b.native.Aggregate()
}
