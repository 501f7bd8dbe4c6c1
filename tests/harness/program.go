// Package harness has what tests of whole programs share: the built program, what a machine has, namespaces, captures, servers.
package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/tests/tree"
)

// ProgramDir is a folder of this process, for what its tests share.
var ProgramDir string

// raced reports whether the tests have the race detector: then the program has it, too.
var raced = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
})

// Tests runs the tests in a process that has a ProgramDir. A race in any program that they start fails them, however that
// program ended.
type Tests struct{ M *testing.M }

// Run runs the tests and returns the exit code of the process.
func (a Tests) Run() int {
	dir, err := os.MkdirTemp("", "daqiri-run-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(dir)
	ProgramDir = dir
	_ = os.Setenv("GORACE", raceOptions(dir))
	code := a.M.Run()
	if races := racesIn(dir); races != "" {
		fmt.Fprintf(os.Stderr, "FAIL: data races in programs that the tests started:\n%s", races)
		code = max(code, 1)
	}
	return code
}

// raceOptions has programs with the race detector report to a folder, as many die by a signal or with nothing that reads their
// stderr; and not wait a second at their end for races that come late.
func raceOptions(dir string) string {
	return "atexit_sleep_ms=0 log_path=" + filepath.Join(dir, "race")
}

// racesIn is what programs with these options reported.
func racesIn(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "race.*"))
	var all strings.Builder
	for _, file := range files {
		text, _ := os.ReadFile(file)
		all.Write(text)
	}
	return all.String()
}

// Built is the path of the program, compiled once for all tests, with the race detector where they have it.
func Built(t *testing.T) string {
	t.Helper()
	if raced() {
		return compiled(t, buildRaced)
	}
	return BuiltPlain(t)
}

// BuiltPlain is built without the race detector, for what that would change: limits of memory, thousands of starts.
func BuiltPlain(t *testing.T) string {
	t.Helper()
	return compiled(t, buildPlain)
}

func compiled(t *testing.T, build func() (string, error)) string {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var (
	buildPlain = sync.OnceValues(func() (string, error) { return buildProgram("daqiri-run", "./cmd/daqiri-run") })
	buildRaced = sync.OnceValues(func() (string, error) { return buildProgram("daqiri-run-race", "./cmd/daqiri-run", "-race") })
	buildBench = sync.OnceValues(func() (string, error) { return buildProgram("daqiri-bench", "./cmd/daqiri-bench") })
)

// BuiltBench returns the path of daqiri-bench, which lies beside what builtPlain returns.
func BuiltBench(t *testing.T) string {
	t.Helper()
	BuiltPlain(t)
	return compiled(t, buildBench)
}

// buildProgram builds a program in the folder build, where the go command leaves it as it is while its sources are the same. One
// process at a time does: tests run in several.
func buildProgram(name, from string, flags ...string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(tree.Root, "build", "tests"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	program := filepath.Join(dir, name)
	build := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", program, from})...)
	build.Dir = tree.Root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}
