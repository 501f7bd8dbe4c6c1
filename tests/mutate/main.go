// Command mutate puts small faults into copies of the project, one at a time, runs the tests that should see each, and
// reports which faults nobody noticed. Its table are the files *.txt beside it. The checkout is never touched.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"
)

// enough is the share of faults that has to be seen, in percent.
const enough = 95

func main() {
	only := flag.String("only", "", "faults whose names match this `PATTERN`")
	jobs := flag.Int("jobs", 1, "so many faults at a time, each in a copy of its own")
	list := flag.Bool("list", false, "name the faults and end")
	flag.Parse()
	if err := run(*only, *jobs, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(only string, jobs int, list bool) error {
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
			fmt.Printf("%-32s %s (%s)\n", f.name, f.meaning, f.file)
		}
	}
	if list {
		return nil
	}
	if len(faults) == 0 {
		return errors.New("no fault of this name")
	}
	return tryAll(faults, max(jobs, 1))
}

// tryAll tries faults, so many at a time, and ends with an error where too few were seen.
func tryAll(faults []fault, jobs int) error {
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
			next <- f
		}
	}()
	go func() {
		wg.Wait()
		close(results)
	}()
	sum := collect(results, len(faults))
	for range jobs {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, sum)
}

// collect prints results as they come, and what survived once more at the end.
func collect(results <-chan result, n int) error {
	seen, done, from := 0, 0, time.Now()
	var rest []result
	for r := range results {
		done++
		fmt.Printf("%3d/%d  %s\n", done, n, r)
		if r.seen {
			seen++
		} else {
			rest = append(rest, r)
		}
	}
	fmt.Printf("\n%d of %d faults were seen (%.1f %%), in %v\n", seen, n, 100*float64(seen)/float64(n), time.Since(from).Round(time.Second))
	for _, r := range rest {
		fmt.Println("  ", r)
		fmt.Println("      ", r.fault.meaning)
	}
	if 100*seen < enough*n {
		return fmt.Errorf("fewer than %d %% were seen", enough)
	}
	return nil
}
