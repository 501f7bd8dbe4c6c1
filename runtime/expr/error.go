package expr

import (
	"fmt"
	"strings"
)

// Pos is a place in the text: line and column, both from 1, columns in characters.
type Pos struct {
	Line, Col int
}

// Error is what is wrong with an expression, and where.
type Error struct {
	Pos
	Msg string
}

func (e *Error) Error() string {
	return fmt.Sprintf("expression:%d:%d: %s", e.Line, e.Col, e.Msg)
}

func errorAt(p Pos, format string, args ...any) *Error {
	return &Error{p, fmt.Sprintf(format, args...)}
}

func unknownName(p Pos, name string, known []string) *Error {
	return errorAt(p, "unknown name '%s'%s", name, suggestion(name, known))
}

// suggestion names the known word nearest to a misspelt one, or is empty when none is near.
func suggestion(word string, known []string) string {
	best, bestDist := "", min(len(word), max(1, len(word)/3)+1)
	for _, k := range known {
		if d := nearness(word, k); d < bestDist {
			best, bestDist = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean '%s'?)", best)
}

// nearness is the distance of two words, little where one begins with the other.
func nearness(a, b string) int {
	if min(len(a), len(b)) >= 2 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
		return 1
	}
	return distance(a, b)
}

// distance is the number of letters to add, drop, change, or swap with their neighbour that lead
// from a to b.
func distance(a, b string) int {
	prev2, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
