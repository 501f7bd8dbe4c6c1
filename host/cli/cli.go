// Package cli is the command line: one file for each command, on cobra. Main runs a command and returns its exit code; the codes are listed in
// exit.go.
//
// It may import host's other packages, bindings, runtime, stdlib, cobra and logrus. Commands get streams, arguments and environment from a
// state.Global, so that tests can run them in process. Main's goroutine belongs to the host: it handles signals and never runs Lua.
package cli

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/runtime/crashreport"
	"github.com/daqiri/daqiri-run/runtime/suggest"
)

const rootLong = `daqiri-run runs Lua scripts that drive packet pipelines: the script decides, native threads receive, transmit,
filter and write.

  daqiri-run SCRIPT [ARGS]   run a script; what follows SCRIPT is the script's, flags too
  daqiri-run                 a prompt; -i SCRIPT ARGS runs a script first and leaves its locals reachable

At the end, also after Ctrl-C, a summary on stderr accounts for every packet; stdout is the script's alone.`

// ballastBytes is the size of an allocation that is never touched, so it uses no physical memory but counts as live: a collection starts when
// garbage equals the live heap, and a script's live heap is only a few MB while small objects are allocated per burst. Without it a sixth of the
// run time was garbage collection.
const ballastBytes = 16 << 20

// Main runs the command line of g and returns the process's exit code.
func Main(g *state.Global) int {
	return exit.Main(g.Stderr, func() (string, error) {
		crashreport.Prepare()
		ballast := make([]byte, ballastBytes)
		defer runtime.KeepAlive(ballast)
		root := newRoot(g)
		root.SetArgs(longUpdate(g.Args[min(1, len(g.Args)):]))
		cmd, err := root.ExecuteC()
		return cmd.CommandPath(), err
	})
}

// longUpdate accepts -update for the command test, as in go test.
func longUpdate(args []string) []string {
	args = slices.Clone(args)
	if len(args) > 0 && args[0] == "test" {
		if i := slices.Index(args, "-update"); i > 0 {
			args[i] = "--update"
		}
	}
	return args
}

// newRoot returns the root command, which is also the run command: a word that is not a command is a script.
func newRoot(g *state.Global) *cobra.Command {
	var f runFlags
	root := &cobra.Command{
		Use:           "daqiri-run [flags] [SCRIPT [ARGS]]",
		Short:         "run Lua scripts that drive packet pipelines",
		Long:          rootLong,
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, args []string) error { return runOrPrompt(g, &f, cmd, args) },

		Version:           fullVersion(),
		ValidArgsFunction: scriptThenFlags,
	}
	f.add(root.Flags())
	root.Flags().BoolVarP(&f.interactive, "interactive", "i", false, "open a prompt on the script's state at its end: -i SCRIPT ARGS")
	root.Flags().SetInterspersed(false)
	root.SetOut(g.Stdout)
	root.SetErr(g.Stderr)
	root.SetIn(g.Stdin)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate(versionText())
	root.AddCommand(newRun(g), newCheck(g), newInspect(g), newTest(g), newBench(g), newVersion(g), newConfig(g), newDissector(g),
		newRecord(g), newLook(g), newNew(g), newDoctor(g), newAttach(g), newMan(), newSummary(g), newVerify(g), newInterfaces(g), newList(g), newInfo(g), newDoc(g))
	root.AddCommand(newTopics()...)
	root.SetHelpCommand(newHelp())
	addCompletion(root)
	return root
}

// flagError turns pflag's error into a usage error, with a suggestion for a misspelt flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := suggest.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w (did you mean --%s?)", err, near)
		}
	}
	return exit.Fail(exit.Usage, err)
}

// needs refuses a command line without arguments; what describes them.
func needs(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exit.Fail(exit.Usage, fmt.Errorf("name %s", what))
		}
		return nil
	}
}

// commandNames lists the commands suggested for a misspelt word.
func commandNames(root *cobra.Command) []string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}
