package golden

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes the test binary the program under test: called as "run SCRIPT" in a sandbox, it runs the script in a shell, with the path of a
// requested summary in $SUMMARY.
func TestMain(m *testing.M) {
	if os.Getenv("DAQIRI_TEST") == "1" && len(os.Args) > 2 && os.Args[1] == "run" {
		args, env := os.Args[2:], os.Environ()
		if args[0] == "--summary-json" {
			env = append(env, "SUMMARY="+args[1])
			args = args[2:]
		}
		if err := syscall.Exec("/bin/sh", append([]string{"sh"}, args...), env); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// tree writes files (name to content) into a new folder and returns its path.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// runTests runs the tests in dir and returns the result and the report.
func runTests(t *testing.T, dir string, change func(*Options)) (Result, string) {
	t.Helper()
	res, report, err := tryTests(t, dir, change)
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	return res, report
}

func tryTests(t *testing.T, dir string, change func(*Options)) (Result, string, error) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	opts := Options{Exe: exe, SearchPath: os.Getenv("PATH"), Paths: []string{dir}, Stdout: &out}
	if change != nil {
		change(&opts)
	}
	res, err := Run(context.Background(), opts)
	return res, out.String(), err
}

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// contains reports each text of want that is missing.
func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

func names(res Result) []string {
	var all []string
	for _, test := range res.Tests {
		all = append(all, filepath.Base(test.Name))
	}
	if !slices.IsSorted(all) {
		return append(all, "(unsorted)")
	}
	return all
}
