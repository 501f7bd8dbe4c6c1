package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// A skip is a test, or a group of them, that may skip for a reason.
type skip struct{ test, reason *regexp.Regexp }

// readSkips reads a list of lines "TEST: REASON", both regular expressions: TEST matches the whole name, REASON a part of what the test
// prints. A # begins a comment: why the skip is right.
func readSkips(name string) ([]skip, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var list []skip
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

func allowed(list []skip, test, reason string) bool {
	return slices.ContainsFunc(list, func(s skip) bool { return s.test.MatchString(test) && s.reason.MatchString(reason) })
}
