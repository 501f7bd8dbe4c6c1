package expr

import (
	"fmt"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// Pos is a position in the text: line and column, both from 1, columns in characters.
type Pos struct {
	Line, Col int
}

// Error is an error in an expression and its position.
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

// suggestion returns a "did you mean" text with the nearest known word, or "" if there is none.
func suggestion(word string, known []string) string {
	best := suggest.Nearest(word, known)
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean '%s'?)", best)
}
