package summary

import (
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// distributions prints, in the full form, burst sizes, handler durations, writer waits, and counts per flow.
func (s *Session) distributions(b *strings.Builder, st Style) {
	if !st.Full {
		return
	}
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		for _, h := range l.Histograms {
			histogram(b, l, h)
		}
		for _, f := range l.Flows {
			fmt.Fprintf(b, "  %s of %s: %s, %s\n", flowTitle(f), l.Title(), counted(f.Packets, "packet"), size(f.Bytes))
		}
		for _, p := range l.Peers {
			fmt.Fprintf(b, "  from %s to %s: %s, %s\n", p.Name, l.Title(), counted(p.Packets, "packet"), size(p.Bytes))
		}
	}
}

// histogram prints a line for a histogram with a title and nonzero counts.
func histogram(b *strings.Builder, l *stats.Line, h *stats.Histogram) {
	if h.Title == "" || h.N() == 0 {
		return
	}
	what := fmt.Sprintf(h.Title, l.Title())
	if h.Unit == "ns" {
		fmt.Fprintf(b, "  %s, %s: %s\n", what, count(h.N()), spread(h))
		return
	}
	fmt.Fprintf(b, "  %s: at most %s (50 %%), %s (99 %%), %s (all)\n", what, count(h.At(0.5)), count(h.At(0.99)),
		counted(h.At(1), strings.TrimSuffix(h.Unit, "s")))
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
