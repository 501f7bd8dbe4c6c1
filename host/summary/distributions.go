package summary

import (
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// distributions says, in the full form, how large bursts were, how long handlers took and writers waited, and what came
// of each flow.
func (s *Session) distributions(b *strings.Builder, st Style) {
	if !st.Full {
		return
	}
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if h := l.BurstSize; h != nil {
			fmt.Fprintf(b, "  bursts of %s: at most %s (50 %%), %s (99 %%), %s (all)\n", l.Title(), count(h.Spread.At(0.5)),
				count(h.Spread.At(0.99)), counted(h.Spread.At(1), "packet"))
		}
		waits(b, "calls of "+l.Title(), l.HandlerTime)
		waits(b, "waits of "+l.Title()+" for the disk", l.WriteStall)
		if l.Completion != nil && l.Completion.Spread != nil {
			waits(b, "batches of "+l.Title()+" from their first packet on", l.Completion)
		}
		for _, f := range l.Flows {
			fmt.Fprintf(b, "  %s of %s: %s, %s\n", flowTitle(f), l.Title(), counted(f.Packets, "packet"), size(f.Bytes))
		}
		for _, p := range l.Peers {
			fmt.Fprintf(b, "  from %s to %s: %s, %s\n", p.Name, l.Title(), counted(p.Packets, "packet"), size(p.Bytes))
		}
	}
}

func waits(b *strings.Builder, what string, h *stats.Histogram) {
	if h != nil {
		fmt.Fprintf(b, "  %s, %s: %s\n", what, count(h.Spread.N()), spread(h.Spread))
	}
}

func flowTitle(f stats.Flow) string {
	switch {
	case f.ID == 0:
		return "flows without a counter"
	case f.Name == "":
		return fmt.Sprintf("flow %d, deleted,", f.ID)
	}
	return fmt.Sprintf("flow %s (%d)", f.Name, f.ID)
}
