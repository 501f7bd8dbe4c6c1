package main

import (
	"strings"
	"testing"
)

// TestProgram runs golden scripts, one on the loop engine and one on sockets, on the machine's kernel, and the soak's injected fault
// that a machine used by others must not have: its clock is stepped under a program that receives.
// Not at once with others: a machine that gets no time loses datagrams, which nothing but the machine counts.
func TestProgram(t *testing.T) {
	k := need(t)
	program, soak := build(t, "./cmd/daqiri-run"), build(t, "./tests/soak")
	output := must(t, k, machine{dir: root(t)}, quote(program)+` test scripts/loop/hello.lua scripts/network/tcp_echo.lua 2>&1 &&
		`+quote(soak)+` -program `+quote(program)+` -clock -faults clock-step -seed 1 -minutes 0.35 2>&1`)
	for _, words := range []string{"hello", "tcp_echo", "clock-step: by ", "every packet is accounted for"} {
		if !strings.Contains(output, words) {
			t.Errorf("it does not say %q:\n%s", words, output)
		}
	}
	t.Log(output)
}
