package session

import (
	"slices"

	"github.com/daqiri/daqiri-run/native"
)

// KindRewrite is the kind of a stage that rewrites fields of packets.
const KindRewrite = "rewrite"

// CsumCompute recomputes checksums after a rewrite; the alternatives are CsumUpdate and CsumKeep.
const CsumCompute = native.CsumCompute

// RewriteMap applies to values v with v & Mask == From: the bits of Mask become To; the same applies to a rule's Low.
type RewriteMap = native.RewriteMap

// Rewrite describes the new value of a field; exactly one of Set, PerLoop and Maps is used.
type Rewrite struct {
	Field   Field
	Place   *Place       // field whose position depends on the packet, instead of Field
	Set     bool         // sets Start + Step * index of the packet in the stage
	PerLoop bool         // adds Step * loop of the capture
	Maps    []RewriteMap // the first matching one applies; other values stay
	Low     *Field       // second half of a 128-bit field, for Maps; nil: none
	Start   uint64
	Step    uint64 // two's complement if negative
}

func (r Rewrite) native() native.RewriteRule {
	out := native.RewriteRule{Field: r.Field, Start: r.Start, Step: r.Step, Maps: r.Maps, Low: r.Low, Kind: native.RewriteByMap}
	if r.Place != nil {
		out.Field, out.Place = r.Place.Field, r.Place.code
	}
	switch {
	case r.PerLoop:
		out.Kind = native.RewriteByLoop
	case r.Set:
		out.Kind = native.RewriteSet
	}
	return out
}

// Rewrite creates a stage that rewrites fields of packets in place, in order. Its pipe must be the only reader of its queue's packets.
func (s *Session) Rewrite(name string, rules []Rewrite, csum Csum) (*Stage, error) {
	list := make([]native.RewriteRule, len(rules))
	for i, r := range rules {
		list[i] = r.native()
	}
	st, err := s.stage(name, KindRewrite, "", func(n string) (native.Stage, error) { return s.native.AddRewrite(n, list, csum) })
	if err == nil {
		st.loops = slices.ContainsFunc(rules, func(r Rewrite) bool { return r.PerLoop })
	}
	return st, err
}

// loopsReach rejects a stage that uses loops of captures after one that creates new packets, which have none.
func loopsReach(stages []*Stage) error {
	maker := ""
	for _, st := range stages {
		if st.loops && maker != "" {
			return invalid("stage %s: per_loop is for what a capture brings, and stage %s makes packets of its own, which have no loops: "+
				"hint: rewrite before it", st.name, maker)
		}
		if st.region != "" {
			maker = st.name
		}
	}
	return nil
}
