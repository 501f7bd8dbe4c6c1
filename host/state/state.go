// Package state is the interface to the operating system: arguments, environment, standard streams, signals, working folder, and the logger. Only
// FromOS reads os.Args, os.Stdout and the like; other code uses a Global, so that tests can run whole commands.
//
// It may import the standard library, logrus and x/term. A Global is read-only after it is filled; its logger is safe for concurrent use.
package state

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sirupsen/logrus"
	"golang.org/x/term"
)

// Global is the process's environment of a command. Main returns the exit code; this package never exits.
type Global struct {
	// Args is the command line, beginning with the program's name.
	Args []string
	// Env holds the environment variables.
	Env map[string]string
	// Stdin, Stdout and Stderr are the standard streams.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdinTTY, StdoutTTY and StderrTTY report which streams are terminals.
	StdinTTY, StdoutTTY, StderrTTY bool
	// WorkDir is the absolute path of the initial working folder.
	WorkDir string
	// Executable is the absolute path of the running binary, used to start it again.
	Executable string
	// Signals subscribes to SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2. While there is a subscription, these do not end the process, nor does a
	// write to a closed pipe, which fails with EPIPE. The returned function ends the subscription. The channel buffers four signals; further ones
	// are lost.
	Signals func() (<-chan os.Signal, func())
	// Logger writes to Stderr. It is passed to components; logrus's global logger is not used.
	Logger *logrus.Logger
}

// FromOS returns the Global of this process.
func FromOS() *Global {
	g := &Global{
		Args:      os.Args,
		Env:       environ(os.Environ()),
		Stdin:     os.Stdin,
		Stdout:    os.Stdout,
		Stderr:    os.Stderr,
		StdinTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		StdoutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		StderrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Signals:   subscribe,
	}
	// Both fail in a deleted folder or without /proc; the relative names are then used.
	var err error
	if g.WorkDir, err = os.Getwd(); err != nil {
		g.WorkDir = "."
	}
	if g.Executable, err = os.Executable(); err != nil && len(os.Args) > 0 {
		g.Executable = os.Args[0]
	}
	g.Logger = NewLogger(g.Stderr, g.ColorStderr())
	return g
}

// ColorStdout reports whether Stdout is a terminal that supports colors and NO_COLOR is not set.
func (g *Global) ColorStdout() bool { return g.StdoutTTY && g.colorAllowed() }

// ColorStderr is ColorStdout for Stderr.
func (g *Global) ColorStderr() bool { return g.StderrTTY && g.colorAllowed() }

// Interactive reports whether Stdin and Stdout are terminals.
func (g *Global) Interactive() bool { return g.StdinTTY && g.StdoutTTY }

// colorAllowed follows no-color.org: any nonempty NO_COLOR disables colors.
func (g *Global) colorAllowed() bool {
	return g.Env["NO_COLOR"] == "" && g.Env["TERM"] != "dumb"
}

// environ splits KEY=VALUE lines; the first of several equal keys is used, as by getenv.
func environ(lines []string) map[string]string {
	env := make(map[string]string, len(lines))
	for _, line := range lines {
		key, value, ok := strings.Cut(line, "=")
		if _, seen := env[key]; ok && !seen {
			env[key] = value
		}
	}
	return env
}

// subscribe implements Global.Signals on the real process.
func subscribe() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR2)
	pipe := make(chan os.Signal, 1) // never read: the failed write is sufficient
	signal.Notify(pipe, syscall.SIGPIPE)
	return ch, func() { signal.Stop(ch); signal.Stop(pipe) }
}
