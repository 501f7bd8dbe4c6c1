package exit

import (
	"cmp"
	"fmt"
	"os"
	"syscall"
)

// Failure is an error with the exit code that it causes. A silent one has already been printed.
type Failure struct {
	Code   Code
	Err    error
	Silent bool
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Fail attaches an exit code to err; nil stays nil.
func Fail(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Code: code, Err: err}
}

// Ended ends a command that has printed its own output; nil for OK.
func Ended(code Code) error {
	if code == OK {
		return nil
	}
	return &Failure{Code: code, Err: fmt.Errorf("%s", code), Silent: true}
}

// Signalled is the end by a signal.
type Signalled struct{ Signal os.Signal }

// ends are the names and exit codes of signals; any other signal is Ctrl-C.
var ends = map[os.Signal]struct {
	name string
	code Code
}{
	syscall.SIGTERM: {"SIGTERM", Terminated},
	syscall.SIGHUP:  {"SIGHUP", Hangup},
	syscall.SIGQUIT: {"SIGQUIT", Quit},
}

// Error returns the signal's usual name.
func (s *Signalled) Error() string { return cmp.Or(ends[s.Signal].name, "Ctrl-C") }

// Code returns the exit code: 128 and the signal's number.
func (s *Signalled) Code() Code { return cmp.Or(ends[s.Signal].code, Interrupted) }
