// Package pty gives tests a terminal: what a person sees and types on, and the program's side of it.
package pty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/tests/require"
)

// A Terminal is one of 24 lines of 80 columns.
type Terminal struct {
	Person, Program *os.File
	t               *testing.T
	seen            strings.Builder
}

// Open opens a terminal, or skips the test where there is none.
func Open(t *testing.T) *Terminal {
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
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return &Terminal{Person: person, Program: program, t: t}
}

// Resize makes the terminal one of other size, as who drags a window's corner does.
func (x *Terminal) Resize(lines, columns uint16) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.Person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		x.t.Fatal(err)
	}
}

// Start starts a program as the one that has the terminal; it is killed after a minute. end waits for it.
func (x *Terminal) Start(cmd *exec.Cmd) (end func() error) {
	x.t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.Program, x.Program, x.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill(); x.Program.Close() })
	x.t.Cleanup(func() { stuck.Stop(); _ = cmd.Process.Kill() })
	return cmd.Wait
}

// Type types a text; Watch then waits until the terminal shows all of want, in this order.
func (x *Terminal) Type(text string, want ...string) {
	x.t.Helper()
	if _, err := io.WriteString(x.Person, text); err != nil {
		x.t.Fatal(err)
	}
	x.Watch(want...)
}

// Watch reads what the terminal shows until all of want came, in this order.
func (x *Terminal) Watch(want ...string) {
	x.t.Helper()
	from := x.seen.Len()
	buf := make([]byte, 4096)
	for len(want) > 0 {
		if at := strings.Index(x.seen.String()[from:], want[0]); at >= 0 {
			from += at + len(want[0])
			want = want[1:]
			continue
		}
		n, err := x.Person.Read(buf)
		x.seen.Write(buf[:n])
		if err != nil {
			x.t.Fatalf("waiting for %q: %v after %q", want[0], err, x.seen.String())
		}
	}
}

// Seen is everything that was shown so far.
func (x *Terminal) Seen() string { return x.seen.String() }
