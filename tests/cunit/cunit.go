// Package cunit builds and runs the C units, tests/native/FOLDER/NAME_test.c, in several variants.
//
// It may import the standard library and other packages for tests, and only tests import it.
package cunit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// A Variant is one way to build and run the C units.
type Variant struct {
	Name   string
	Flags  []string          // for the compiler and the linker
	Args   []string          // for the program: the cases; none: all
	Skips  map[string]string // why a unit can't run
	arch   string            // GOARCH whose files of native/ are compiled
	cc     string            // the compiler
	env    []string          // for the run
	runner []string          // what the run goes through, if anything
	lack   string            // what DAQIRI_REQUIRE calls what this variant needs; "": every machine has it
}

const (
	Timeout  = 6 * time.Minute
	jobs     = 2
	exitSkip = 77
)

// The sanitizers die at start where the kernel spreads addresses wide, so they run with fixed addresses.
var setarch = []string{"setarch", "--addr-no-randomize"}

// All are the variants.
var All = []Variant{
	{
		Name: "plain", arch: build.Default.GOARCH, cc: "gcc", Flags: []string{"-O3"},
	},
	{
		Name: "asan+ubsan", arch: build.Default.GOARCH, cc: "gcc", runner: setarch,
		Flags: []string{"-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"},
		env:   []string{"UBSAN_OPTIONS=print_stacktrace=1"},
		lack:  "sanitizers",
	},
	{
		Name: "tsan", arch: build.Default.GOARCH, cc: "gcc", runner: setarch,
		Flags: []string{"-O1", "-fno-omit-frame-pointer", "-fsanitize=thread"},
		env:   []string{"TSAN_OPTIONS=halt_on_error=1"},
		lack:  "sanitizers",
	},
	{
		Name: "msan", arch: build.Default.GOARCH, cc: "clang", runner: setarch,
		Flags: []string{"-O1", "-fno-omit-frame-pointer", "-fsanitize=memory", "-fsanitize-memory-track-origins"},
		lack:  "sanitizers",
		Skips: map[string]string{"cbpf": "libpcap is not built with the memory sanitizer"},
	},
	{
		Name: "arm64", arch: "arm64", cc: "aarch64-linux-gnu-gcc", Flags: []string{"-O2", "-static"},
		runner: []string{"qemu-aarch64-static"},
		env:    []string{"DAQIRI_REQUIRE="}, // the emulated machine has none of this one's libraries
		lack:   "arm64",
	},
}

// Named returns the variant of this name, which exists.
func Named(name string) Variant {
	return All[slices.IndexFunc(All, func(v Variant) bool { return v.Name == name })]
}

// Ready returns v with what this machine has. It ends t where an empty program cannot be built and run: with a skip, or with a failure
// where DAQIRI_REQUIRE names what is missing.
func (v Variant) Ready(t *testing.T) Variant {
	t.Helper()
	if v.arch == "arm64" {
		emulator, err := require.Tool("qemu-aarch64-static", "qemu-aarch64")
		if err != nil {
			require.Lack(t, "qemu-user", err.Error())
		}
		v.runner = []string{emulator}
	} else if v.runner != nil && require.FixedAddresses() != nil {
		v.runner = nil
	}
	if out, err := v.Try(t.TempDir(), "int main(void) { return 0; }"); err != nil {
		reason := fmt.Sprintf("an empty program does not build and run: %v: %s", err, strings.TrimSpace(out))
		if v.lack == "" {
			t.Fatal(reason)
		}
		require.Lack(t, v.lack, reason)
	}
	return v
}

// Try builds and runs one program that needs nothing of the engine.
func (v Variant) Try(dir, source string) (string, error) {
	unit := filepath.Join(dir, "try.c")
	if err := os.WriteFile(unit, []byte(source), 0o644); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "try")
	if err := v.Link(program, unit, nil); err != nil {
		return "", err
	}
	return v.Output(program)
}

// CompileEngine compiles the C files that the Go build takes for v's architecture, with that build's own flags.
func (v Variant) CompileEngine(t *testing.T, dir string) []string {
	t.Helper()
	ctx := build.Default
	ctx.GOARCH, ctx.CgoEnabled = v.arch, true
	type source struct {
		file  string
		flags []string
	}
	var sources []source
	for _, folder := range append(tree.CFolders(tree.Files(t), "native"), "native") {
		if tree.Apart.MatchString(folder) {
			continue
		}
		engine, err := ctx.ImportDir(filepath.Join(tree.Root, folder), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range engine.CFiles {
			sources = append(sources, source{filepath.Join(tree.Root, folder, file), engine.CgoCFLAGS})
		}
	}
	objects, errs := make([]string, len(sources)), make([]error, len(sources))
	parallel(len(objects), func(i int) {
		objects[i] = filepath.Join(dir, fmt.Sprintf("%d-%s.o", i, strings.TrimSuffix(filepath.Base(sources[i].file), ".c")))
		args := append([]string{"-c", "-o", objects[i]}, sources[i].flags...)
		errs[i] = v.compile(append(args, sources[i].file)...)
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return objects
}

// Link builds the program of a unit with the objects of the engine.
func (v Variant) Link(program, unit string, objects []string) error {
	object := program + ".o"
	if err := v.compile("-c", "-o", object, unit); err != nil {
		return err
	}
	args := append([]string{"-rdynamic", "-o", program, object}, objects...) // its own calls can be looked up by name
	return v.compile(append(args, "-lpthread", "-ldl", "-lm")...)
}

// compilerCache is what a compiler's command line begins with: ccache, where it is installed.
var compilerCache = sync.OnceValue(func() []string {
	path, err := require.Tool("ccache")
	if err != nil {
		return nil
	}
	return []string{path}
})

func (v Variant) compile(args ...string) error {
	line := slices.Concat(compilerCache(), []string{v.cc, "-std=c11", "-D_GNU_SOURCE", "-g1", "-Wall", "-Wextra", "-Werror",
		"-I" + filepath.Join(tree.Root, "native"), "-I" + filepath.Join(tree.Root, "tests/native")}, v.Flags, args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "CCACHE_BASEDIR="+tree.Root, "CCACHE_NOHASHDIR=1") // clones share what is the same
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", v.cc, strings.Join(args, " "), err, out)
	}
	return nil
}

// Run runs a unit, which ends with 0 (passed), 77 (skipped, its output reports why) or anything else (failed).
func (v Variant) Run(t *testing.T, program string) {
	out, err := v.Output(program)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() == exitSkip:
		t.Skip(strings.TrimSpace(out))
	default:
		t.Fatalf("%v\n%s", err, out)
	}
}

// Output runs a program to its end, but no longer than Timeout.
func (v Variant) Output(program string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	line := slices.Concat(v.runner, []string{program}, v.Args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = filepath.Dir(program)
	cmd.Env = append(os.Environ(), v.env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v", Timeout)
	}
	return string(bytes.ToValidUTF8(out, []byte("?"))), err
}

// parallel calls f with 0 to n-1, on jobs goroutines.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, jobs)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}
