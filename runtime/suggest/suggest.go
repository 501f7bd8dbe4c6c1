// Package suggest finds the most likely correction of a misspelt word. It is pure and may import the standard library.
package suggest

import "strings"

// Nearest returns the known word with the smallest edit distance to name, or "" if none is close enough. It ignores letter case and treats '-' and
// '_' as equal.
func Nearest(name string, known []string) string {
	fold := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }
	best, limit := "", min(max(1, len(name)/3), 3)+1
	if len(name) < 2 {
		limit = 1 // single letters are too close to each other
	}
	least := 2 * limit // in half edits
	for _, k := range known {
		d := 2 * editDistance(fold(name), fold(k), limit)
		switch {
		case len(name) >= 4 && strings.HasPrefix(fold(k), fold(name)):
			d = min(d, 2) // the end is missing
		case len(name) >= 5 && strings.HasPrefix(fold(k), fold(name[:len(name)-1])):
			d = min(d, 3) // another form of the word: drops, dropped
		}
		if d < least || d == least && d < 2*limit && len(k) < len(best) {
			best, least = k, d
		}
	}
	return best
}

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbors between a and b. It stops at limit, which bounds the
// cost for long texts.
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
