package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestProgram runs golden scripts, one on the loop engine and one on sockets, on the machine's kernel.
func TestProgram(t *testing.T) {
	k := need(t)
	program := build(t, "./cmd/daqiri-run")
	said := must(t, k, machine{dir: root(t)}, quote(program)+` test scripts/hello.lua scripts/tcp_echo.lua 2>&1`)
	if !strings.Contains(said, "hello") || !strings.Contains(said, "tcp_echo") {
		t.Errorf("it said %q", said)
	}
}

// TestClockStep is the soak's fault that a machine used by others must not have: its clock is stepped under a
// program that receives.
func TestClockStep(t *testing.T) {
	k := need(t)
	program, soak := build(t, "./cmd/daqiri-run"), build(t, "./tests/soak")
	said := must(t, k, machine{dir: root(t)},
		quote(soak)+` -program `+quote(program)+` -clock -faults clock-step -seed 1 -minutes 0.35 2>&1`)
	if !strings.Contains(said, "clock-step: by ") || !strings.Contains(said, "every packet is accounted for") {
		t.Errorf("it said:\n%s", said)
	}
	t.Log(said)
}

// TestOwnTests runs a test of a package in the machine, as `tests/vm/run -test PACKAGE` does.
func TestOwnTests(t *testing.T) {
	need(t)
	var stdout, stderr bytes.Buffer
	m := machine{memory: 1024, timeout: patience, stdout: &stdout, stderr: &stderr}
	code, err := start(context.Background(), &m, cache, "", ".", []string{"-test.run", "^TestArchive$", "-test.v"})
	if code != 0 || err != nil || !strings.Contains(stdout.String(), "--- PASS: TestArchive") {
		t.Errorf("exit code %d, %v\n%s%s", code, err, stdout.String(), stderr.String())
	}
}
