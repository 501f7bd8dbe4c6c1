package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/daqiri/daqiri-run/tests/levels"
)

// spinners is how many processes keep the machine busy, beside one that writes to the disk.
const spinners = 6

// busy runs the level test in rounds on a machine that is kept busy, and counts flaky tests by name. It fails where a round failed, and
// where more than one test in ten rounds was flaky.
func busy(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("busy", flag.ContinueOnError)
	rounds := flags.Int("rounds", 1, "how many")
	if err := flags.Parse(args); err != nil {
		return err
	}
	stop, err := load(ctx)
	if err != nil {
		return err
	}
	defer stop()
	flaky, failed, flakyRounds := map[string]int{}, 0, 0
	for i := range *rounds {
		fmt.Printf("== round %d of %d\n", i+1, *rounds)
		v, err := runLevel(ctx, levels.Test)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed++
		}
		if v == nil {
			continue
		}
		for _, name := range v.flaky() {
			flaky[name.String()]++
			flakyRounds++
		}
		keep(i, "build/test-flaky.txt")
	}
	for _, name := range slices.Sorted(maps.Keys(flaky)) {
		fmt.Printf("flaky in %d of %d rounds: %s\n", flaky[name], *rounds, name)
	}
	fmt.Printf("%d of %d rounds failed, %d flaky\n", failed, *rounds, flakyRounds)
	if failed > 0 || flakyRounds > max(1, *rounds/10) {
		return exitCode(1)
	}
	return nil
}

// keep puts a round's report aside, before the next round writes its own.
func keep(round int, report string) {
	_ = os.Rename(report, strings.TrimSuffix(report, ".txt")+fmt.Sprintf("-round%d.txt", round+1))
}

// load starts the processes that keep the machine busy; stop ends them.
func load(ctx context.Context) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "daqiri-run-busy-")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var started []*exec.Cmd
	stop = func() {
		cancel()
		for _, cmd := range started {
			_ = cmd.Wait()
		}
		_ = os.RemoveAll(dir)
	}
	lines := slices.Repeat([][]string{{"spin"}}, spinners)
	for _, line := range append(lines, []string{"write", dir}) {
		cmd := exec.CommandContext(ctx, self, line...)
		_, err := cmd.StdinPipe() // it ends with this process, however that ends
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			stop()
			return nil, err
		}
		started = append(started, cmd)
	}
	return stop, nil
}

// untilEOF is ctx until the standard input ends.
func untilEOF(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

// spin computes until the standard input ends.
func spin(ctx context.Context) error {
	ctx = untilEOF(ctx)
	for n := uint64(1); ctx.Err() == nil; {
		for range 1 << 20 {
			n = n*6364136223846793005 + 1442695040888963407
		}
		if n == 0 {
			fmt.Fprintln(os.Stderr, n)
		}
	}
	return nil
}

// write writes a file of 64 MiB in the folder args[0] over and over, each time through to the disk, until the standard input
// ends.
func write(ctx context.Context, args []string) error {
	ctx = untilEOF(ctx)
	if len(args) != 1 {
		return fmt.Errorf("write: want a folder")
	}
	block := make([]byte, 1<<20)
	for ctx.Err() == nil {
		f, err := os.Create(filepath.Join(args[0], "written"))
		if err != nil {
			return err
		}
		for range 64 {
			if _, err := f.Write(block); err != nil || ctx.Err() != nil {
				break
			}
		}
		_ = f.Sync()
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
