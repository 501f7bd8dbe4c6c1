//go:build linux

package repl

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/tests/pty"
)

// terminalEnv has the history file and makes the test binary run a prompt on its standard streams.
const terminalEnv = "DAQIRI_REPL_TERMINAL"

func TestMain(m *testing.M) {
	if history := os.Getenv(terminalEnv); history != "" {
		os.Exit(promptMain(history))
	}
	os.Exit(m.Run())
}

// promptMain runs a program with a prompt, set up like the command line's.
func promptMain(history string) int {
	L := lua.NewState()
	x := NewLua(L)
	r := New(Options{Interactive: true, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, HistoryFile: history, Interrupt: x.Interrupt})
	L.SetGlobal("emit", L.NewFunction(func(L *lua.LState) int {
		fmt.Fprint(r.Writer(os.Stdout), L.CheckString(1))
		return 0
	}))
	L.SetGlobal("ticks", L.NewFunction(func(*lua.LState) int {
		go func() {
			for n := 1; ; n++ {
				fmt.Fprintf(r.Writer(os.Stdout), "tick %d\n", n)
				time.Sleep(20 * time.Millisecond)
			}
		}()
		return 0
	}))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	go func() {
		for range signals {
			r.Interrupt()
		}
	}()
	if err := r.Start(); err != nil {
		fmt.Println(err)
	}
	serve(r, x)
	if err := r.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("closed")
	return 0
}

// TestTerminal tests the prompt on a real terminal: editing, completion, Ctrl-C in a line and in a chunk, Ctrl-D, modes and history.
func TestTerminal(t *testing.T) {
	t.Parallel()
	x := pty.Open(t)
	before, err := unix.IoctlGetTermios(int(x.Program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	history := filepath.Join(t.TempDir(), "state", "history")
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), terminalEnv+"="+history, "TERM=xterm")
	end := x.Start(cmd)

	const ctrlC, ctrlD, tab = "\x03", "\x04", "\t"
	for _, step := range []struct {
		types string
		shows []string
	}{
		{"", []string{"> "}},
		{"6*7\r", []string{"\r\n42\r\n", "> "}},
		{"strin" + tab + ".format('%d', 5)\r", []string{"string", "\r\n\"5\"\r\n", "> "}},
		{"for i = 1, 2 do\r", []string{">> "}},
		{"half a l", []string{"half a l"}}, // echoed by the editor: it is reading
		{ctrlC, []string{"> "}},
		{"this is dropped", []string{"this is dropped"}},
		{ctrlC, []string{"> "}},
		{"emit 'no newline'\r", []string{"no newline\r\n", "> "}},
		{"emit 'spinning' while true do end\r", []string{"\r\nspinning"}},
		{ctrlC, []string{"prompt:1: interrupted", "> "}},
		// Ctrl-D only discards an incomplete block; the history has complete blocks.
		{"if true then\r", []string{">> "}},
		{ctrlD, []string{"\r\n> "}},
		{"function twice(n) -- of a number\r", []string{">> "}},
		{"return 2 * n\r", []string{">> "}},
		{"end\r", []string{"> "}},
		{"\x1b[A", []string{"function twice(n)  return 2 * n end"}},
		{"\r", []string{"> "}},
		{"twice(4)\r", []string{"\r\n8\r\n", "> "}},
		// Output is shown while the user is idle, and a partly typed line is kept.
		{"ticks()\r", []string{"tick 10\r\n", "tick 40\r\n", "> "}},
		{"6*", []string{"tick 60\r\n", "> 6*"}}, // then the terminal becomes narrower
		{"7\r", []string{"\r\n42\r\n", "tick 80\r\n", "> "}},
		{ctrlD, []string{"closed"}},
	} {
		if step.types == "7\r" {
			x.Resize(24, 30)
		}
		x.Type(step.types, step.shows...)
	}
	if err := end(); err != nil {
		t.Fatalf("%v after %q", err, x.Seen())
	}
	after, err := unix.IoctlGetTermios(int(x.Program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("terminal modes %+v, were %+v (%v)", after, before, err)
	}
	data, err := os.ReadFile(history)
	want := "6*7\nstring.format('%d', 5)\nemit 'no newline'\nemit 'spinning' while true do end\nfunction twice(n)  return 2 * n end\n" +
		"twice(4)\nticks()\n6*7\n"
	if string(data) != want || err != nil {
		t.Errorf("history = %q, %v", data, err)
	}
}
