// Command suite runs the levels of the project's tests. Makefile, README and tests/README.md say how each is called:
//
//	suite test     every package, C unit, golden script and whole program once
//	suite deep     static analysis, further sanitizers, the race detector, arm64, virtual machines, random calls
//	suite check    what depends on the files that were edited
//	suite busy     rounds of "test" on a machine that is kept busy, with the flaky tests by name
//	suite times    prints what each step and group of tests took the last time
//	suite raw      what gotestsum calls: the go tests of a level, as test2json prints them
//
// It is started in the root of the repository.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/daqiri/daqiri-run/tests/levels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var code exitCode
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case err != nil:
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// An exitCode ends the command without a message: what went wrong is printed already.
type exitCode int

func (c exitCode) Error() string { return "exit status " + strconv.Itoa(int(c)) }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = []string{""}
	}
	switch args[0] {
	case "test", "deep":
		_, err := runLevel(ctx, levels.Level(args[0]))
		return err
	case "check":
		return check(ctx)
	case "busy":
		return busy(ctx, args[1:])
	case "times":
		printTimes(os.Stdout, readHistory().took)
		return nil
	case "raw":
		return raw(ctx, args[1:])
	case "spin":
		return spin(ctx)
	case "write":
		return write(ctx, args[1:])
	}
	return fmt.Errorf("no command %q: want test, deep, check, busy or times", strings.Join(args, " "))
}
