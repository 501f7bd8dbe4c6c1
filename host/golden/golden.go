// Package golden runs Lua scripts as tests: each script with golden files runs in its own process, and its output, exit code and written files
// are compared with the golden files. The file formats are described in host/README.md.
//
// It may import the standard library and go-difflib; the program under test is only known as an executable. Run starts Options.Jobs goroutines,
// all of which have ended when it returns.
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

// DefaultTimeout is the time limit of a test if Options.Timeout is zero.
const DefaultTimeout = 60 * time.Second

// ErrNoTests is wrapped by Run's error if no tests were found.
var ErrNoTests = errors.New("no tests found")

// Options specify which tests to run and how to report them.
type Options struct {
	// Exe is the program under test, called as: Exe run [--summary-json FILE] SCRIPT ARGS.
	Exe string
	// SearchPath is the PATH of the tests.
	SearchPath string
	// Paths are scripts, and folders to search for scripts with golden output. The default is the current folder.
	Paths []string
	// Update rewrites the golden files from the scripts' behavior instead of failing on a difference. A script named in Paths gets golden output
	// even if it had none.
	Update bool
	// Failing permits Update to record a failing exit code; otherwise only a script already expected to exit with it may fail.
	Failing bool
	// Jobs is the number of concurrent tests; 0 means one per CPU.
	Jobs int
	// Timeout is the time limit of one test; 0 means DefaultTimeout.
	Timeout time.Duration
	// Filter selects tests by name; nil selects all.
	Filter *regexp.Regexp
	// JUnit is the file of a JUnit XML report; "" for none.
	JUnit string
	// TAP selects TAP version 13 instead of the text report on Stdout.
	TAP bool
	// Stdout receives the report.
	Stdout io.Writer
	// Color permits colors in the text report.
	Color bool
}

// Status is the outcome of a test.
type Status int

// Outcomes of a test.
const (
	Passed Status = iota
	Failed
	Skipped
)

// Test is the result of one script.
type Test struct {
	// Name is the script's path as found from Options.Paths.
	Name   string
	Status Status
	// Reason is one line: the cause of a failure or skip, or that golden files were rewritten.
	Reason string
	// Detail has the differences, in several lines; empty unless the test failed.
	Detail string
	// Stderr is the error output of the script.
	Stderr   string
	Duration time.Duration
}

// Result counts tests by status and lists them sorted by name.
type Result struct {
	Passed, Failed, Skipped int
	Tests                   []Test
}

// Run runs the tests and reports them sorted by name, each as soon as all before it have ended. Failed tests are not an error. The error wraps
// ErrNoTests if there are none, and is ctx's error if ctx ends first; running tests are then killed, and tests not yet reported are omitted.
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

// inOrder runs the cases on opts.Jobs goroutines and delivers results in the order of cases. If ctx ends, the channel is closed early, after all
// goroutines have ended.
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
