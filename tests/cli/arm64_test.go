package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/host/golden"

	"github.com/daqiri/daqiri-run/tests/harness"
	"github.com/daqiri/daqiri-run/tests/require"
	"github.com/daqiri/daqiri-run/tests/tree"
)

// arm64Libraries is where Debian's cross compiler has the arm64 C library that the emulated program loads.
const arm64Libraries = "/usr/aarch64-linux-gnu"

// TestArm64 builds the program for arm64 and, under user-mode emulation, runs it and compares what the golden scripts
// print with the same golden files that x86-64 has.
func TestArm64(t *testing.T) {
	harness.Need(t, "arm64")
	program := filepath.Join(t.TempDir(), "daqiri-run")
	build := exec.Command("go", "build", "-o", program, "./cmd/daqiri-run")
	build.Dir = tree.Root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=1", "CC=aarch64-linux-gnu-gcc")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := exec.Command("readelf", "--file-header", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`Machine: +AArch64`).Match(file) {
		t.Fatalf("not an arm64 program:\n%s", file)
	}
	t.Run("version", func(t *testing.T) {
		out, err := exec.Command(emulated(t, program), "version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "arm64") {
			t.Errorf("got %v, want a version that names arm64 in\n%s", err, out)
		}
	})
	t.Run("golden scripts", func(t *testing.T) { runGolden(t, emulated(t, program)) })
}

// runGolden runs the golden scripts, and again those that did not end: now and then a process that the emulator forks, which has
// threads by then, waits for a lock that nothing holds any more.
func runGolden(t *testing.T, program string) {
	paths := emulatedScripts(t)
	for tries := 1; len(paths) > 0; tries++ {
		var out bytes.Buffer
		result, err := golden.Run(context.Background(), golden.Options{
			Exe: program, Paths: paths, Timeout: time.Minute, Stdout: &out,
		})
		if err != nil {
			t.Fatal(err)
		}
		paths = nil
		for _, c := range result.Tests {
			if c.Status == golden.Failed && strings.HasPrefix(c.Reason, "timed out") && tries < 4 {
				paths = append(paths, c.Name)
			}
		}
		if result.Failed > len(paths) || result.Passed+len(paths) == 0 {
			t.Fatalf("%d passed, %d failed\n%s", result.Passed, result.Failed, out.String())
		}
	}
}

// emulatedScripts are the golden scripts but those of kernels: the process of a kernel is the program started again, which
// the machine's system refuses, as it is for another processor.
func emulatedScripts(t *testing.T) []string {
	var paths []string
	for _, dir := range []string{"scripts/*", "tests/golden"} {
		all, err := filepath.Glob(filepath.Join(tree.Root, dir, "*.golden"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range all {
			if name := filepath.Base(path); !strings.HasPrefix(name, "gn_") && name != "gpu_kernel.golden" {
				paths = append(paths, strings.TrimSuffix(path, ".golden")+".lua")
			}
		}
	}
	return paths
}

// emulated is a command that runs an arm64 program on this machine.
func emulated(t *testing.T, program string) string {
	t.Helper()
	harness.Need(t, "qemu-user")
	emulator, err := require.Tool("qemu-aarch64-static", "qemu-aarch64")
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(t.TempDir(), "daqiri-run")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' -L %s '%s' \"$@\"\n", emulator, arm64Libraries, program)
	if err := os.WriteFile(command, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return command
}
