package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// programDir is where built leaves the program: a folder of this process.
var programDir string

// allTests runs the tests in a process that has a programDir.
type allTests struct{ m *testing.M }

func (a allTests) Run() int {
	dir, err := os.MkdirTemp("", "daqiri-run-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(dir)
	programDir = dir
	return a.m.Run()
}

// built is the path of the program, compiled once for the tests of this process.
func built(t *testing.T) string {
	t.Helper()
	program, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var buildOnce = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programDir, "daqiri-run")
	build := exec.Command("go", "build", "-o", program, "./cmd/daqiri-run")
	build.Dir = rootDir
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})
