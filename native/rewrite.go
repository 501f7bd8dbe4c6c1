package native

/*
#include "dq.h"
*/
import "C"

import "runtime"

// CsumCompute is a Csum for rewrites only: checksums are recomputed after all fields are written.
const CsumCompute Csum = C.DQ_CSUM_COMPUTE

// RewriteKind is the operation of a rewrite rule on its field.
type RewriteKind int32

// Kinds of rules.
const (
	RewriteSet    RewriteKind = C.DQ_REWRITE_SET  // Start + Step * index of the packet
	RewriteByLoop RewriteKind = C.DQ_REWRITE_LOOP // adds Step * replay loop
	RewriteByMap  RewriteKind = C.DQ_REWRITE_MAP  // the first matching one of Maps
)

// RewriteMap applies to values v with v & Mask == From: the bits of Mask become To; likewise for a rule's Low. It mirrors
// dq_rewrite_map.
type RewriteMap struct{ Mask, From, To, LowMask, LowFrom, LowTo uint64 }

// RewriteRule is a change of a field; Place, if set, is a number of bits to add to its offset in each packet.
type RewriteRule struct {
	Field       Field
	Place       []Insn
	Kind        RewriteKind
	Start, Step uint64
	Maps        []RewriteMap
	Low         *Field // second field that Maps test and change; nil: none
}

// AddRewrite adds a stage that rewrites fields of every packet in place.
func (s *Session) AddRewrite(name string, rules []RewriteRule, csum Csum) (Stage, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := make([]C.dq_rewrite_rule, len(rules))
	for i := range rules {
		r := &rules[i]
		maps := make([]C.dq_rewrite_map, len(r.Maps))
		for k, m := range r.Maps {
			maps[k] = C.dq_rewrite_map{mask: C.uint64_t(m.Mask), from: C.uint64_t(m.From), to: C.uint64_t(m.To),
				low_mask: C.uint64_t(m.LowMask), low_from: C.uint64_t(m.LowFrom), low_to: C.uint64_t(m.LowTo)}
		}
		c[i] = C.dq_rewrite_rule{field: *r.Field.ptr(), place: pinnedNumber(&pin, r.Place), kind: C.int32_t(r.Kind),
			start: C.uint64_t(r.Start), step: C.uint64_t(r.Step), n_maps: C.uint32_t(len(maps))}
		if r.Low != nil {
			c[i].low = *r.Low.ptr()
		}
		if len(maps) > 0 {
			pin.Pin(first(maps))
			c[i].maps = first(maps)
		}
	}
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_rewrite(s.c, n, first(c), C.uint32_t(len(c)), C.int(csum), out, d)
	})
}
