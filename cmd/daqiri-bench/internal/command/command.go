// Package command is the command line of daqiri-bench.
package command

import (
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/crashreport"
)

// Main runs the command line of g and returns the exit code.
func Main(g *state.Global) int {
	return exit.Main(g.Stderr, func() (string, error) {
		crashreport.Prepare()
		root := newRoot(g)
		root.SetArgs(g.Args[min(1, len(g.Args)):])
		return "daqiri-run bench", root.Execute()
	})
}
