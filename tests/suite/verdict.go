package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/tests/levels"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// mostFlaky is how many flaky tests a run may have and still pass.
const mostFlaky = 3

// A verdict is what the events of a run add up to: of each test its last end counts.
type verdict struct {
	ends     map[testName][]string // "pass", "fail" and "skip", in order
	skips    map[testName]string   // reasons
	failures map[testName]string   // output of the first failure
	packages map[string]bool       // those that failed, even if a later run of some of their tests passed
}

type testName struct{ pkg, test string }

func (n testName) String() string { return strings.TrimPrefix(n.pkg, tree.Module+"/") + " " + n.test }

func readVerdict(name string) (*verdict, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return newVerdict(f)
}

func newVerdict(r io.Reader) (*verdict, error) {
	v := &verdict{ends: map[testName][]string{}, skips: map[testName]string{}, failures: map[testName]string{}, packages: map[string]bool{}}
	output := map[testName]*strings.Builder{}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil {
			v.add(e, output)
		}
		if err == io.EOF {
			return v, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (v *verdict) add(e event, output map[testName]*strings.Builder) {
	name := testName{e.Package, e.Test}
	switch e.Action {
	case "output":
		if output[name] == nil {
			output[name] = &strings.Builder{}
		}
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT, NAME: which test runs when
			output[name].WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		text := ""
		if b := output[name]; b != nil {
			text = b.String()
			delete(output, name)
		}
		if e.Test == "" {
			v.packages[e.Package] = v.packages[e.Package] || e.Action == "fail"
			return
		}
		v.ends[name] = append(v.ends[name], e.Action)
		if e.Action == "skip" {
			v.skips[name] = skipReason(text)
		}
		if _, known := v.failures[name]; e.Action == "fail" && !known {
			v.failures[name] = text
		}
	}
}

// counts are how many tests passed, failed and skipped at last.
func (v *verdict) counts() (passed, failed, skipped int) {
	for _, ends := range v.ends {
		switch ends[len(ends)-1] {
		case "pass":
			passed++
		case "fail":
			failed++
		case "skip":
			skipped++
		}
	}
	return passed, failed, skipped
}

// flaky are the tests that failed and then passed; of a test with subtests, the subtests.
func (v *verdict) flaky() []testName {
	var names []testName
	for name, ends := range v.ends {
		if slices.Contains(ends, "fail") && ends[len(ends)-1] == "pass" && !v.hasFailedSubtest(name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b testName) int { return strings.Compare(a.String(), b.String()) })
	return names
}

func (v *verdict) hasFailedSubtest(of testName) bool {
	for name := range v.failures {
		if name.pkg == of.pkg && strings.HasPrefix(name.test, of.test+"/") {
			return true
		}
	}
	return false
}

func (v *verdict) hasFailedTest(pkg string) bool {
	for name := range v.failures {
		if name.pkg == pkg {
			return true
		}
	}
	return false
}

// end prints the verdict and reports whether the run has passed. failed is how its go tests ended.
func (v *verdict) end(level levels.Level, failed error) error {
	flaky := v.flaky()
	reasons := v.reasons(level, flaky, failed)
	v.printSkips()
	for _, reason := range reasons {
		fmt.Println("FAIL ", reason)
	}
	if report := filepath.Join("build", string(level)+"-flaky.txt"); len(flaky) > 0 {
		if err := os.WriteFile(report, []byte(v.flakyReport(flaky)), 0o644); err != nil {
			reasons = append(reasons, err)
		}
		for _, name := range flaky {
			fmt.Println("flaky ", name)
		}
		fmt.Println("first failures of flaky tests:", report)
	} else {
		_ = os.Remove(report)
	}
	passed, bad, skipped := v.counts()
	fmt.Printf("%d passed, %d failed, %d skipped\n%d flaky\n", passed, bad, skipped, len(flaky))
	if len(reasons) > 0 {
		return exitCode(1)
	}
	return nil
}

// reasons are why a run does not pass.
func (v *verdict) reasons(level levels.Level, flaky []testName, failed error) []error {
	var reasons []error
	passed, bad, _ := v.counts()
	if failed != nil || bad > 0 {
		reasons = append(reasons, fmt.Errorf("%d tests failed, or a package did not build or end: see above", bad))
	}
	for pkg, bad := range v.packages {
		if bad && !v.hasFailedTest(pkg) { // a second run has no test to run, and passes
			reasons = append(reasons, fmt.Errorf("%s failed outside of its tests, as by a data race in a program that it started: see above", pkg))
		}
	}
	if len(flaky) > mostFlaky {
		reasons = append(reasons, fmt.Errorf("%d tests are flaky: at most %d may be", len(flaky), mostFlaky))
	}
	if passed == 0 {
		reasons = append(reasons, errors.New("no test passed"))
	}
	if os.Getenv("CI") == "" {
		return reasons
	}
	if floor := levels.Floor[level]; passed < floor {
		reasons = append(reasons, fmt.Errorf("%d tests passed, at least %d are expected: were tests removed, or did a filter leave them out?", passed, floor))
	}
	list, err := readSkips(".ci/skips")
	if err != nil {
		return append(reasons, err)
	}
	for name, reason := range v.skips {
		if v.ends[name][len(v.ends[name])-1] == "skip" && !allowed(list, name.test, reason) {
			reasons = append(reasons, fmt.Errorf("%v skipped, which .ci/skips does not allow: %s", name, reason))
		}
	}
	return reasons
}

// flakyReport has the name, the load of the machine and the output of the first failure of each test.
func (v *verdict) flakyReport(flaky []testName) string {
	var b strings.Builder
	for _, name := range flaky {
		fmt.Fprintf(&b, "== %v: %s\n%s\n", name, strings.Join(v.ends[name], ", "), v.failures[name])
	}
	return b.String()
}

// printSkips prints a line for each reason.
func (v *verdict) printSkips() {
	byReason := map[string][]string{}
	for name, reason := range v.skips {
		byReason[reason] = append(byReason[reason], name.test)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		tests, more := byReason[reason], ""
		if len(tests) > 1 {
			more = fmt.Sprintf(" and %d more", len(tests)-1)
		}
		fmt.Printf("skip  %s%s: %s\n", slices.Min(tests), more, reason)
	}
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
