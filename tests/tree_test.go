package tests

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module  = "github.com/daqiri/daqiri-run"
	rootDir = ".." // go test runs in the package's folder
)

// sourceTree lists the project's files, slash separated and relative to the root: what git tracks or would track,
// or, in a copy without git, every file that a build did not make.
func sourceTree(t testing.TB) []string {
	t.Helper()
	files, err := treeOnce()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var treeOnce = sync.OnceValues(func() ([]string, error) {
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = rootDir
	out, err := git.Output()
	if err != nil || len(out) == 0 {
		return walkTree(rootDir)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	files = slices.DeleteFunc(files, func(name string) bool { // deleted, not yet committed
		_, err := os.Lstat(filepath.Join(rootDir, name))
		return err != nil
	})
	slices.Sort(files)
	return slices.Compact(files), nil
})

func walkTree(root string) ([]string, error) {
	built := []string{".git", "build", "captures", "daqiri-run"}
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains(built, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(built, name) {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	return files, err
}

// readFile is the text of a file that sourceTree named.
func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rootDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWalkTree(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "daqiri-run", "build/x.o", "native/dq.h", ".ci/run"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := walkTree(dir)
	if want := []string{".ci/run", "go.mod", "native/dq.h"}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}
