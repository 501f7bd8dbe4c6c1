package native

/*
#include "dq.h"
*/
import "C"

import "runtime"

// HeapSkipKeys is the maximum number of item keys in HeapsConf.Skip.
const HeapSkipKeys = int(C.DQ_HEAP_SKIP_KEYS)

// HeapsConf configures a heaps stage; it mirrors dq_heaps_conf, which documents the rules. Empty programs are absent.
type HeapsConf struct {
	Region                 Region
	ID, Size, Offset       []Insn
	HeapBytes              int
	Segment, PayloadOffset int
	AtPayload              bool
	Header, Length         []Insn
	ItemsAt, Items         []Insn
	ItemBytes, ValueBits   int
	Skip                   []uint64
	Window                 int
	TimeoutNS              int64
	Fill                   int // a byte, or FillKeep
	DropIncomplete         bool
	Policy                 Policy
}

// AddHeaps adds a stage that assembles packets into heaps, and the receive queue that delivers them.
func (s *Session) AddHeaps(name string, conf HeapsConf) (Stage, Queue, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	number := func(insns []Insn) C.dq_number { return pinnedNumber(&pin, insns) }
	c := C.dq_heaps_conf{
		region: conf.Region.c,
		id:     number(conf.ID), size: number(conf.Size), offset: number(conf.Offset), heap_bytes: C.uint32_t(conf.HeapBytes),
		segment: C.uint32_t(conf.Segment), payload_offset: C.uint32_t(conf.PayloadOffset), at_payload: flag(conf.AtPayload),
		header: number(conf.Header), length: number(conf.Length), items_at: number(conf.ItemsAt), items: number(conf.Items),
		item_bytes: C.uint32_t(conf.ItemBytes), value_bits: C.uint32_t(conf.ValueBits), n_skip: C.uint32_t(len(conf.Skip)),
		window: C.uint32_t(conf.Window), timeout_ns: C.int64_t(conf.TimeoutNS), fill: C.int32_t(conf.Fill),
		drop_incomplete: flag(conf.DropIncomplete), policy: C.int32_t(conf.Policy),
	}
	for i, k := range conf.Skip[:min(len(conf.Skip), HeapSkipKeys)] {
		c.skip[i] = C.uint64_t(k)
	}
	var q Queue
	st, err := addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_heaps(s.c, n, &c, out, &q.c, d)
	})
	return st, q, err
}
