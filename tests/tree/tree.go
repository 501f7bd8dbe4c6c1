// Package tree knows which files are the project's, for tests.
//
// It imports the standard library alone.
package tree

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Module is the project's import path.
const Module = "github.com/daqiri/daqiri-run"

// Root is the repository's folder.
var Root = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}()

// Files lists the project's files, slash separated and relative to the root: what git tracks or would track,
// or, in a copy without git, every file that a build did not make.
func Files(t testing.TB) []string {
	t.Helper()
	files, err := treeOnce()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var treeOnce = sync.OnceValues(func() ([]string, error) {
	git := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	git.Dir = Root
	out, err := git.Output()
	if err != nil || len(out) == 0 {
		return walkTree(Root)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	files = slices.DeleteFunc(files, func(name string) bool { // deleted, not yet committed
		_, err := os.Lstat(filepath.Join(Root, name))
		return err != nil
	})
	slices.Sort(files)
	return slices.Compact(files), nil
})

func walkTree(root string) ([]string, error) {
	built := []string{".git", "build", "captures", "daqiri-run", "daqiri-bench"}
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

// Read returns the text of a file that Files named.
func Read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// CFolders are the folders below one, at any depth, that hold C files.
func CFolders(files []string, top string) []string {
	var dirs []string
	for _, name := range files {
		if dir := path.Dir(name); strings.HasPrefix(dir, top+"/") && path.Ext(name) == ".c" {
			dirs = append(dirs, dir)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(dirs)))
}

// Apart matches folders of C files that `go build` does not compile: the eBPF program and the library of the engine dpdk.
var Apart = regexp.MustCompile(`^native/engine/(xdp/bpf|dpdk/plugin)$`)
