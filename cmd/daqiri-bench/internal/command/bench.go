package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/bench"
	"github.com/daqiri/daqiri-run/host/exit"
	"github.com/daqiri/daqiri-run/host/state"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	seconds  float64
	workload string
	json     bool
}

// newRoot returns the command that measures what this host can do.
func newRoot(g *state.Global) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "daqiri-run bench [CASE...]",
		Short: "measure what this host can do",
		Long:  benchHelp(),

		SilenceErrors: true, SilenceUsage: true,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: benchCases,
		RunE:              func(_ *cobra.Command, args []string) error { return runBench(g, &f, args) },
	}
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.SetOut(g.Stdout)
	cmd.SetErr(g.Stderr)
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Float64Var(&f.seconds, "seconds", 0, "length of each case (default: as long as it needs for steady figures)")
	fs.StringVar(&f.workload, "workload", "", "what gpu_pipeline does with a block: "+strings.Join(bench.Workloads(), ", ")+" (default: it adds up its samples)")
	fs.BoolVar(&f.json, "json", false, "print one JSON document at the end")
	cmd.AddCommand(newPeer(g))
	return cmd
}

// benchCases completes names of cases.
func benchCases(*cobra.Command, []string, string) (names []string, then cobra.ShellCompDirective) {
	for _, c := range bench.Cases {
		names = append(names, cobra.CompletionWithDesc(c.Name, c.About))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func benchHelp() string {
	var b strings.Builder
	b.WriteString(`bench measures cases, without arguments all of them. Ours and a peer, an external program or a plain C loop,
run in turn: the figures are medians of five pairs. A peer that isn't installed is left out; a case that this
host has no rights or room for is skipped. Files are written below TMPDIR and deleted at once.

`)
	for _, c := range bench.Cases {
		fmt.Fprintf(&b, "  %-16s %s\n", c.Name, c.About)
	}
	return strings.TrimSpace(b.String())
}

func runBench(g *state.Global, f *benchFlags, cases []string) error {
	if f.seconds < 0 {
		return exit.Fail(exit.Usage, fmt.Errorf("--seconds %g: a case needs some time", f.seconds))
	}
	if f.workload != "" && !slices.Contains(bench.Workloads(), f.workload) {
		return exit.Fail(exit.Usage, fmt.Errorf("--workload %s: it is none of %s", f.workload, strings.Join(bench.Workloads(), ", ")))
	}
	if f.workload != "" && len(cases) > 0 && !slices.Contains(cases, "gpu_pipeline") {
		return exit.Fail(exit.Usage, fmt.Errorf("--workload %s: it is of the case gpu_pipeline, which is not measured", f.workload))
	}
	dir := g.Env["TMPDIR"]
	if dir == "" {
		dir = os.TempDir()
	}
	measured, version, err := program(g)
	if err != nil {
		return exit.Fail(exit.Device, err)
	}
	opts := bench.Options{Exe: measured, Peer: g.Executable, SearchPath: g.Env["PATH"], S3Server: g.Env["VERSITYGW"], TempDir: dir, Version: version,
		Cases: cases, Seconds: f.seconds, Workload: f.workload, Env: ownEnv(g)}
	var lost error // the output's
	if !f.json {
		show := func(text string) { _, err := io.WriteString(g.Stdout, text); lost = errors.Join(lost, err) }
		opts.Begin = func(h bench.Host) { show(h.Heading()) }
		opts.Done = func(r bench.Result) { show(r.Text()) }
	}
	ctx, release := exit.Context(g)
	defer release()
	report, err := bench.Run(ctx, opts)
	return concludeBench(g, f, report, errors.Join(err, lost))
}

// program returns the path of the daqiri-run that lies beside this program, and its version.
func program(g *state.Global) (path, version string, err error) {
	path = filepath.Join(filepath.Dir(g.Executable), "daqiri-run")
	text, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("cannot start %s, which is to be measured: %w; hint: daqiri-bench and daqiri-run lie in one folder", path, err)
	}
	version, _, _ = strings.Cut(strings.TrimPrefix(string(text), "daqiri-run "), "\n")
	return path, version, nil
}

// ownEnv is the environment's part that is this program's own: libraries that the engine opens, say.
func ownEnv(g *state.Global) []string {
	var own []string
	for name, value := range g.Env {
		if strings.HasPrefix(name, "DAQIRI_") {
			own = append(own, name+"="+value)
		}
	}
	return own
}

// concludeBench prints the report where it has not been, and decides on the exit code.
func concludeBench(g *state.Global, f *benchFlags, report *bench.Report, err error) error {
	var unknown *bench.UnknownCaseError
	var by *exit.Signalled
	switch {
	case errors.As(err, &unknown):
		return exit.Fail(exit.Usage, err)
	case errors.As(err, &by):
		return exit.Fail(by.Code(), by)
	case err != nil:
		return exit.Fail(exit.Storage, err)
	}
	if f.json {
		data, err := report.JSON()
		if err == nil {
			_, err = g.Stdout.Write(data)
		}
		if err != nil {
			return exit.Fail(exit.Storage, err)
		}
	}
	if report.Failed() {
		return exit.Ended(exit.Tests)
	}
	return nil
}
