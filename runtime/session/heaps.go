package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// KindHeaps is the kind of a stage that assembles heaps from packets.
const KindHeaps = "heaps"

// HeapsOptions describes the position of each packet's payload in a heap: numbers over Fields and the common names.
type HeapsOptions struct {
	MemoryRegion      string // a heap occupies a buffer or a part of it
	Fields            Fields
	ID, Offset        string // id of the heap; byte offset of the payload in the heap
	Size              string // size of the heap in bytes; empty: HeapBytes
	HeapBytes         int
	PayloadByteOffset int // these five as in ReorderOptions
	AtPayload         bool
	Header, Length    string
	Segment           int
	Items             *ItemList // items to store; nil: none
	Window            int       // heaps open at a time; 0: up to 4
	TimeoutNS         int64     // timeout of a heap since its first packet; 0: none
	Fill              int       // value of gaps: a byte, or FillKeep
	DropIncomplete    bool
	Policy            Policy // if no buffer is free
}

// ItemList is a list of items in packet headers; a heap stores each distinct item once.
type ItemList struct {
	At, Count        string // byte offset in the innermost payload, and number of items: numbers over Fields
	Bytes, ValueBits int    // sizes of an item and of its value
	Skip             []uint64
}

// Heaps creates a stage that assembles heaps from packets. They are output through the stage's own queue, Out.
func (s *Session) Heaps(name string, o HeapsOptions) (*Stage, error) {
	conf, err := o.compile()
	if err != nil {
		return nil, fmt.Errorf("heaps %s: %w", name, err)
	}
	return s.aggregates(KindHeaps, name, o.MemoryRegion, o.TimeoutNS, func(region native.Region, n string) (native.Stage, native.Queue, error) {
		conf.Region = region
		return s.native.AddHeaps(n, conf)
	})
}

func (o HeapsOptions) compile() (native.HeapsConf, error) {
	c := native.HeapsConf{HeapBytes: o.HeapBytes, Segment: o.Segment, PayloadOffset: o.PayloadByteOffset, AtPayload: o.AtPayload,
		Window: o.Window, TimeoutNS: o.TimeoutNS, Fill: o.Fill, DropIncomplete: o.DropIncomplete, Policy: o.Policy}
	list := o.Items
	if list == nil {
		list = &ItemList{}
	}
	c.ItemBytes, c.ValueBits, c.Skip = list.Bytes, list.ValueBits, list.Skip
	err := compileRule(o.Fields, []ruleText{
		{"id", o.ID, &c.ID}, {"size", o.Size, &c.Size}, {"offset", o.Offset, &c.Offset}, {"header", o.Header, &c.Header},
		{"payload", o.Length, &c.Length}, {"items", list.At, &c.ItemsAt}, {"items", list.Count, &c.Items},
	})
	return c, err
}
