package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/tests/levels"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// A step is one part of a level, with an end of its own.
type step struct {
	name  string
	does  string
	usual time.Duration // on two quiet cores
	limit time.Duration
	run   func(context.Context) error
}

// steps are what a level does before its go tests.
func steps(level levels.Level) []step {
	tools := step{string(level) + " tools", "installs Debian packages that are missing", time.Second, 20 * time.Minute, command("tests/deps.sh", string(level))}
	if level == levels.Deep {
		return []step{
			tools,
			{"vet", "runs go vet on all packages", 40 * time.Second, 10 * time.Minute, command("go", "vet", "./...")},
			{"staticcheck", "runs staticcheck on all packages", time.Minute, 15 * time.Minute, staticcheck},
			{"vale", "builds vale, which tests/language checks the wording with, where it is not cached", time.Minute, 15 * time.Minute, vale},
		}
	}
	list := []step{tools}
	if _, err := os.Stat(levels.S3Server()); err != nil {
		list = append(list, step{"versitygw", "builds the S3 server of the tests, once a machine", 3 * time.Minute, 15 * time.Minute, s3Server})
	}
	return append(list,
		step{"build", "builds daqiri-run", 2 * time.Minute, 15 * time.Minute, command("make", "--no-print-directory", "build")},
		step{"golden scripts", "compares the output of scripts on the virtual clock", 10 * time.Second, 5 * time.Minute,
			command("./daqiri-run", "test", "scripts", "tests/golden")})
}

// runLevel runs the steps of a level and then its go tests, and prints the verdict last.
func runLevel(ctx context.Context, level levels.Level) (*verdict, error) {
	if err := chooseTemp(); err != nil {
		return nil, err
	}
	past := readHistory()
	defer past.save()
	start := time.Now()
	for _, s := range steps(level) {
		if err := s.do(ctx, past); err != nil {
			return nil, err
		}
	}
	json := filepath.Join("build", string(level)+".json")
	tests := step{string(level) + " go tests", "runs " + levels.Does[level], levels.Usual[level], 60 * time.Minute,
		func(ctx context.Context) error { return goTests(ctx, level, json) }}
	failed := tests.do(ctx, past)
	past.add("level "+string(level), time.Since(start), cpuOfChildren())
	v, err := readVerdict(json)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return v, v.end(level, failed)
}

// tempNeeds is how much the tests and the go command put into the folder for temporary files.
const tempNeeds = 3 << 30

// chooseTemp makes build/tmp the folder for temporary files where the usual one has too little space.
func chooseTemp() error {
	free, err := freeSpace(os.TempDir())
	if err == nil && free >= tempNeeds {
		return nil
	}
	dir, err := filepath.Abs("build/tmp")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return err
	}
	here, err := freeSpace(dir)
	if err != nil {
		return err
	}
	if here < tempNeeds {
		return fmt.Errorf("%s has %d MiB free and %s %d MiB: the tests need %d MiB in one of them, or set TMPDIR", os.TempDir(), free>>20, dir, here>>20, tempNeeds>>20)
	}
	fmt.Printf("%s has %d MiB free: temporary files go to %s\n", os.TempDir(), free>>20, dir)
	return os.Setenv("TMPDIR", dir)
}

// freeSpace is how many bytes a process may still write to the file system of a folder.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	err := unix.Statfs(dir, &s)
	return s.Bavail * uint64(s.Bsize), err
}

// do runs a step, reports what it does and how long it takes, and names it where it fails.
func (s step) do(ctx context.Context, past *history) error {
	when, last := "about", past.last("step "+s.name, 0)
	if last == 0 {
		last = s.usual
	} else {
		when = "last time"
	}
	fmt.Printf("== %s: %s (%s %.0f s)\n", s.name, s.does, when, last.Seconds())
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("not done after %v", s.limit))
	defer cancel()
	start, cpu := time.Now(), cpuOfChildren()
	err := s.run(ctx)
	took := time.Since(start)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		fmt.Printf("== %s: FAILED after %.0f s: %v\n", s.name, took.Seconds(), err)
		return exitCode(1)
	}
	cpu = cpuOfChildren() - cpu
	past.add("step "+s.name, took, cpu)
	fmt.Printf("== %s: done in %.0f s, %.0f s of CPU time\n", s.name, took.Seconds(), cpu.Seconds())
	return nil
}

// cpuOfChildren is the CPU time of all processes that were started here and have ended.
func cpuOfChildren() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// command is a program whose output is the suite's.
func command(line ...string) func(context.Context) error {
	return func(ctx context.Context) error { return execute(ctx, nil, line...) }
}

func execute(ctx context.Context, env []string, line ...string) error {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// goTests runs the go tests of a level and writes their events to the file json.
func goTests(ctx context.Context, level levels.Level, json string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		return err
	}
	if err := os.Remove(json); err != nil && !os.IsNotExist(err) { // of the run before
		return err
	}
	return throughGotestsum(ctx, json, self, "raw", string(level))
}

// throughGotestsum runs a command that prints events, and again for each test that failed, with "-test.run=PATTERN PACKAGE" behind it.
// Without gotestsum, on a machine without network, no test is run again.
func throughGotestsum(ctx context.Context, json string, raw ...string) error {
	env := levels.Env()
	sum, err := tool(ctx, "tests/tools", "gotestsum")
	if err != nil {
		fmt.Printf("skip  gotestsum: %v: failed tests are not run again\n", err)
		return execute(ctx, env, append([]string{"sh", "-c", `to=$1; shift; exec "$@" >"$to"`, "sh", json}, raw...)...)
	}
	line := []string{sum, "--format=pkgname", "--format-hide-empty-pkg", "--hide-summary=skipped,output",
		"--jsonfile=" + json, "--junitfile=" + strings.TrimSuffix(json, ".json") + ".xml"}
	if os.Getenv("FLAKY") != "0" {
		line = append(line, "--rerun-fails=2", "--rerun-fails-max-failures=10")
	}
	return execute(ctx, env, slices.Concat(line, []string{"--raw-command", "--"}, raw)...)
}

// tool returns the path of a program that the go.mod in a folder names, which the go command keeps in its cache.
func tool(ctx context.Context, folder, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join(tree.Root, folder, "go.mod"), "-n", name).Output()
	if err != nil {
		return "", errors.New("it could not be fetched")
	}
	return strings.TrimSpace(string(out)), nil
}

// s3Server builds versitygw. Where it cannot be fetched, the tests that need it skip.
func s3Server(ctx context.Context) error {
	dir, err := os.MkdirTemp(levels.Shared(), "fetch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = execute(ctx, []string{"GOBIN=" + dir}, "go", "install", "-ldflags=-s -w", "github.com/versity/versitygw/cmd/versitygw@"+levels.S3Version)
	if err == nil {
		return os.Rename(filepath.Join(dir, "versitygw"), levels.S3Server())
	}
	fmt.Println("skip  versitygw: it could not be fetched")
	return ctx.Err()
}

// staticcheck runs the usual checks, and those of package comments, receiver names and the form of comments on exported names. Where
// it cannot be fetched it is left out, unless DAQIRI_REQUIRE names it.
func staticcheck(ctx context.Context) error {
	path, err := tool(ctx, "tests/tools", "staticcheck")
	if err == nil {
		if err := os.Setenv("STATICCHECK", path); err != nil { // for the test that asks for all that DAQIRI_REQUIRE names
			return err
		}
		return execute(ctx, nil, path, "-checks", "inherit,ST1000,ST1016,ST1020,ST1021,ST1022", "./...")
	}
	if require.Named("staticcheck") {
		return fmt.Errorf("staticcheck: %w (DAQIRI_REQUIRE names it)", err)
	}
	fmt.Println("skip  staticcheck: it could not be fetched")
	return nil
}

// vale builds vale for the tests of tests/language. Where it cannot be fetched, these skip.
func vale(ctx context.Context) error {
	path, err := tool(ctx, "tests/tools/vale", "vale")
	if err == nil {
		return os.Setenv("VALE", path)
	}
	fmt.Println("skip  vale: it could not be fetched or built")
	return ctx.Err()
}
