package tests

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
)

// programDir is a folder of this process, for what its tests share.
var programDir string

// raced reports whether the tests have the race detector: then the program has it, too.
var raced = sync.OnceValue(func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
})

// allTests runs the tests in a process that has a programDir. A race in any program that they start fails them, however that
// program ended.
type allTests struct{ m *testing.M }

func (a allTests) Run() int {
	dir, err := os.MkdirTemp("", "daqiri-run-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(dir)
	programDir = dir
	_ = os.Setenv("GORACE", raceOptions(dir))
	code := a.m.Run()
	if races := racesIn(dir); races != "" {
		fmt.Fprintf(os.Stderr, "FAIL: data races in programs that the tests started:\n%s", races)
		code = max(code, 1)
	}
	return code
}

// raceOptions has programs with the race detector report to a folder, as many die by a signal or with nobody who reads their
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

// built is the path of the program, compiled once for all tests, with the race detector where they have it.
func built(t *testing.T) string {
	t.Helper()
	if raced() {
		return compiled(t, buildRaced)
	}
	return builtPlain(t)
}

// builtPlain is built without the race detector, for what that would change: limits of memory, thousands of starts.
func builtPlain(t *testing.T) string {
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

// builtBench returns the path of daqiri-bench, which lies beside what builtPlain returns.
func builtBench(t *testing.T) string {
	t.Helper()
	builtPlain(t)
	return compiled(t, buildBench)
}

// buildProgram builds a program in the folder build, where the go command leaves it as it is while its sources are the same. One
// process at a time does: tests run in several.
func buildProgram(name, from string, flags ...string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(rootDir, "build", "tests"))
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
	build.Dir = rootDir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

// TestRaceIsSeen: a race of a program whose streams nobody reads, and which is killed, is found.
func TestRaceIsSeen(t *testing.T) {
	if !raced() {
		return // there is nothing to see races with
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.24\n",
		"main.go": `package main

import (
	"os"
	"syscall"
	"time"
)

func main() {
	n, done := 0, make(chan bool)
	go func() { n++; done <- true }()
	n++
	<-done
	if os.Args[1] == "killed" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	}
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-race", "-o", "m", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, end := range []string{"killed", "ended"} {
		reports := t.TempDir()
		run := exec.Command(filepath.Join(dir, "m"), end)
		run.Env = append(os.Environ(), "GORACE="+raceOptions(reports))
		_ = run.Run()
		if got := racesIn(reports); !strings.Contains(got, "WARNING: DATA RACE") {
			t.Errorf("%s: nothing seen: %q", end, got)
		}
	}
}
