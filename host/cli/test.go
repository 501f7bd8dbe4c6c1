package cli

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/golden"
	"github.com/daqiri/daqiri-run/host/state"
)

// testFlags are the flags of test.
type testFlags struct {
	update    bool
	failing   bool
	jobs      int
	timeout   time.Duration
	filter    string
	junit     string
	overwrite bool
	tap       bool
}

// newTest returns the command "test".
func newTest(g *state.Global) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test [DIR|SCRIPT...]",
		Short: "run scripts and compare them with their golden output",
		Long: `test runs every NAME.lua that has a NAME.golden beside it, each in a process of its own, and compares what it printed,
how it exited, and what NAME.files and NAME.counters ask for. Without arguments it searches the current folder.`,
		ValidArgsFunction: filesNamed(".lua"),
		RunE:              func(_ *cobra.Command, args []string) error { return runTests(g, &f, args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.update, "update", false, "rewrite the golden files from what the scripts do")
	fs.BoolVar(&f.failing, "failing", false, "with --update: also of scripts that end with another code than 0")
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "tests at once (default: one for each CPU)")
	fs.DurationVar(&f.timeout, "timeout", golden.DefaultTimeout, "time limit of one test")
	fs.StringVar(&f.filter, "run", "", "only tests whose name matches this `REGEXP`")
	fs.StringVar(&f.junit, "junit", "", "write a JUnit report to this `FILE`")
	fs.BoolVar(&f.overwrite, "overwrite", false, "let the report replace a file that is there")
	fs.BoolVar(&f.tap, "tap", false, "report in TAP version 13")
	return cmd
}

func runTests(g *state.Global, f *testFlags, paths []string) error {
	opts := golden.Options{Exe: g.Executable, SearchPath: g.Env["PATH"], Paths: paths, Update: f.update, Failing: f.failing, Jobs: f.jobs,
		Timeout: f.timeout, JUnit: f.junit, TAP: f.tap, Stdout: g.Stdout, Color: g.ColorStdout()}
	if f.filter != "" {
		var err error
		if opts.Filter, err = regexp.Compile(f.filter); err != nil {
			return exit.Fail(exit.Usage, fmt.Errorf("--run: %w", err))
		}
	}
	if f.timeout <= 0 || f.jobs < 0 {
		return exit.Fail(exit.Usage, fmt.Errorf("--timeout %v, --jobs %d: neither may be negative, and a test needs some time", f.timeout, f.jobs))
	}
	if err := claimOutputs(f.overwrite, nil, output{"--junit", f.junit}); err != nil {
		return err
	}
	ctx, release := exit.Context(g)
	defer release()
	result, err := golden.Run(ctx, opts)
	var by *exit.Signalled
	switch {
	case errors.As(err, &by):
		return exit.Fail(by.Code(), err)
	case errors.Is(err, golden.ErrNoTests):
		return exit.Fail(exit.Usage, err)
	case err != nil:
		return exit.Fail(exit.Storage, err) // writing the report failed
	case result.Failed > 0:
		return exit.Ended(exit.Tests)
	case result.Passed == 0:
		return exit.Fail(exit.Tests, fmt.Errorf("nothing was tested: all %d tests skipped", result.Skipped))
	}
	return nil
}
