//go:build linux

package repl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/tests/require"
)

// terminalEnv names the history file and makes the test binary a prompt on its standard streams.
const terminalEnv = "DAQIRI_REPL_TERMINAL"

func TestMain(m *testing.M) {
	if history := os.Getenv(terminalEnv); history != "" {
		os.Exit(promptMain(history))
	}
	os.Exit(m.Run())
}

// promptMain is a program with a prompt, as the command line builds it.
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

// pty opens a terminal: what a person sees and types on, and the program's side of it.
func pty(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		require.Lack(t, "pty", err.Error())
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})); err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// watch reads what the terminal shows until all of want came, in this order.
func watch(t *testing.T, person io.Reader, seen *strings.Builder, want ...string) {
	t.Helper()
	from := seen.Len()
	buf := make([]byte, 4096)
	for len(want) > 0 {
		if at := strings.Index(seen.String()[from:], want[0]); at >= 0 {
			from += at + len(want[0])
			want = want[1:]
			continue
		}
		n, err := person.Read(buf)
		seen.Write(buf[:n])
		if err != nil {
			t.Fatalf("waiting for %q: %v after %q", want[0], err, seen.String())
		}
	}
}

// The whole prompt on a real terminal: editing, completion, Ctrl-C in both places, Ctrl-D, modes and history.
func TestTerminal(t *testing.T) {
	t.Parallel()
	person, program := pty(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
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
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill(); program.Close() })
	defer stuck.Stop()

	var seen strings.Builder
	const ctrlC, ctrlD, tab = "\x03", "\x04", "\t"
	for _, step := range []struct {
		types string
		shows []string
	}{
		{"", []string{"> "}},
		{"6*7\r", []string{"\r\n42\r\n", "> "}},
		{"strin" + tab + ".format('%d', 5)\r", []string{"string", "\r\n\"5\"\r\n", "> "}},
		{"for i = 1, 2 do\r", []string{">> "}},
		{"half a l", []string{"half a l"}}, // shown by the editor: it is reading
		{ctrlC, []string{"> "}},
		{"this is dropped", []string{"this is dropped"}},
		{ctrlC, []string{"> "}},
		{"emit 'no newline'\r", []string{"no newline\r\n", "> "}},
		{"emit 'spinning' while true do end\r", []string{"\r\nspinning"}},
		{ctrlC, []string{"prompt:1: interrupted", "> "}},
		// What comes while nothing is typed is shown, and a line that is half typed stays.
		{"ticks()\r", []string{"\r\ntick 10\r\n", "\r\ntick 40\r\n", "> "}},
		{"6*", []string{"tick 60\r\n", "> 6*"}},
		{"7\r", []string{"\r\n42\r\n", "tick 80\r\n", "> "}},
		{ctrlD, []string{"closed"}},
	} {
		if _, err := io.WriteString(person, step.types); err != nil {
			t.Fatal(err)
		}
		watch(t, person, &seen, step.shows...)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v after %q", err, seen.String())
	}
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("terminal modes %+v, were %+v (%v)", after, before, err)
	}
	data, err := os.ReadFile(history)
	want := "6*7\nstring.format('%d', 5)\nfor i = 1, 2 do\nemit 'no newline'\nemit 'spinning' while true do end\nticks()\n6*7\n"
	if string(data) != want || err != nil {
		t.Errorf("history = %q, %v", data, err)
	}
}
