package units

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/daqiri/daqiri-run/tests/cunit"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// TestNative builds each tests/native/FOLDER/NAME_test.c with the whole C engine, in every variant, and runs it. The thread sanitizer
// leaves out units that start no thread, where the variant plain has run before it.
func TestNative(t *testing.T) {
	units, watched := cUnits(t), t.TempDir()
	var threads cunit.Threads
	for _, v := range cunit.All {
		t.Run(v.Name, func(t *testing.T) {
			v := v.Ready(t)
			dir := t.TempDir()
			objects := v.CompileEngine(t, dir)
			if t.Failed() {
				return
			}
			for _, unit := range units {
				name := strings.TrimSuffix(filepath.Base(unit), "_test.c")
				t.Run(name, func(t *testing.T) {
					if why := v.Skips[name]; why != "" {
						t.Skip(why)
					}
					if v.Name == "tsan" && threads.None(name) {
						t.Skip("starts no thread")
					}
					t.Parallel() // units wait more than they work: the suite runs four at once
					v := v
					if v.Name == "plain" {
						var err error
						if v, err = threads.Watch(v, watched, name); err != nil {
							t.Fatal(err)
						}
					}
					if text, err := os.ReadFile(unit); err != nil {
						t.Fatal(err)
					} else if bytes.Contains(text, []byte(`"`+programsHeader+`"`)) {
						v.Flags = append(slices.Clone(v.Flags), "-I"+libraryPrograms(t))
					}
					program := filepath.Join(dir, name)
					if err := v.Link(program, unit, objects); err != nil {
						t.Fatal(err)
					}
					v.Run(t, program)
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
			v := cunit.Named(c.variant).Ready(t)
			out, err := v.Try(t.TempDir(), c.source)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%v\n%s", err, out)
			case c.want != "" && (err == nil || !strings.Contains(out+err.Error(), c.want)):
				t.Errorf("got %v, want %q in\n%s", err, c.want, out)
			}
		})
	}
}

// programsHeader is made by tests/programs, for a unit that includes it.
const programsHeader = "library_programs.h"

// libraryPrograms is a folder with programsHeader, the same one each time so that the compiler's cache knows it.
func libraryPrograms(t *testing.T) string {
	dir := filepath.Join(tree.Root, "build", "tests")
	cmd := exec.Command("go", "run", "./tests/programs")
	cmd.Dir = tree.Root
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	made := filepath.Join(dir, fmt.Sprintf("%s.%d", programsHeader, os.Getpid()))
	if err == nil {
		err = os.WriteFile(made, text, 0o600)
	}
	if err == nil {
		err = os.Rename(made, filepath.Join(dir, programsHeader)) // another process may read it at this moment
	}
	if err != nil {
		t.Fatalf("%v: %s", err, &problems)
	}
	return dir
}

// cUnits are the C units, by path: tests/native/FOLDER/NAME_test.c, the folders as native/ has them.
func cUnits(t *testing.T) []string {
	var units []string
	for _, name := range tree.Files(t) {
		if strings.HasPrefix(name, "tests/native/") && strings.HasSuffix(name, "_test.c") {
			units = append(units, filepath.Join(tree.Root, name))
		}
	}
	if len(units) == 0 {
		t.Fatal("no C unit in tests/native")
	}
	return units
}
