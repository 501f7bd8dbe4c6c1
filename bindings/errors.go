package bindings

import (
	"fmt"
)

// Exit is the cancellation cause of a process's tasks after os.exit.
type Exit struct{ Code int }

// Error returns a text with the exit code.
func (e *Exit) Error() string { return fmt.Sprintf("the script asked to exit with code %d", e.Code) }

// OpenError reports a valid configuration that can't be opened or started on this machine.
type OpenError struct{ Err error }

// Error returns the text of the underlying error.
func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns the cause of the failed open.
func (e *OpenError) Unwrap() error { return e.Err }

// ArgsError reports command-line arguments of the script that daqiri.args rejects: a user error, not a script error.
type ArgsError struct{ Err error }

// Error returns the text of the rejection.
func (e *ArgsError) Error() string { return e.Err.Error() }

// Unwrap returns the rejection.
func (e *ArgsError) Unwrap() error { return e.Err }
