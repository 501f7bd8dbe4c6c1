package lua51

import (
	"errors"
	"fmt"
)

// Diagnostic is an error or warning found in a script without running it.
type Diagnostic struct {
	Name string // name of the script
	Line int
	Text string

	Warning bool // the script runs, but perhaps not as intended
}

// Error returns "script:line: text".
func (d Diagnostic) Error() string { return fmt.Sprintf("%s:%d: %s", d.Name, d.Line, d.Text) }

// syntaxError returns an error at a line in the form of the parser's errors.
func syntaxError(name string, line int, format string, args ...any) error {
	return &sourceError{Diagnostic{Name: name, Line: line, Text: fmt.Sprintf(format, args...)}}
}

// sourceError is an error that gopher-lua's parser and compiler do not detect.
type sourceError struct{ Diagnostic }

// AsDiagnostic returns the Diagnostic in err, if any.
func AsDiagnostic(err error) (Diagnostic, bool) {
	var e *sourceError
	if errors.As(err, &e) {
		return e.Diagnostic, true
	}
	return Diagnostic{}, false
}
