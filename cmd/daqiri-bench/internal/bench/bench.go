// Package bench measures what this host can do, in turn with a peer, which is an external program or a plain C loop.
//
// Ours is measured as users run it: scripts/*.lua, run by daqiri-run in a process of its own. A run blocks its goroutine; when the
// context ends it kills what it started and removes namespaces and files.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/runtime/suggest"
)

// pairCount is how often ours and the peer are run in turn.
const pairCount = 5

// Options selects what to measure.
type Options struct {
	// Exe is the program that is measured, Peer this one, which runs the baseline loops, and SearchPath the PATH of other peers.
	Exe, Peer, SearchPath string
	// Env is of all programs, beside what they have anyway: what the engine opens by name.
	Env []string
	// S3Server is the program versitygw; empty: the one on SearchPath.
	S3Server string
	// TempDir is where files are written, and so the disk that the writers' cases measure.
	TempDir string
	// Version is of this program, for the report.
	Version string
	// Cases are names of cases; none: all.
	Cases []string
	// Seconds is the length of each case, 0: as long as each needs for steady figures.
	Seconds float64
	// Workload is what gpu_pipeline does with a block, one of Workloads(); empty: it adds up its samples.
	Workload string
	// Begin is called with the host before the first case, Done with the result of each case; both may be nil.
	Begin func(Host)
	Done  func(Result)
}

// bench is one run.
type bench struct {
	opts Options
	dir  string   // of the scripts
	env  []string // of programs, beside what all have
}

// errUnavailable is the end of a case that this host can't run: a missing right, program or room.
type errUnavailable struct{ why string }

func (e errUnavailable) Error() string { return e.why }

// Run measures the cases in their order. The error is of the run as a whole: an unknown case, no folder to write to, or
// the end of ctx; a case that fails has the error in its result.
func Run(ctx context.Context, opts Options) (*Report, error) {
	chosen, err := choose(opts.Cases)
	if err != nil {
		return nil, err
	}
	b := &bench{opts: opts, env: opts.Env}
	if b.dir, err = os.MkdirTemp(opts.TempDir, "daqiri-bench-"); err != nil {
		return nil, fmt.Errorf("folder for files: %w", err)
	}
	defer os.RemoveAll(b.dir)
	if err := os.CopyFS(b.dir, scripts); err != nil {
		return nil, err
	}
	report := &Report{Schema: Schema, Host: readHost(opts.Version), Cases: []Result{}}
	if opts.Begin != nil {
		opts.Begin(report.Host)
	}
	for _, c := range chosen {
		r := b.run(ctx, c)
		if ctx.Err() != nil {
			return report, context.Cause(ctx)
		}
		report.Cases = append(report.Cases, r)
		if opts.Done != nil {
			opts.Done(r)
		}
	}
	return report, nil
}

// run measures one case.
func (b *bench) run(ctx context.Context, c Case) Result {
	seconds := c.seconds
	if b.opts.Seconds > 0 {
		seconds = b.opts.Seconds
	}
	r := Result{Name: c.Name, Unit: c.unit, Better: "higher", length: time.Duration(seconds * float64(time.Second))}
	if c.lower {
		r.Better = "lower"
	}
	err := c.run(ctx, b, &r)
	var unavailable errUnavailable
	switch {
	case errors.As(err, &unavailable):
		r.Skipped = unavailable.why
	case err != nil:
		r.Error = fmt.Sprintf("case %s: %v", c.Name, err)
	}
	return r
}

// choose finds the named cases; none: all.
func choose(names []string) ([]Case, error) {
	if len(names) == 0 {
		return Cases, nil
	}
	var known []string
	for _, c := range Cases {
		known = append(known, c.Name)
	}
	var chosen []Case
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, &UnknownCaseError{Name: name, Near: suggest.Nearest(name, known)}
		}
		chosen = append(chosen, Cases[i])
	}
	return chosen, nil
}

// UnknownCaseError is a name that no case has.
type UnknownCaseError struct{ Name, Near string }

func (e *UnknownCaseError) Error() string {
	hint := "; 'daqiri-run bench --help' lists them"
	if e.Near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", e.Near)
	}
	return fmt.Sprintf("%s is not a case%s", e.Name, hint)
}

// script is the path of one of ours.
func (b *bench) script(name string) string { return filepath.Join(b.dir, "scripts", name) }
