// Package golden runs Lua scripts as tests: each script that has golden output beside it runs in a process of its
// own, and what it printed, how it exited and which files it wrote are compared with the golden files. The file
// formats stand in host/README.md.
//
// It may import the standard library and go-difflib; it knows the program under test only as an executable. Run
// starts Options.Jobs goroutines and has ended them all when it returns.
package golden

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"sync"
	"time"
)

// DefaultTimeout is the time that a test gets when Options.Timeout is zero.
const DefaultTimeout = 60 * time.Second

// ErrNoTests is what Run's error wraps when there was nothing to run.
var ErrNoTests = errors.New("no tests found")

// Options says what to run and where to report it.
type Options struct {
	// Exe is the program under test; it is called as: Exe run [--summary-json FILE] SCRIPT ARGS.
	Exe string
	// SearchPath is the PATH that the tests see.
	SearchPath string
	// Paths are folders, searched for scripts with golden output, and single scripts. None means the current folder.
	Paths []string
	// Update rewrites the golden files from what the scripts do instead of failing on a difference. A script that
	// Paths names itself gets golden output even if it had none.
	Update bool
	// Failing lets Update write down that a script fails; else only one that is known to end with that code may.
	Failing bool
	// Jobs is how many tests run at once; 0 means one for each CPU.
	Jobs int
	// Timeout is the time limit of one test; 0 means DefaultTimeout.
	Timeout time.Duration
	// Filter keeps the tests whose name matches; nil keeps all.
	Filter *regexp.Regexp
	// JUnit names a file to write a JUnit XML report to.
	JUnit string
	// TAP writes TAP version 13 to Stdout instead of the report for people.
	TAP bool
	// Stdout takes the report.
	Stdout io.Writer
	// Color allows colour in the report for people.
	Color bool
}

// Status is how a test ended.
type Status int

// The ways in which a test ends.
const (
	Passed Status = iota
	Failed
	Skipped
)

// Test is the result of one script.
type Test struct {
	// Name is the script's path as reached from Options.Paths.
	Name   string
	Status Status
	// Reason is one line: why it failed or was skipped, or that its golden files were rewritten.
	Reason string
	// Detail holds the differences, several lines; empty unless the test failed.
	Detail string
	// Stderr is what the script wrote there.
	Stderr   string
	Duration time.Duration
}

// Result counts the tests by status and lists them in the order of their names.
type Result struct {
	Passed, Failed, Skipped int
	Tests                   []Test
}

// Run runs the tests and reports each in the order of names as soon as it and all before it have ended. Failed
// tests are no error. The error wraps ErrNoTests when there was nothing to run, and is ctx's when that ended
// first; the tests that were running are then killed and those not yet reported are left out.
func Run(ctx context.Context, opts Options) (Result, error) {
	cases, err := find(opts)
	if err != nil {
		return Result{}, err
	}
	if opts.Jobs <= 0 {
		opts.Jobs = runtime.NumCPU()
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	var report reporter = &humanReport{w: opts.Stdout, color: opts.Color}
	if opts.TAP {
		report = &tapReport{w: opts.Stdout}
	}
	var res Result
	started := time.Now()
	report.begin(len(cases))
	for test := range inOrder(ctx, opts, cases) {
		res.add(test)
		report.test(test)
	}
	if err := context.Cause(ctx); err != nil {
		return res, fmt.Errorf("tests stopped after %d of %d: %w", len(res.Tests), len(cases), err)
	}
	report.end(res)
	if opts.JUnit != "" {
		if err := writeJUnit(opts.JUnit, res, time.Since(started)); err != nil {
			return res, err
		}
	}
	return res, nil
}

func (r *Result) add(t Test) {
	switch t.Status {
	case Passed:
		r.Passed++
	case Failed:
		r.Failed++
	case Skipped:
		r.Skipped++
	}
	r.Tests = append(r.Tests, t)
}

// inOrder runs the cases on opts.Jobs goroutines and delivers the results in the order of cases. The channel is
// closed early, with every goroutine ended, when ctx ends.
func inOrder(ctx context.Context, opts Options, cases []testCase) <-chan Test {
	out := make(chan Test)
	slots := make([]chan Test, len(cases))
	for i := range slots {
		slots[i] = make(chan Test, 1)
	}
	next := make(chan int, len(cases))
	for i := range cases {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range min(opts.Jobs, len(cases)) {
		workers.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					return
				}
				slots[i] <- runCase(ctx, opts, cases[i])
			}
		})
	}
	go func() {
		defer close(out)
		defer workers.Wait()
		for _, slot := range slots {
			select {
			case test := <-slot:
				if ctx.Err() != nil {
					return
				}
				out <- test
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
