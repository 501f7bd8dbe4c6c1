package golden

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/host/state"
)

// reporter prints results as they arrive. Write errors are ignored, as the result does not depend on them.
type reporter interface {
	begin(total int)
	test(Test)
	end(Result)
}

const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	amber = "\x1b[33m"
	plain = "\x1b[0m"
)

// humanReport prints a line per test, and the differences of failed tests.
type humanReport struct {
	w     io.Writer
	color bool
}

func (r *humanReport) begin(int) {}

// printable returns the test with its script output escaped for a terminal and for YAML.
func (t Test) printable() Test {
	t.Name, t.Reason = state.Visible(t.Name), state.Visible(t.Reason)
	t.Detail, t.Stderr = state.VisibleLines(t.Detail), state.VisibleLines(t.Stderr)
	return t
}

func (r *humanReport) test(t Test) {
	t = t.printable()
	word, color := "ok  ", green
	switch t.Status {
	case Failed:
		word, color = "FAIL", red
	case Skipped:
		word, color = "skip", amber
	}
	reason := ""
	if t.Reason != "" {
		reason = ": " + t.Reason
	}
	fmt.Fprintf(r.w, "%s %s (%.2fs)%s\n", r.paint(word, color), t.Name, t.Duration.Seconds(), reason)
	if t.Status != Failed {
		return
	}
	for _, line := range splitAfter(t.Detail) {
		fmt.Fprint(r.w, "    ", r.paintDiff(line))
	}
	if t.Stderr != "" {
		fmt.Fprint(r.w, "    stderr:\n", indent(tail(t.Stderr, maxDiffOutput), "      "))
	}
}

func (r *humanReport) end(res Result) {
	line := summaryLine(res)
	if res.Failed > 0 {
		line = r.paint(line, red)
	}
	fmt.Fprintln(r.w, line)
}

func (r *humanReport) paint(text, color string) string {
	if !r.color {
		return text
	}
	return color + text + plain
}

func (r *humanReport) paintDiff(line string) string {
	text := strings.TrimSuffix(line, "\n")
	switch {
	case strings.HasPrefix(text, "-"):
		return r.paint(text, red) + "\n"
	case strings.HasPrefix(text, "+"):
		return r.paint(text, green) + "\n"
	}
	return text + "\n"
}

func summaryLine(res Result) string {
	line := fmt.Sprintf("%d passed, %d failed", res.Passed, res.Failed)
	if res.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", res.Skipped)
	}
	return line
}

// tail returns the last n lines of text.
func tail(text string, n int) string {
	all := lines(text)
	if len(all) <= n {
		return text
	}
	return fmt.Sprintf("… %d lines before\n%s", len(all)-n, strings.Join(all[len(all)-n:], "\n"))
}

// tapReport writes TAP version 13 (testanything.org).
type tapReport struct {
	w io.Writer
	n int
}

func (r *tapReport) begin(total int) { fmt.Fprintf(r.w, "TAP version 13\n1..%d\n", total) }

func (r *tapReport) test(t Test) {
	r.n++
	t = t.printable()
	name := strings.ReplaceAll(t.Name, "#", `\#`)
	switch t.Status {
	case Passed:
		fmt.Fprintf(r.w, "ok %d - %s\n", r.n, name)
		return
	case Skipped:
		fmt.Fprintf(r.w, "ok %d - %s # SKIP %s\n", r.n, name, t.Reason)
		return
	}
	fmt.Fprintf(r.w, "not ok %d - %s\n  ---\n", r.n, name)
	fmt.Fprintf(r.w, "  message: %q\n  duration_ms: %d\n", t.Reason, t.Duration.Round(time.Millisecond).Milliseconds())
	for _, block := range []struct{ key, text string }{{"detail", t.Detail}, {"stderr", tail(t.Stderr, maxDiffOutput)}} {
		if block.text != "" {
			fmt.Fprintf(r.w, "  %s: |2\n%s", block.key, indent(block.text, "    "))
		}
	}
	fmt.Fprint(r.w, "  ...\n")
}

func (r *tapReport) end(Result) {}
