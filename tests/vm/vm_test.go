package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/tests/require"
)

var cache = filepath.Join(cmp.Or(os.Getenv("DAQIRI_TEST_SHARED"), "../../build"), "vm")

// patience is for a boot: everything is emulated, maybe on a busy machine.
var patience = 5 * time.Minute * time.Duration(1+3*len(sanitized()))

var testKernel = sync.OnceValues(func() (kernel, error) { return getKernel(cache, "") })

// need skips t, or fails it as DAQIRI_REQUIRE specifies, unless a virtual machine can be had and these commands are there.
func need(t *testing.T, commands ...string) kernel {
	t.Helper()
	k, err := testKernel()
	if err != nil {
		require.Lack(t, "vm", err.Error())
	}
	for _, name := range commands {
		if _, err := tool(name); err != nil {
			require.Lack(t, "vm", err.Error())
		}
	}
	return k
}

// outcome is what a command in the machine did.
type outcome struct {
	code           int
	err            error
	stdout, stderr string
}

// try runs a shell script in a machine.
func try(t *testing.T, k kernel, m machine, script string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	m.stdout, m.stderr = &stdout, &stderr
	if m.memory == 0 {
		m.memory = 1024
	}
	if m.timeout == 0 {
		m.timeout = patience
	}
	if m.dir == "" {
		m.dir = t.TempDir()
	}
	code, err := m.run(context.Background(), k, []string{"sh", "-c", script})
	return outcome{code, err, stdout.String(), stderr.String()}
}

// must is try for a script that has to succeed; its output.
func must(t *testing.T, k kernel, m machine, script string) string {
	t.Helper()
	o := try(t, k, m, script)
	if o.err != nil || o.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", o.code, o.err, o.stdout, o.stderr)
	}
	return o.stdout
}

// programs are those that were built, by their packages.
var programs sync.Map

// build compiles a command of this module, once for all tests; its path.
func build(t *testing.T, pkg string) string {
	t.Helper()
	made, _ := programs.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		program := filepath.Join(programsDir, filepath.Base(pkg))
		c := exec.Command("go", slices.Concat([]string{"build", "-o", program}, sanitized(), []string{pkg})...)
		c.Dir = "../.."
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
		return program, nil
	}))
	program, err := made.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var programsDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "vm-programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programsDir = dir
	code := m.Run()
	endShared()
	os.RemoveAll(dir)
	os.Exit(code)
}

func quoted(words []string) (list []string) {
	for _, w := range words {
		list = append(list, quote(w))
	}
	return list
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
