package golden

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

const (
	// maxDiffInput bounds the lines that are aligned for a diff, whose cost can grow with their square.
	maxDiffInput = 20000
	// maxDiffOutput bounds the lines of a diff that are shown.
	maxDiffOutput = 200
)

// compareStdout returns a unified diff, or "" when each line of want is equal to, or a pattern for, the line of got
// at its place. The file name stands in the diff and in the error about a pattern that doesn't compile.
func compareStdout(file, want, got string) (string, error) {
	if want == got {
		return "", nil
	}
	golden, actual := splitAfter(want), splitAfter(got)
	patterns, err := compilePatterns(file, golden)
	if err != nil {
		return "", err
	}
	golden = adoptMatches(golden, actual, patterns)
	if strings.Join(golden, "") == got {
		return "", nil
	}
	return unified(filepath.Base(file), "output", golden, actual), nil
}

// compilePatterns returns the regexp of each golden line that has {{…}} in it; other lines stay nil.
func compilePatterns(file string, golden []string) ([]*regexp.Regexp, error) {
	patterns := make([]*regexp.Regexp, len(golden))
	for i, line := range golden {
		expr, ok := patternOf(line)
		if !ok {
			continue
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		patterns[i] = re
	}
	return patterns, nil
}

// patternOf makes a regexp for the whole line of which the parts between double braces are regexps and the others
// stand for themselves. Braces at the end of a part belong to it: {{[0-9]{3}}} is [0-9]{3}.
func patternOf(line string) (expr string, ok bool) {
	var b strings.Builder
	b.WriteString(`\A`)
	for {
		before, rest, open := strings.Cut(line, "{{")
		end := strings.Index(rest, "}}")
		if !open || end < 0 {
			b.WriteString(regexp.QuoteMeta(line) + `\z`)
			return b.String(), ok
		}
		for strings.HasPrefix(rest[end+2:], "}") {
			end++
		}
		b.WriteString(regexp.QuoteMeta(before) + "(?:" + rest[:end] + ")")
		line, ok = rest[end+2:], true
	}
}

// adoptMatches returns golden with each pattern replaced by the line of actual that it matches, preferably the one
// at its place counted from the last match. A pattern that fits none stays as it is.
func adoptMatches(golden, actual []string, patterns []*regexp.Regexp) []string {
	out := append([]string(nil), golden...)
	from, shift := 0, 0
	for i, re := range patterns {
		if re == nil {
			continue
		}
		if j := placeOf(re, actual, from, i+shift); j < len(actual) {
			out[i], from, shift = actual[j], j+1, j-i
		}
	}
	return out
}

// placeOf returns the index of the line that re matches: likely, if it is not before from, else the first from there
// on; len(actual) when there is none.
func placeOf(re *regexp.Regexp, actual []string, from, likely int) int {
	if likely >= from && likely < len(actual) && re.MatchString(actual[likely]) {
		return likely
	}
	for j := from; j < len(actual); j++ {
		if re.MatchString(actual[j]) {
			return j
		}
	}
	return len(actual)
}

// splitAfter splits text into lines that keep their newline.
func splitAfter(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// unified renders the difference between two texts.
func unified(wantName, gotName string, want, got []string) string {
	if len(want)+len(got) > maxDiffInput {
		return firstDifference(wantName, gotName, want, got)
	}
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // writes to memory: no error
		A: closeLast(want), B: closeLast(got), FromFile: wantName, ToFile: gotName, Context: 3})
	shown := splitAfter(text)
	if len(shown) > maxDiffOutput {
		more := len(shown) - maxDiffOutput
		shown = append(shown[:maxDiffOutput], fmt.Sprintf("… %d more lines\n", more))
	}
	return strings.Join(shown, "")
}

// closeLast makes a missing newline at the end visible.
func closeLast(text []string) []string {
	n := len(text)
	if n == 0 || strings.HasSuffix(text[n-1], "\n") {
		return text
	}
	return append(append([]string(nil), text[:n-1]...), text[n-1]+"\n\\ no newline at the end\n")
}

// firstDifference is the diff of texts that are too long for one.
func firstDifference(wantName, gotName string, want, got []string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	line := func(text []string) string {
		if i < len(text) {
			return strings.TrimSuffix(text[i], "\n")
		}
		return "(ends here)"
	}
	return fmt.Sprintf("--- %s (%d lines)\n+++ %s (%d lines)\n@@ first difference in line %d @@\n-%s\n+%s\n",
		wantName, len(want), gotName, len(got), i+1, line(want), line(got))
}

// indent puts prefix before each line of text and ends the last one.
func indent(text, prefix string) string {
	var b strings.Builder
	for _, line := range lines(text) {
		b.WriteString(prefix + line + "\n")
	}
	return b.String()
}
