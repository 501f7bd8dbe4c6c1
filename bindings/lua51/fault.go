package lua51

import (
	"errors"
	"fmt"
)

// Fault is an error or warning found in a script without running it.
type Fault struct {
	Name string // name of the script
	Line int
	Text string

	Warning bool // the script runs, but perhaps not as intended
}

// Error returns "script:line: text".
func (f Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.Name, f.Line, f.Text) }

// syntaxError returns an error at a line in the form of the parser's errors.
func syntaxError(name string, line int, format string, args ...any) error {
	return &sourceError{Fault{Name: name, Line: line, Text: fmt.Sprintf(format, args...)}}
}

// sourceError is an error that gopher-lua's parser and compiler do not detect.
type sourceError struct{ Fault }

// AsFault returns the Fault in err, if any.
func AsFault(err error) (Fault, bool) {
	var e *sourceError
	if errors.As(err, &e) {
		return e.Fault, true
	}
	return Fault{}, false
}
