package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

// newBench returns the command that hands the process over to daqiri-bench, the program that measures what this host can do.
func newBench(g *state.Global) *cobra.Command {
	return &cobra.Command{
		Use:   "bench [CASE...]",
		Short: "measure what this host can do",
		Long: `bench measures cases, without arguments all of them. 'daqiri-run bench --help' lists them, and prints the flags --seconds, --workload
and --json. It is a program of its own, daqiri-bench, which lies beside daqiri-run.`,

		DisableFlagParsing: true,
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			return completeBench(g, args, word)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			path := benchProgram(g)
			err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
			if errors.Is(err, os.ErrNotExist) {
				err = errors.New("there is no such program; hint: 'make build' builds both, packages contain both")
			}
			return exit.Fail(exit.Device, fmt.Errorf("cannot start %s: %w", path, err))
		},
	}
}

// benchProgram returns the path of daqiri-bench.
func benchProgram(g *state.Global) string {
	return filepath.Join(filepath.Dir(g.Executable), "daqiri-bench")
}

// completeBench asks daqiri-bench for completions, as a shell would.
func completeBench(g *state.Global, args []string, word string) ([]string, cobra.ShellCompDirective) {
	out, err := exec.Command(benchProgram(g), append(append([]string{cobra.ShellCompRequestCmd}, args...), word)...).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return lines[:len(lines)-1], cobra.ShellCompDirectiveNoFileComp // the last line is the directive
}
