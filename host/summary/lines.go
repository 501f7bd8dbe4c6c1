package summary

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session/words"
	"github.com/daqiri/daqiri-run/runtime/stats"
)

// ledger prints the table of lines.
func (s *Session) ledger(b *strings.Builder, st Style) {
	head := []string{"", "in", "out", "held", "dropped"}
	if st.Full {
		head = append(head, "bytes in", "bytes out", "bursts")
	}
	t := table{right: len(head)}
	t.row(append(head, "")...)
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		row := []string{l.Title(), count(l.In), count(l.Out), count(l.Held), count(l.Dropped.Sum())}
		if st.Full {
			row = append(row, count(l.InBytes), count(l.OutBytes), count(l.Bursts))
		}
		t.row(append(row, rate(l, s.RunS))...)
	}
	t.write(b, "  ")
}

// rate formats a queue's rate and, if a pace was set, the configured rate.
func rate(l *stats.Line, runS float64) string {
	packets, bytes := moved(l)
	if l.Kind != stats.Rx && l.Kind != stats.Tx || packets == 0 || runS <= 0 {
		return ""
	}
	text := scaled(8*float64(bytes)/runS, "bit/s") + ", " + scaled(float64(packets)/runS, "pps")
	switch {
	case l.PaceBPS > 0:
		text += " of " + scaled(l.PaceBPS, "bit/s") + " asked for"
	case l.PacePPS > 0:
		text += " of " + scaled(l.PacePPS, "pps") + " asked for"
	case l.PaceSpeed == 1:
		text += ", the gaps of its packets asked for"
	case l.PaceSpeed > 0:
		text += fmt.Sprintf(", the gaps of its packets asked for, %.6g times as fast", l.PaceSpeed)
	}
	return text
}

// memory prints the operations of kernels and connections on peers' memory, and of kernels on their own. No column counts them, as they are not
// packets of a queue.
func (s *Session) memory(b *strings.Builder) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if n := l.Extra.Get("one_sided"); n > 0 {
			fmt.Fprintf(b, "  %s did %s on the memory of peers: %s\n", l.Title(), counted(n, "operation"), size(l.Extra.Get("one_sided_bytes")))
		}
		if n := l.Extra.Get("copies"); n > 0 {
			fmt.Fprintf(b, "  %s copied within its own memory %s times: %s\n", l.Title(), count(n), size(l.Extra.Get("copied_bytes")))
		}
	}
}

// shares prints what readers of shared streams got.
func (s *Session) shares(b *strings.Builder) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if n := l.Extra.Get("readers"); n > 0 {
			fmt.Fprintf(b, "  %s lent %s to %s and %s were missed\n", l.Title(), counted(l.Extra.Get("lent"), "block"), counted(n, "reader"), count(l.Extra.Get("missed")))
		}
	}
}

// moved returns the packets and bytes that a queue received or sent.
func moved(l *stats.Line) (packets, bytes uint64) {
	if l.Kind == stats.Tx {
		return l.Out, l.OutBytes
	}
	return l.In, l.InBytes
}

// lost returns the packets dropped by a line unintentionally.
func lost(l *stats.Line) uint64 {
	n := uint64(0)
	for _, reason := range l.Dropped {
		if !words.ReasonNamed(reason.Name).Wanted {
			n += reason.N
		}
	}
	return n
}

// drops lists every drop reason with its remedy.
func (s *Session) drops(b *strings.Builder, st Style) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		for _, reason := range l.Dropped {
			if reason.N == 0 {
				continue
			}
			row := words.ReasonNamed(reason.Name)
			text := l.Title() + "." + reason.Name
			if !row.Wanted {
				text = st.paint(red, text)
			}
			fmt.Fprintf(b, "  dropped %s: %s (%s of in)", text, count(reason.N), share(reason.N, l.In))
			if row.Text != "" {
				fmt.Fprintf(b, ": %s", row.Text)
			}
			b.WriteByte('\n')
		}
	}
}

// timings reports how accurately queues kept their pace and send times.
func (s *Session) timings(b *strings.Builder, st Style) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if l.Timing == nil {
			continue
		}
		if g := l.Histograms.Get("gap_error"); g.N() > 0 {
			fmt.Fprintf(b, "  pace of %s: off by %.2g %%; gaps off by %s\n", l.Title(), 100*math.Abs(1-l.Achieved()), spread(g))
			decades(b, st, g)
		}
		if e := l.Histograms.Get("time_error"); e.N() > 0 {
			fmt.Fprintf(b, "  send times of %s: %s late, packets off by %s\n", l.Title(), count(l.Extra.Get("late")), spread(e))
			decades(b, st, e)
		}
	}
}

// spread formats a histogram in a few figures.
func spread(s *stats.Histogram) string {
	at := func(share float64) string { return span(time.Duration(s.At(share))) }
	return fmt.Sprintf("at most %s (50 %%), %s (99 %%), %s (all)", at(0.5), at(0.99), at(1))
}

// decades prints the histogram by powers of ten, up to its maximum.
func decades(b *strings.Builder, st Style, s *stats.Histogram) {
	if !st.Full {
		return
	}
	b.WriteString("    within")
	for ns := uint64(100); ; ns *= 10 {
		fmt.Fprintf(b, " %s: %s", span(time.Duration(ns)), share(s.Within(ns), s.N()))
		if s.At(1) <= ns {
			break
		}
		b.WriteByte(',')
	}
	b.WriteByte('\n')
}

// figures lists the remaining counters.
func (s *Session) figures(b *strings.Builder) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		for _, extra := range l.Extra {
			if extra.N > 0 {
				fmt.Fprintf(b, "  %s.%s: %s\n", l.Title(), extra.Name, count(extra.N))
			}
		}
	}
}

// writers lists the files and their content.
func (s *Session) writers(b *strings.Builder) {
	for i := range s.Ledger.Lines {
		l := &s.Ledger.Lines[i]
		if l.Kind == stats.Writer && l.Store {
			fmt.Fprintf(b, "  %s uploaded %s, %s, in %s; %s\n", l.Title(), counted(l.Out, "packet"), size(l.OutBytes), counted(l.Extra.Get("objects"), "object"),
				counted(l.Extra.Get("retries"), "request")+" made again")
		} else if l.Kind == stats.Writer {
			fmt.Fprintf(b, "  %s wrote %s, %s, into %s\n", l.Title(), counted(l.Out, "packet"), size(l.Extra.Get("file_bytes")),
				counted(l.Extra.Get("files"), "file"))
		}
	}
	const most = 10
	for i, file := range s.Files {
		if i == most {
			fmt.Fprintf(b, "  and %s more\n", counted(uint64(len(s.Files)-most), "file"))
			break
		}
		what := "file"
		if strings.Contains(file, "://") {
			what = "objects"
		}
		fmt.Fprintf(b, "  %s %s\n", what, file)
	}
	if s.Error != "" {
		fmt.Fprintf(b, "  error: %s\n", strings.ReplaceAll(s.Error, "\n", "\n         "))
	}
}
