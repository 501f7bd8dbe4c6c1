// Package command is the command line of daqiri-bench.
package command

import (
	"errors"
	"fmt"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

// Main runs the command line of g and returns the exit code.
func Main(g *state.Global) int {
	root := newRoot(g)
	root.SetArgs(g.Args[min(1, len(g.Args)):])
	err := root.Execute()
	var f *exit.Failure
	switch {
	case err == nil:
		return int(exit.OK)
	case !errors.As(err, &f):
		f = &exit.Failure{Code: exit.Usage, Err: err} // cobra's own: an unknown flag
	}
	if !f.Silent {
		fmt.Fprintf(g.Stderr, "daqiri-run: %s\n", state.VisibleLines(f.Error()))
		if f.Code == exit.Usage {
			fmt.Fprintln(g.Stderr, "Run 'daqiri-run bench --help' for usage.")
		}
	}
	return int(f.Code)
}
