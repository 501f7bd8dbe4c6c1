package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// demands is what a run has to show beside the absence of failures: a filter that matches nothing, a package that is
// gone and a tool that is missing look like success otherwise.
type demands struct {
	floor int    // of passes
	skips []skip // those that may be; nil: any
}

// A skip is a test, or a group of them, that may skip for a reason.
type skip struct{ test, reason *regexp.Regexp }

// readSkips reads a list of lines "TEST: REASON", both regular expressions of which the whole name and a part of the
// reason have to match. A # begins a comment: why the skip is right.
func readSkips(name string) ([]skip, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	list := []skip{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) == "" {
			continue
		}
		test, reason, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			return nil, fmt.Errorf("%s:%d: no \"TEST: REASON\"", name, n)
		}
		s := skip{}
		if s.test, err = regexp.Compile("^(?:" + test + ")$"); err == nil {
			s.reason, err = regexp.Compile(reason)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// check says what the run falls short of.
func (d demands) check(p *reporter) error {
	var faults []error
	switch {
	case p.counts.passed == 0:
		faults = append(faults, errors.New("no test passed: does the filter, or the package, match any?"))
	case p.counts.passed < d.floor:
		faults = append(faults, fmt.Errorf("%d tests passed, and at least %d have to: what became of the others?", p.counts.passed, d.floor))
	}
	for _, reason := range p.reasons() {
		for _, test := range p.skips[reason] {
			if d.skips != nil && !slices.ContainsFunc(d.skips, func(s skip) bool { return s.test.MatchString(test) && s.reason.MatchString(reason) }) {
				faults = append(faults, fmt.Errorf("%s skipped, which the list of skips does not know: %s", test, reason))
			}
		}
	}
	return errors.Join(faults...)
}
