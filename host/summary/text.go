package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Style configures the text form of a summary.
type Style struct {
	// Full adds bytes, bursts, further counters and the notes.
	Full  bool
	Color bool
	// Cut marks an intermediate report: thresholds and balance are not evaluated.
	Cut bool
}

const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

func (st Style) paint(color, text string) string {
	if !st.Color {
		return text
	}
	return color + text + plain
}

// Text returns the text form; "" for a run without sessions.
func (r *Report) Text(st Style) string {
	if len(r.Sessions) == 0 {
		return ""
	}
	r = visible(r)
	var b strings.Builder
	if !st.Cut {
		r.thresholds(&b, st)
	}
	left := 0
	for i := range r.Sessions {
		if s := &r.Sessions[i]; i < mostSessions || st.Full || s.troubled() {
			s.text(&b, st)
		} else {
			left++
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\nand %s that lost nothing (--summary full shows all)\n", counted(uint64(left), "session"))
	}
	return b.String()
}

// mostSessions is the maximum number of sessions shown unconditionally.
const mostSessions = 10

// troubled reports whether the session has errors, violations or losses.
func (s *Session) troubled() bool {
	if s.Error != "" || len(s.Violated) > 0 || len(s.Imbalance) > 0 || len(s.Ledger.QueueErrors) > 0 {
		return true
	}
	for i := range s.Ledger.Lines {
		if lost(&s.Ledger.Lines[i]) > 0 {
			return true
		}
	}
	return false
}

// thresholds prints the thresholds first, as they decide the result of the run.
func (r *Report) thresholds(b *strings.Builder, st Style) {
	first := true
	say := func(mark, text string) {
		if first {
			fmt.Fprintf(b, "\n%s\n", st.paint(bold, "thresholds"))
			first = false
		}
		fmt.Fprintf(b, "  %s  %s\n", mark, text)
	}
	for _, s := range r.Sessions {
		for _, t := range s.Thresholds {
			if t.Passed {
				say(st.paint(green, "ok  "), t.String())
			}
		}
		for _, text := range s.Violated {
			say(st.paint(red, "FAIL"), text)
		}
	}
}

func (s *Session) text(b *strings.Builder, st Style) {
	clock := ""
	if s.Ledger.Clock == "virtual" {
		clock = " on the virtual clock"
	}
	if !s.Started {
		fmt.Fprintf(b, "\n%s: opened, never started\n", st.paint(bold, s.Name))
		return
	}
	fmt.Fprintf(b, "\n%s: ran for %s%s", st.paint(bold, s.Name), span(time.Duration(s.RunS*1e9)), clock)
	if s.Reason != "" {
		fmt.Fprintf(b, " (%s)", s.Reason)
	}
	b.WriteByte('\n')
	s.ledger(b, st)
	s.memory(b)
	s.shares(b)
	s.drops(b, st)
	s.gaps(b)
	s.sources(b, st)
	s.cuts(b)
	s.timings(b, st)
	s.distributions(b, st)
	for i := range s.Ledger.QueueErrors {
		fmt.Fprintf(b, "  fault: %s\n", s.Ledger.QueueErrors[i].String())
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ledger.Metrics)) {
		fmt.Fprintf(b, "  metric %s = %s\n", name, figure(s.Ledger.Metrics[name]))
	}
	for _, text := range s.Limits {
		fmt.Fprintf(b, "  limit: %s\n", text)
	}
	if st.Full {
		s.figures(b)
		for _, text := range s.Notes {
			fmt.Fprintf(b, "  note: %s\n", text)
		}
	}
	s.writers(b)
	s.balance(b, st)
}

// balance prints whether the ledger balances. An imbalance is a bug in daqiri-run and is highlighted.
func (s *Session) balance(b *strings.Builder, st Style) {
	if st.Cut {
		b.WriteString("  packets that were on their way are in one column or in two\n")
		return
	}
	if len(s.Imbalance) == 0 {
		b.WriteString("  every packet is accounted for: in = out + held + dropped in each line\n")
		return
	}
	fmt.Fprintf(b, "  %s\n", st.paint(red, "THE LEDGER DOES NOT ADD UP, which is a bug in daqiri-run; please report it:"))
	for _, text := range s.Imbalance {
		fmt.Fprintf(b, "    %s\n", text)
	}
}
