package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/host/state"
	"github.com/daqiri/daqiri-run/host/summary"
)

// console is the process's two output streams as the program and its tasks see them: safe for concurrent use, and
// sharing the terminal with the live line or the prompt.
type console struct {
	screen *summary.Screen // nil where stderr is no terminal, or belongs to a prompt
	stdout *stream
	stderr *stream
}

func newConsole(g *state.Global) *console {
	c := &console{stdout: &stream{}, stderr: &stream{}}
	c.alone(g)
	return c
}

// alone is the terminal without a prompt: a live line where stderr is one.
func (c *console) alone(g *state.Global) {
	stdout, stderr := g.Stdout, g.Stderr
	if g.StderrTTY {
		c.screen = summary.NewScreen(g.Stderr, func() (int, int) { return terminalSize(g.Stderr) })
		stderr = c.screen.Writer(g.Stderr)
		if g.StdoutTTY {
			stdout = c.screen.Writer(g.Stdout)
		}
	}
	c.stdout.to(stdout)
	c.stderr.to(stderr)
}

// underPrompt gives the terminal to the prompt, which holds output while a line is edited.
func (c *console) underPrompt(g *state.Global, p *repl.Repl) {
	if c.screen != nil {
		c.screen.Clear()
	}
	c.screen = nil
	c.stdout.to(p.Writer(g.Stdout))
	c.stderr.to(p.Writer(g.Stderr))
}

// to has the stream go elsewhere from now on.
func (s *stream) to(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = w
}

// alsoTo has what is written go to another one, too.
func (s *stream) alsoTo(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.also = w
}

// terminalSize is the size of the terminal w, 0 when unknown.
func terminalSize(w io.Writer) (columns, rows int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// stream is one output stream. When its reader has gone, it calls broken once and swallows what comes after: the
// program stops in order rather than with an error at each print.
type stream struct {
	mu     sync.Mutex
	w      io.Writer
	also   io.Writer // gets what is written, too; nil: nobody
	broken func()
	gone   atomic.Bool
}

func (s *stream) Write(p []byte) (int, error) {
	if s.gone.Load() {
		return len(p), nil
	}
	s.mu.Lock()
	also := s.also
	s.mu.Unlock()
	if also != nil {
		_, _ = also.Write(p) // who looks on may be gone
	}
	return s.writeAlone(p)
}

// alone is the stream without what it also goes to.
func (s *stream) alone() io.Writer { return writerFunc(s.writeAlone) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (s *stream) writeAlone(p []byte) (int, error) {
	s.mu.Lock()
	w := s.w
	s.mu.Unlock()
	n, err := w.Write(p)
	if !errors.Is(err, syscall.EPIPE) {
		return n, err
	}
	if s.gone.CompareAndSwap(false, true) && s.broken != nil {
		s.broken()
	}
	return len(p), nil
}
