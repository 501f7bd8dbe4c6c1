package summary

import (
	"fmt"
	"math"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// mostSources is the number of sources shown per stage, those with most losses; the full form shows all.
const mostSources = 5

// cuts prints the parts missing at the beginning or end of a stream, which do not count as losses.
func (s *Session) cuts(b *strings.Builder) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if n := l.Extra.Get("cut"); n > 0 {
			fmt.Fprintf(b, "  cut of %s: %s did not come where the stream begins or ends; it was joined and left there, so they don't count as missing\n",
				l.Title(), counted(n, "part"))
		}
	}
}

// sources prints the sources of reorder and gaps stages with losses.
func (s *Session) sources(b *strings.Builder, st Style) {
	most := mostSources
	if st.Full {
		most = math.MaxInt
	}
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		worst, lost := l.Sources.Worst(most)
		for k := range worst {
			fmt.Fprintf(b, "  source %s of %s: %s\n", worst[k].Name, l.Title(), losses(&worst[k]))
		}
		if left := lost - len(worst); left > 0 {
			fmt.Fprintf(b, "  and %s of %s that lost less (--summary full shows all)\n", counted(uint64(left), "source"), l.Title())
		}
	}
}

func losses(s *stats.Source) string {
	var parts []string
	if s.Missing > 0 {
		parts = append(parts, fmt.Sprintf("%s missing (%s of what should have come)", counted(s.Missing, "packet"),
			share(s.Missing, s.Packets+s.Missing)))
	}
	for _, x := range []struct {
		word string
		n    uint64
	}{{"late", s.Late}, {"duplicate", s.Duplicate}, {"reordered", s.Reordered}, {"dropped for other reasons", s.Dropped}} {
		if x.n > 0 {
			parts = append(parts, count(x.n)+" "+x.word)
		}
	}
	if s.Restarts > 0 {
		parts = append(parts, counted(s.Restarts, "restart"))
	}
	return strings.Join(parts, ", ")
}

// gaps prints the account of each gaps stage's numbers.
func (s *Session) gaps(b *strings.Builder) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		n := l.Extra.Get
		if n("unique") == 0 {
			continue
		}
		fmt.Fprintf(b, "  numbers of %s: %s missing (%s of what should have come)", l.Title(), counted(n("missing"), "packet"), share(n("missing"), n("expected")))
		for _, x := range []struct{ name, words string }{{"reordered", "reordered"}, {"duplicate", "duplicate"}, {"late", "late"},
			{"outliers", "with a number far from the others"}, {"unnumbered", "without a number"}, {"untracked", "of too many streams"}} {
			if n(x.name) > 0 {
				fmt.Fprintf(b, ", %s %s", count(n(x.name)), x.words)
			}
		}
		if n("restarts") > 0 {
			fmt.Fprintf(b, ", %s", counted(n("restarts"), "restart"))
		}
		b.WriteByte('\n')
	}
}
