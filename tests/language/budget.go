package language

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A place is a top-level folder, or "root" for files in the root, and the name of a rule.
type place struct{ area, rule string }

func (p place) String() string { return p.area + " " + p.rule }

// A budget is how many findings each place may have; places that are not in it may have none.
type budget map[place]int

// budgetHead explains the budget file to its readers.
const budgetHead = `# Findings of vale that are allowed, as AREA RULE N. Numbers only go down: more findings fail the test, and so do fewer until the
# file is updated by "go test ./tests/language -update" (README.md).
`

func parseBudget(text string) (budget, error) {
	b := budget{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return nil, fmt.Errorf("budget.txt:%d: AREA RULE N expected", i+1)
		}
		p := place{words[0], words[1]}
		n, err := strconv.Atoi(words[2])
		if _, twice := b[p]; err != nil || n <= 0 || twice {
			return nil, fmt.Errorf("budget.txt:%d: a positive number expected, and each area and rule once", i+1)
		}
		b[p] = n
	}
	return b, nil
}

// String returns the text of a budget file.
func (b budget) String() string {
	text := budgetHead
	for _, p := range b.places() {
		text += fmt.Sprintf("%s %d\n", p, b[p])
	}
	return text
}

// places returns the places of a budget, sorted.
func (b budget) places() []place {
	return slices.SortedFunc(maps.Keys(b), func(p, q place) int { return strings.Compare(p.String(), q.String()) })
}

// count returns the number of findings of each place.
func count(findings []finding) budget {
	b := budget{}
	for _, f := range findings {
		b[f.place()]++
	}
	return b
}

// compare returns the places that have more findings than allowed, and those that have fewer.
func compare(allowed, found budget) (more, fewer []place) {
	all := maps.Clone(allowed)
	maps.Copy(all, found)
	for _, p := range all.places() {
		switch {
		case found[p] > allowed[p]:
			more = append(more, p)
		case found[p] < allowed[p]:
			fewer = append(fewer, p)
		}
	}
	return more, fewer
}
