package golden

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

const (
	// maxDiffInput is the maximum number of lines aligned for a diff, whose cost may be quadratic.
	maxDiffInput = 20000
	// maxDiffOutput is the maximum number of diff lines shown.
	maxDiffOutput = 200
)

// compareStdout returns a unified diff, or "" if each line of want equals, or as a pattern matches, the corresponding line of got. file is the
// name in the diff and in errors of patterns.
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

// compilePatterns returns the regexp of each golden line that contains {{...}}; nil for other lines.
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

// patternOf returns a regexp for the whole line, in which the parts between double braces are regexps and the others literal. Braces at the end
// of a part belong to it: {{[0-9]{3}}} is [0-9]{3}.
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

// adoptMatches returns golden with each pattern replaced by the line of actual that it matches, preferably the line at the same distance from the
// last match. A pattern without match is kept.
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

// placeOf returns the index of a line that re matches: likely, unless it is before from, else the first match from there; len(actual) if there is
// none.
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

// splitAfter splits text into lines including their newlines.
func splitAfter(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// unified formats the difference of two texts.
func unified(wantName, gotName string, want, got []string) string {
	if len(want)+len(got) > maxDiffInput {
		return firstDifference(wantName, gotName, want, got)
	}
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // writes to memory: can't fail
		A: closeLast(want), B: closeLast(got), FromFile: wantName, ToFile: gotName, Context: 3})
	shown := splitAfter(text)
	if len(shown) > maxDiffOutput {
		more := len(shown) - maxDiffOutput
		shown = append(shown[:maxDiffOutput], fmt.Sprintf("… %d more lines\n", more))
	}
	return strings.Join(shown, "")
}

// closeLast marks a missing newline at the end.
func closeLast(text []string) []string {
	n := len(text)
	if n == 0 || strings.HasSuffix(text[n-1], "\n") {
		return text
	}
	return append(append([]string(nil), text[:n-1]...), text[n-1]+"\n\\ no newline at the end\n")
}

// firstDifference shows the first difference of texts too long for a diff.
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

// indent prefixes each line of text and terminates the last one.
func indent(text, prefix string) string {
	var b strings.Builder
	for _, line := range lines(text) {
		b.WriteString(prefix + line + "\n")
	}
	return b.String()
}
