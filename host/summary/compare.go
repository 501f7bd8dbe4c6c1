package summary

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/daqiri/daqiri-run/runtime/stats"
)

// Parse decodes the JSON form of a report.
func Parse(data []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("it has schema %d, and this version reads %d", r.Schema, Schema)
	}
	for i, s := range r.Sessions {
		if s.Ledger == nil {
			return nil, fmt.Errorf("its session %d has no ledger", i+1)
		}
	}
	return r, nil
}

// Head describes the run as a whole.
func (r *Report) Head() string {
	r = visible(r)
	script := r.Script
	if script == "" {
		script = "a prompt"
	}
	text := fmt.Sprintf("%s, %s, daqiri-run %s: ", script, r.Started.Format("2006-01-02 15:04:05 UTC"), r.Version)
	if r.Cause == "" {
		return text + "running\n"
	}
	text += fmt.Sprintf("%s (exit code %d)", r.Cause, r.ExitCode)
	if r.Died {
		text += "; the process died"
	}
	return text + "\n"
}

// Compare shows two reports side by side, matching sessions by name. worse reports whether b lost more packets than a, or violated a threshold
// that a met.
func Compare(a, b *Report, st Style) (text string, worse bool) {
	a, b = visible(a), visible(b)
	var out strings.Builder
	fmt.Fprintf(&out, "A: %sB: %s", a.Head(), b.Head())
	if a.SHA256 != b.SHA256 {
		out.WriteString("the scripts differ\n")
	}
	for i := range b.Sessions {
		y := &b.Sessions[i]
		x := sessionNamed(a, y.Name, i)
		if x == nil {
			fmt.Fprintf(&out, "\n%s: in B alone\n", st.paint(bold, y.Name))
			continue
		}
		worse = x.compare(y, &out, st) || worse
	}
	for i := range a.Sessions {
		if sessionNamed(b, a.Sessions[i].Name, i) == nil {
			fmt.Fprintf(&out, "\n%s: in A alone\n", st.paint(bold, a.Sessions[i].Name))
		}
	}
	return out.String(), worse
}

// sessionNamed returns the session of that name, preferring the one at index at.
func sessionNamed(r *Report, name string, at int) *Session {
	if at < len(r.Sessions) && r.Sessions[at].Name == name {
		return &r.Sessions[at]
	}
	for i := range r.Sessions {
		if r.Sessions[i].Name == name {
			return &r.Sessions[i]
		}
	}
	return nil
}

// compare writes both runs of a session; worse reports whether the second is worse.
func (s *Session) compare(o *Session, b *strings.Builder, st Style) (worse bool) {
	fmt.Fprintf(b, "\n%s: %.4g s and %.4g s\n", st.paint(bold, o.Name), s.RunS, o.RunS)
	t := table{right: 8}
	t.row("", "in A", "in B", "pps A", "pps B", "", "lost A", "lost B", "")
	for i := range o.Ledger.Lines {
		y := &o.Ledger.Lines[i]
		x := &stats.Line{}
		for k := range s.Ledger.Lines {
			if s.Ledger.Lines[k].Title() == y.Title() {
				x = &s.Ledger.Lines[k]
			}
		}
		more := lost(y) > lost(x)
		worse = worse || more
		mark := ""
		if more {
			mark = st.paint(red, "more")
		}
		pa, pb := perSecond(x, s.RunS), perSecond(y, o.RunS)
		t.row(y.Title(), count(x.In), count(y.In), scaled(pa, ""), scaled(pb, ""), change(pa, pb), count(lost(x)), count(lost(y)), mark)
	}
	t.write(b, "  ")
	for _, text := range o.Violated {
		if !strings.Contains(strings.Join(s.Violated, "\n"), thresholdOf(text)) {
			worse = true
			fmt.Fprintf(b, "  %s in B alone: %s\n", st.paint(red, "FAIL"), text)
		}
	}
	for _, text := range s.Violated {
		if !strings.Contains(strings.Join(o.Violated, "\n"), thresholdOf(text)) {
			fmt.Fprintf(b, "  %s now: %s\n", st.paint(green, "ok  "), thresholdOf(text))
		}
	}
	fmt.Fprintf(b, "  CPU %.3g s and %.3g s, resident %s and %s\n", s.Ledger.Process.CPUSeconds, o.Ledger.Process.CPUSeconds,
		size(s.Ledger.Process.RSS), size(o.Ledger.Process.RSS))
	return worse
}

// thresholdOf returns the condition in the text of a violation.
func thresholdOf(text string) string {
	expr, _, _ := strings.Cut(text, ": ")
	return expr
}

func perSecond(l *stats.Line, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	packets, _ := moved(l)
	return float64(packets) / seconds
}

// change formats the relative change from a to b; "" below one percent.
func change(a, b float64) string {
	if a == 0 || b/a > 0.99 && b/a < 1.01 {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*(b/a-1))
}
