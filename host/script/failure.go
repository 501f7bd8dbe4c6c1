package script

import (
	"context"
	"errors"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/daqiri/daqiri-run/bindings"
	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// Cause classifies a failure.
type Cause int

// Causes, in ascending severity.
const (
	CauseScript Cause = iota + 1
	CauseUsage
	CauseStorage
	CauseDevice
	CauseConfig
	CauseInternal
)

// Failure is an error that ended a task: its cause and the text to show.
type Failure struct {
	Cause Cause
	Text  string
	Shown bool // Text has been written to Options.Stderr
}

// atFault prefixes errors that no script should be able to cause.
const atFault = "internal error (bug in daqiri-run), please report: "

// ErrCancelled cancels tasks that do not return after a stop.
var ErrCancelled = errors.New("the script did not come back after the stop")

// judge converts the error that ended t's chunk to a Failure. It returns nil if the error only reports a stop: by os.exit, a signal, or a stop
// during a waiting call.
func judge(L *lua.LState, ctx context.Context, err error) *Failure {
	if err == nil || ctx.Err() != nil || stops(err) {
		return nil
	}
	return newFailure(L, err)
}

// stops reports whether err results from a stop.
func stops(err error) bool {
	var exit *bindings.Exit
	err = below(err)
	return errors.Is(err, task.ErrStopped) || errors.Is(err, ErrCancelled) || errors.As(err, &exit)
}

// below returns the Go error wrapped in a Lua error, or err itself.
func below(err error) error {
	var raised *lua.ApiError
	if errors.As(err, &raised) && raised.Cause != nil {
		return raised.Cause
	}
	return err
}

func newFailure(L *lua.LState, err error) *Failure {
	f := &Failure{Cause: CauseScript, Text: Trace(L, err)}
	var raised *lua.ApiError
	var faults *spec.Errors
	var device *bindings.OpenError
	var failed *session.DeviceError
	var storage *session.StorageError
	var args *bindings.ArgsError
	switch cause := below(err); {
	case errors.As(err, &raised) && raised.Type == lua.ApiErrorPanic:
		f.Cause = CauseInternal
		f.Text = atFault + f.Text
	case errors.As(cause, &faults) || strings.HasPrefix(cause.Error(), "configuration"):
		f.Cause = CauseConfig
	case errors.As(cause, &args):
		f.Cause, f.Text = CauseUsage, args.Error() // without the position in the script, which does not help the user
	case errors.As(cause, &storage):
		f.Cause, f.Text = CauseStorage, metHere(L, err)
	case errors.As(cause, &device) || errors.As(cause, &failed):
		f.Cause, f.Text = CauseDevice, metHere(L, err)
	}
	return f
}

// metHere formats an error not caused by the script: with its position, without a stack.
func metHere(L *lua.LState, err error) string {
	text, _, _ := strings.Cut(Trace(L, err), "\nstack traceback:\n")
	return text
}
