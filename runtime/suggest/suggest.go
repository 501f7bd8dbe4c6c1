// Package suggest finds the word that somebody who misspelt one probably meant. Pure; it
// may import the standard library.
package suggest

import "strings"

// Nearest returns the known word nearest to name by edit distance, or "" when none is
// near. Letter case and the choice of '-' or '_' do not count.
func Nearest(name string, known []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	best, limit := "", min(max(1, len(name)/3), 3)+1
	if len(name) < 2 {
		limit = 1 // any letter is near any other
	}
	least := 2 * limit // in halves of an edit
	for _, k := range known {
		d := 2 * editDistance(fold(name), fold(k), limit)
		switch {
		case len(name) >= 4 && strings.HasPrefix(fold(k), fold(name)):
			d = min(d, 2) // the end was left out
		case len(name) >= 5 && strings.HasPrefix(fold(k), fold(name[:len(name)-1])):
			d = min(d, 3) // or has another form: drops, dropped
		}
		if d < least || d == least && d < 2*limit && len(k) < len(best) {
			best, least = k, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours. It
// gives up at limit, so that a long text costs no more than its length.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit || len(a) > 256 {
		return limit
	}
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one, row = one, row, two
	}
	return min(one[len(b)], limit)
}
