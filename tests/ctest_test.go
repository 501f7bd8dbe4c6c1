package tests

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
)

// A variant is one way to build and run the C units.
type variant struct {
	name   string
	arch   string            // GOARCH whose files of native/ are compiled
	cc     string            // the compiler
	flags  []string          // for the compiler and the linker
	env    []string          // for the run
	runner []string          // what the run goes through, if anything
	args   []string          // for the program: the cases; none: all
	needs  []string          // names in the table of probes
	skips  map[string]string // why a unit can't run
}

const (
	unitTimeout = 6 * time.Minute
	compileJobs = 2
	exitSkip    = 77
)

// The thread sanitizer dies at start where the kernel spreads addresses wide, so both run with fixed addresses.
var setarch = []string{"setarch", "--addr-no-randomize"}

var variants = []variant{
	{
		name: "plain", arch: build.Default.GOARCH, cc: "gcc", flags: []string{"-O3"},
	},
	{
		name: "asan+ubsan", arch: build.Default.GOARCH, cc: "gcc", runner: setarch,
		flags: []string{"-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"},
		env:   []string{"UBSAN_OPTIONS=print_stacktrace=1"},
		needs: []string{"sanitizers"},
	},
	{
		name: "tsan", arch: build.Default.GOARCH, cc: "gcc", runner: setarch,
		flags: []string{"-O1", "-fno-omit-frame-pointer", "-fsanitize=thread"},
		env:   []string{"TSAN_OPTIONS=halt_on_error=1"},
		needs: []string{"sanitizers"},
	},
	{
		name: "msan", arch: build.Default.GOARCH, cc: "clang", runner: setarch,
		flags: []string{"-O1", "-fno-omit-frame-pointer", "-fsanitize=memory", "-fsanitize-memory-track-origins"},
		needs: []string{"sanitizers"},
		skips: map[string]string{"cbpf": "libpcap is not built with the memory sanitizer"},
	},
	{
		name: "arm64", arch: "arm64", cc: "aarch64-linux-gnu-gcc", flags: []string{"-O2", "-static"},
		runner: []string{"qemu-aarch64-static"},
		env:    []string{"DAQIRI_REQUIRE="}, // the emulated machine has none of this one's libraries
		needs:  []string{"arm64", "qemu-user"},
	},
}

// TestNative builds each tests/native/FOLDER/NAME_test.c with the whole C engine, in every variant, and runs it.
// A unit ends with 0 (passed), 77 (skipped, its output says why) or anything else (failed).
func TestNative(t *testing.T) {
	units, made := cUnits(t), libraryPrograms(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			v := v.ready(t)
			v.flags = append(slices.Clone(v.flags), "-I"+made)
			dir := t.TempDir()
			objects := v.compileEngine(t, dir)
			if t.Failed() {
				return
			}
			for _, unit := range units {
				name := strings.TrimSuffix(filepath.Base(unit), "_test.c")
				t.Run(name, func(t *testing.T) {
					if why := v.skips[name]; why != "" {
						t.Skip(why)
					}
					t.Parallel() // units wait more than they work: `make test` runs four at once
					program := filepath.Join(dir, name)
					if err := v.link(program, unit, objects); err != nil {
						t.Fatal(err)
					}
					v.run(t, program)
				})
			}
		})
	}
}

// TestNativeVariants shows that each variant notices what it is for.
func TestNativeVariants(t *testing.T) {
	const (
		passes = "int main(void) { return 0; }"
		fails  = "int main(void) { return 3; }"
		races  = `#include <pthread.h>
static int shared;
static void *add(void *arg) { shared++; return arg; }
int main(void) {
    pthread_t a, b;
    if (pthread_create(&a, 0, add, 0) || pthread_create(&b, 0, add, 0)) return 1;
    return pthread_join(a, 0) || pthread_join(b, 0);
}`
		freed    = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(4); free(p); return *p; }"
		overflow = "#include <limits.h>\nint main(void) { volatile int n = INT_MAX; n = n + 1; return n == 3; }"
		unset    = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(4); return p[2] ? 3 : 4; }"
		leaks    = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(64); p = 0; return p != 0; }"
	)
	cases := []struct{ variant, name, source, want string }{
		{"plain", "pass", passes, ""},
		{"plain", "fail", fails, "exit status 3"},
		{"asan+ubsan", "pass", passes, ""},
		{"asan+ubsan", "use after free", freed, "heap-use-after-free"},
		{"asan+ubsan", "overflow", overflow, "signed integer overflow"},
		{"asan+ubsan", "leak", leaks, "detected memory leaks"},
		{"tsan", "pass", passes, ""},
		{"tsan", "race", races, "data race"},
		{"msan", "pass", passes, ""},
		{"msan", "unset", unset, "use-of-uninitialized-value"},
		{"arm64", "pass", passes, ""},
		{"arm64", "fail", fails, "exit status 3"},
	}
	for _, c := range cases {
		t.Run(c.variant+" "+c.name, func(t *testing.T) {
			i := slices.IndexFunc(variants, func(v variant) bool { return v.name == c.variant })
			v := variants[i].ready(t)
			out, err := v.try(t.TempDir(), c.source)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v\n%s", err, out)
			case c.want != "" && (err == nil || !strings.Contains(out+err.Error(), c.want)):
				t.Errorf("got %v, want %q in\n%s", err, c.want, out)
			}
		})
	}
}

// ready is v with what this machine has, or the end of t where an empty program cannot be built and run.
func (v variant) ready(t *testing.T) variant {
	t.Helper()
	need(t, v.needs...)
	if v.arch == "arm64" {
		emulator, err := tool("qemu-aarch64-static", "qemu-aarch64")
		if err != nil {
			t.Fatal(err)
		}
		v.runner = []string{emulator}
	} else if v.runner != nil && fixedAddresses() != nil {
		v.runner = nil
	}
	if out, err := v.try(t.TempDir(), "int main(void) { return 0; }"); err != nil {
		reason := fmt.Sprintf("an empty program does not build and run: %v: %s", err, strings.TrimSpace(out))
		if len(v.needs) == 0 {
			t.Fatal(reason)
		}
		require.Lack(t, v.needs[0], reason)
	}
	return v
}

// try builds and runs one program that needs nothing of the engine.
func (v variant) try(dir, source string) (string, error) {
	unit := filepath.Join(dir, "try.c")
	if err := os.WriteFile(unit, []byte(source), 0o644); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "try")
	if err := v.link(program, unit, nil); err != nil {
		return "", err
	}
	return v.output(program)
}

// compileEngine compiles the C files that the Go build takes for v's architecture, with that build's own flags.
func (v variant) compileEngine(t *testing.T, dir string) []string {
	t.Helper()
	ctx := build.Default
	ctx.GOARCH, ctx.CgoEnabled = v.arch, true
	type source struct {
		file  string
		flags []string
	}
	var sources []source
	for _, folder := range append(foldersOf(sourceTree(t), "native"), "native") {
		if apartDirs.MatchString(folder) {
			continue
		}
		engine, err := ctx.ImportDir(filepath.Join(rootDir, folder), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range engine.CFiles {
			sources = append(sources, source{filepath.Join(rootDir, folder, file), engine.CgoCFLAGS})
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

// libraryPrograms is a folder with library_programs.h, which one of the units has its programs from.
func libraryPrograms(t *testing.T) string {
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "./tests/programs")
	cmd.Dir = rootDir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "library_programs.h"), text, 0o600)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, &problems)
	}
	return dir
}

// cUnits are the C units, by path: tests/native/FOLDER/NAME_test.c, the folders as native/ has them.
func cUnits(t *testing.T) []string {
	var units []string
	for _, name := range sourceTree(t) {
		if strings.HasPrefix(name, "tests/native/") && strings.HasSuffix(name, "_test.c") {
			units = append(units, filepath.Join(rootDir, name))
		}
	}
	if len(units) == 0 {
		t.Fatal("no C unit in tests/native")
	}
	return units
}

func (v variant) link(program, unit string, objects []string) error {
	args := append([]string{"-rdynamic", "-o", program, unit}, objects...) // its own calls can be looked up by name
	return v.compile(append(args, "-lpthread", "-ldl", "-lm")...)
}

func (v variant) compile(args ...string) error {
	common := []string{"-std=c11", "-D_GNU_SOURCE", "-g1", "-Wall", "-Wextra", "-Werror",
		"-I" + filepath.Join(rootDir, "native"), "-I" + filepath.Join(rootDir, "tests/native")}
	out, err := exec.Command(v.cc, slices.Concat(common, v.flags, args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", v.cc, strings.Join(args, " "), err, out)
	}
	return nil
}

func (v variant) run(t *testing.T, program string) {
	out, err := v.output(program)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() == exitSkip:
		t.Skip(strings.TrimSpace(out))
	default:
		t.Fatalf("%v\n%s", err, out)
	}
}

// output runs a program to its end, but no longer than unitTimeout.
func (v variant) output(program string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), unitTimeout)
	defer cancel()
	line := slices.Concat(v.runner, []string{program}, v.args)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = filepath.Dir(program)
	cmd.Env = append(os.Environ(), v.env...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v", unitTimeout)
	}
	return string(bytes.ToValidUTF8(out, []byte("?"))), err
}

// parallel calls f with 0 to n-1, on compileJobs goroutines.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, compileJobs)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}
