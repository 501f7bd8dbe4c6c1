// Package state is the process's edge: what the operating system hands to daqiri-run (arguments, environment,
// standard streams, signals, working folder) and the logger. FromOS is the only place that reads os.Args,
// os.Stdout and the like; everything else takes a Global, so a whole command runs inside a test.
//
// It may import the standard library, logrus and x/term. A Global is filled once and then only read; its
// logger is safe for concurrent use.
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

// Global is everything a command knows about its process. Main returns the exit code; nothing here exits.
type Global struct {
	// Args is the command line, the program's name first.
	Args []string
	// Env holds the environment variables.
	Env map[string]string
	// Stdin, Stdout and Stderr are the standard streams.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// StdinTTY, StdoutTTY and StderrTTY say which of them are terminals.
	StdinTTY, StdoutTTY, StderrTTY bool
	// WorkDir is the absolute path of the folder the process was started in.
	WorkDir string
	// Executable is the absolute path of the running binary, for starting it again.
	Executable string
	// Signals subscribes to SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR2. While at least one subscription stands these no longer end
	// the process, and neither does a write to a stream that nobody reads: it fails with EPIPE. The returned function
	// ends the subscription. The channel holds four signals; more are lost.
	Signals func() (<-chan os.Signal, func())
	// Logger writes to Stderr. Components receive it; none uses logrus's own global logger.
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
	// Neither can be had in a deleted folder or without /proc; the relative names then serve as far as they go.
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

// ColorStdout says whether colour may be written to Stdout: it is a terminal that can show it, and the user did
// not set NO_COLOR.
func (g *Global) ColorStdout() bool { return g.StdoutTTY && g.colorAllowed() }

// ColorStderr is ColorStdout for Stderr.
func (g *Global) ColorStderr() bool { return g.StderrTTY && g.colorAllowed() }

// Interactive says whether a person sits at both ends: Stdin and Stdout are terminals.
func (g *Global) Interactive() bool { return g.StdinTTY && g.StdoutTTY }

// colorAllowed follows no-color.org: any non-empty NO_COLOR turns colour off.
func (g *Global) colorAllowed() bool {
	return g.Env["NO_COLOR"] == "" && g.Env["TERM"] != "dumb"
}

// environ splits KEY=VALUE lines; the first of several equal keys counts, as getenv has it.
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

// subscribe is Global.Signals on the real process.
func subscribe() (<-chan os.Signal, func()) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR2)
	pipe := make(chan os.Signal, 1) // never read: the failed write says it all
	signal.Notify(pipe, syscall.SIGPIPE)
	return ch, func() { signal.Stop(ch); signal.Stop(pipe) }
}
