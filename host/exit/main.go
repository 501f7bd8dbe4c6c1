package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/daqiri/daqiri-run/host/state"
)

// Main runs a command line and returns the process's exit code. run returns the name of the command, for the hint of a usage error, and its
// error, which Main prints to stderr. A panic is an internal error.
func Main(stderr io.Writer, run func() (command string, err error)) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(stderr, "internal error (bug in daqiri-run), please report: %v\n%s", r, debug.Stack())
			code = int(Internal)
		}
	}()
	command, err := run()
	var f *Failure
	switch {
	case err == nil:
		return int(OK)
	case !errors.As(err, &f):
		f = &Failure{Code: Usage, Err: err} // from cobra: unknown command or flag, wrong number of arguments
	}
	if !f.Silent {
		fmt.Fprintf(stderr, "daqiri-run: %s\n", state.VisibleLines(f.Error()))
		if f.Code == Usage {
			fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", command)
		}
	}
	return int(f.Code)
}

// Context returns a context that a signal of g cancels, with a Signalled as its cause. The caller calls release at the end.
func Context(g *state.Global) (ctx context.Context, release func()) {
	signals, unsubscribe := g.Signals()
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		if s, ok := <-signals; ok {
			cancel(&Signalled{Signal: s})
		}
	}()
	return ctx, func() { cancel(nil); unsubscribe() }
}
