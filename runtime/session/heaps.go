package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
)

// KindHeaps is the kind of a stage that puts packets together to heaps.
const KindHeaps = "heaps"

// HeapsOptions say where in a heap each packet's payload belongs: numbers over Fields and the names that every packet has.
type HeapsOptions struct {
	MemoryRegion      string // a heap fills a buffer, or part of it
	Fields            Fields
	ID, Offset        string // the heap's id; where in the heap the payload belongs, bytes
	Size              string // of the heap, bytes; empty: HeapBytes
	HeapBytes         int
	PayloadByteOffset int // as in ReorderOptions, these five
	AtPayload         bool
	Header, Length    string
	Segment           int
	Items             *ItemList // of the packets; nil: none are kept
	Window            int       // heaps open at a time; 0: up to 4
	TimeoutNS         int64     // of a heap, from its first packet; 0: none
	Fill              int       // of gaps: a byte, or FillKeep
	DropIncomplete    bool
	Policy            Policy // when no buffer is free
}

// ItemList is a list of items in packets' headers of which a heap keeps each once.
type ItemList struct {
	At, Count        string // bytes into the innermost payload, and how many: numbers over Fields
	Bytes, ValueBits int    // of an item
	Skip             []uint64
}

// Heaps makes a stage that puts packets together to heaps. They come from the stage's own queue, Out.
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
