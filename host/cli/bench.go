package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/daqiri/daqiri-run/host/bench"
	"github.com/daqiri/daqiri-run/host/state"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	seconds  float64
	workload string
	json     bool
}

// newBench makes the command that measures what this host can do.
func newBench(g *state.Global) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [CASE...]",
		Short: "measure what this host can do",
		Long:  benchHelp(),

		ValidArgsFunction: benchCases,
		RunE:              func(_ *cobra.Command, args []string) error { return runBench(g, &f, args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Float64Var(&f.seconds, "seconds", 0, "length of each case (default: as long as it needs for steady figures)")
	fs.StringVar(&f.workload, "workload", "", "what gpu_pipeline does with a block: "+strings.Join(bench.Workloads(), ", ")+" (default: it adds up its samples)")
	fs.BoolVar(&f.json, "json", false, "print one JSON document at the end")
	return cmd
}

func benchHelp() string {
	var b strings.Builder
	b.WriteString(`bench measures cases, without arguments all of them. Ours and a peer, an external program or a bare C loop,
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
		return fail(ExitUsage, fmt.Errorf("--seconds %g: a case needs some time", f.seconds))
	}
	if f.workload != "" && !slices.Contains(bench.Workloads(), f.workload) {
		return fail(ExitUsage, fmt.Errorf("--workload %s: it is none of %s", f.workload, strings.Join(bench.Workloads(), ", ")))
	}
	if f.workload != "" && len(cases) > 0 && !slices.Contains(cases, "gpu_pipeline") {
		return fail(ExitUsage, fmt.Errorf("--workload %s: it is of the case gpu_pipeline, which is not measured", f.workload))
	}
	dir := g.Env["TMPDIR"]
	if dir == "" {
		dir = os.TempDir()
	}
	opts := bench.Options{Exe: g.Executable, SearchPath: g.Env["PATH"], S3Server: g.Env["VERSITYGW"], TempDir: dir, Version: fullVersion(), Cases: cases,
		Seconds: f.seconds, Workload: f.workload, Env: ownEnv(g)}
	var lost error // the output's
	if !f.json {
		show := func(text string) { _, err := io.WriteString(g.Stdout, text); lost = errors.Join(lost, err) }
		opts.Begin = func(h bench.Host) { show(h.Heading()) }
		opts.Done = func(r bench.Result) { show(r.Text()) }
	}
	signals, release := g.Signals()
	defer release()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		if s, ok := <-signals; ok {
			cancel(&signalled{s})
		}
	}()
	report, err := bench.Run(ctx, opts)
	return concludeBench(g, f, report, errors.Join(err, lost))
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
	var by *signalled
	switch {
	case errors.As(err, &unknown):
		return fail(ExitUsage, err)
	case errors.As(err, &by):
		return fail(by.code(), by)
	case err != nil:
		return fail(ExitStorage, err)
	}
	if f.json {
		data, err := report.JSON()
		if err == nil {
			_, err = g.Stdout.Write(data)
		}
		if err != nil {
			return fail(ExitStorage, err)
		}
	}
	if report.Failed() {
		return ended(ExitTests)
	}
	return nil
}
