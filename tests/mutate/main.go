// Command mutate puts small faults into copies of the project, one at a time, runs the tests that should see each, and
// reports which faults nothing noticed. Its table are the files *.txt beside it. The checkout is never touched.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// The share of faults that has to be seen, in percent: by any test, and by those of the level test.
const (
	enough       = 95
	enoughByTest = 85
)

func main() {
	only := flag.String("only", "", "faults whose names match this `PATTERN`")
	jobs := flag.Int("jobs", 1, "so many faults at a time, each in a copy of its own")
	list := flag.Bool("list", false, "name the faults and end")
	again := flag.Bool("again", false, "try also what an earlier run tried in the same state of the project")
	flag.Parse()
	if err := run(*only, *jobs, *list, *again); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only string, jobs int, list, again bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	all, err := readTable("tests/mutate")
	if err != nil {
		return err
	}
	var faults []fault
	for _, f := range all {
		if !pattern.MatchString(f.name) {
			continue
		}
		faults = append(faults, f)
		if list {
			fmt.Printf("%-32s %-4s %s (%s)\n", f.name, f.level(), f.meaning, f.file)
		}
	}
	if list {
		return nil
	}
	if len(faults) == 0 {
		return errors.New("no fault of this name")
	}
	past, err := readKept()
	if err != nil {
		return err
	}
	if again {
		clear(past.past)
	}
	return tryAll(faults, max(jobs, 1), past)
}

// tryAll tries faults, so many at a time, and ends with an error where too few were seen.
func tryAll(faults []fault, jobs int, past *kept) error {
	bench, err := newBench()
	if err != nil {
		return err
	}
	defer bench.remove()
	var wg sync.WaitGroup
	next, errs := make(chan fault), make(chan error, jobs)
	results := make(chan result)
	for i := range jobs {
		wg.Go(func() { errs <- bench.work(i, next, results) })
	}
	go func() {
		defer close(next)
		for _, f := range faults {
			if r, ok := past.result(f); ok {
				results <- r
			} else {
				next <- f
			}
		}
	}()
	go func() {
		wg.Wait()
		close(results)
	}()
	sum := collect(results, len(faults), past)
	for range jobs {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, sum)
}

// collect prints results as they come, and what survived once more at the end.
func collect(results <-chan result, n int, past *kept) error {
	seen, byTest, done, from := 0, 0, 0, time.Now()
	var rest []result
	var err error
	for r := range results {
		done++
		if _, ok := past.result(r.fault); !ok {
			err = errors.Join(err, past.add(r))
		}
		fmt.Printf("%3d/%d  %s\n", done, n, r)
		switch {
		case !r.seen:
			rest = append(rest, r)
			continue
		case r.level == levels.Test:
			byTest++
		}
		seen++
	}
	share := func(part int) float64 { return 100 * float64(part) / float64(n) }
	fmt.Printf("\n%d of %d faults were seen (%.1f %%), %d by make test alone (%.1f %%), in %v\n",
		seen, n, share(seen), byTest, share(byTest), time.Since(from).Round(time.Second))
	for _, r := range rest {
		fmt.Println("  ", r)
		fmt.Println("      ", r.fault.meaning)
	}
	if 100*seen < enough*n || 100*byTest < enoughByTest*n {
		err = errors.Join(err, fmt.Errorf("fewer than %d %% were seen, or fewer than %d %% by make test alone", enough, enoughByTest))
	}
	return err
}
