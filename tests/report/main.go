// Command report runs `go test -json` with its arguments and prints what a person wants to know: one line for each
// package, the whole output of each failed test, every skip with its reason, and the counts at the end. It ends with 1
// where anything failed, and where nothing passed. With -append FILE it adds its counts to FILE as one line
// "passed failed skipped". With -floor N fewer passes than N are a failure, and with -skips FILE any skip that FILE does
// not list.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is what test2json documents.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

func main() {
	file := flag.String("append", "", "add the counts to `FILE`")
	var want demands
	flag.IntVar(&want.floor, "floor", 1, "fail where fewer tests pass")
	list := flag.String("skips", "", "fail where a test skips that `FILE` does not list")
	flag.Parse()
	err := error(nil)
	if *list != "" {
		want.skips, err = readSkips(*list)
	}
	if err == nil {
		err = run(flag.Args(), *file, want)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string, file string, want demands) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p, err := report(events, os.Stdout)
	if err == nil {
		err = want.check(p)
	}
	if file != "" {
		err = errors.Join(err, p.counts.appendTo(file))
	}
	if ended := cmd.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("go test: %w", ended)) // its own words are on stderr
	}
	return err
}

type counts struct{ passed, failed, skipped int }

func (c counts) appendTo(name string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, c.passed, c.failed, c.skipped); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// A reporter holds the output of each test until the test ends.
type reporter struct {
	w      io.Writer
	counts counts
	output map[[2]string]*strings.Builder // package and test → output so far
	failed map[string]bool                // packages with a failed test
	skips  map[string][]string            // reason → tests
}

func report(r io.Reader, w io.Writer) (*reporter, error) {
	p := &reporter{
		w: w, output: map[[2]string]*strings.Builder{}, failed: map[string]bool{}, skips: map[string][]string{},
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil || e.Action == "":
			fmt.Fprintf(w, "%s\n", bytes.TrimRight(line, "\n")) // a message of the go command itself
		default:
			p.add(e)
		}
		if err != nil {
			p.end()
			if err == io.EOF {
				err = nil
			}
			return p, err
		}
	}
}

func (p *reporter) add(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(p.w, e.Output)
	case "output":
		if p.output[key] == nil {
			p.output[key] = &strings.Builder{}
		}
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT, NAME: which test runs when
			p.output[key].WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		p.done(e, p.output[key])
		delete(p.output, key)
	}
}

func (p *reporter) done(e event, output *strings.Builder) {
	text := ""
	if output != nil {
		text = output.String()
	}
	switch {
	case e.Test == "" && e.Action == "skip": // no test files
	case e.Test == "" && e.Action == "fail":
		if !p.failed[e.Package] { // did not build, or ended outside a test
			p.counts.failed++
			fmt.Fprint(p.w, text)
		}
		p.unfinished(e.Package)
		fmt.Fprintf(p.w, "FAIL  %s  %.1f s\n", e.Package, e.Elapsed)
	case e.Test == "":
		fmt.Fprintf(p.w, "ok    %s  %.1f s\n", e.Package, e.Elapsed)
	case e.Action == "fail":
		p.counts.failed++
		p.failed[e.Package] = true
		fmt.Fprint(p.w, text)
	case e.Action == "skip":
		p.counts.skipped++
		reason := skipReason(text)
		p.skips[reason] = append(p.skips[reason], e.Test)
	default:
		p.counts.passed++
	}
}

// unfinished prints what the tests said that a crash or a timeout cut off.
func (p *reporter) unfinished(pkg string) {
	for key, output := range p.output {
		if key[0] == pkg && key[1] != "" {
			fmt.Fprint(p.w, output)
			delete(p.output, key)
		}
	}
}

// reasons are those of the skips, sorted.
func (p *reporter) reasons() []string { return slices.Sorted(maps.Keys(p.skips)) }

func (p *reporter) end() {
	for _, reason := range p.reasons() {
		tests := p.skips[reason]
		more := ""
		if len(tests) > 1 {
			more = fmt.Sprintf(" and %d more", len(tests)-1)
		}
		fmt.Fprintf(p.w, "skip  %s%s: %s\n", tests[0], more, reason)
	}
	fmt.Fprintf(p.w, "%d passed, %d failed, %d skipped\n", p.counts.passed, p.counts.failed, p.counts.skipped)
}

// skipReason is the text given to t.Skip, without the place that go test puts before it.
func skipReason(output string) string {
	var reason []string
	for line := range strings.Lines(output) {
		s := strings.TrimSpace(line)
		if s != "" && !strings.HasPrefix(s, "---") {
			reason = append(reason, s)
		}
	}
	text := strings.Join(reason, " ")
	if place, rest, ok := strings.Cut(text, ": "); ok && strings.Contains(place, ".go:") {
		text = rest
	}
	if text == "" {
		return "no reason given"
	}
	return text
}
