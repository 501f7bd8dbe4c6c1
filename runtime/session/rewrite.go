package session

import (
	"slices"

	"github.com/daqiri/daqiri-run/native"
)

// KindRewrite is the kind of a stage that rewrites fields of packets.
const KindRewrite = "rewrite"

// CsumCompute has a rewrite compute checksums anew; CsumUpdate and CsumKeep are the other ways.
const CsumCompute = native.CsumCompute

// RewriteMap is for values v with v & Mask == From: the bits of Mask become To; likewise of a rule's Low.
type RewriteMap = native.RewriteMap

// Rewrite says what becomes of a field of every packet; exactly one of Set, PerLoop and Maps is used.
type Rewrite struct {
	Field   Field
	Place   *Place       // of a field that lies elsewhere in each packet, instead of Field
	Set     bool         // to Start + Step * number of the packet among all that the stage has seen
	PerLoop bool         // Step * loop of the capture more than it has
	Maps    []RewriteMap // the first one that is for its value; other values stay
	Low     *Field       // the second half of a field of 128 bits, for Maps; nil: none
	Start   uint64
	Step    uint64 // two's complement where it goes down
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

// Rewrite makes a stage that rewrites fields of packets where they lie, in order. Its pipe has the packets of its queue
// alone.
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

// loopsReach refuses a stage that wants loops behind one that makes packets of its own, which have none.
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
