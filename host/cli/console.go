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
	"github.com/daqiri/daqiri-run/runtime/picture"
)

// console is the process's two output streams, shared by the program, its tasks, the live line and the prompt. Safe for concurrent use.
type console struct {
	screen *summary.Screen // nil: stderr is not a terminal, or a prompt uses it
	stdout *stream
	stderr *stream
}

func newConsole(g *state.Global) *console {
	c := &console{stdout: &stream{}, stderr: &stream{}}
	c.alone(g)
	return c
}

// alone sets up the terminal without a prompt, with a live line if stderr is a terminal.
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

// underPrompt passes output through the prompt, which buffers it while a line is edited.
func (c *console) underPrompt(g *state.Global, p *repl.Repl) {
	if c.screen != nil {
		c.screen.Clear()
	}
	c.screen = nil
	c.stdout.to(p.Writer(g.Stdout))
	c.stderr.to(p.Writer(g.Stderr))
}

// to redirects the stream.
func (s *stream) to(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w = w
}

// alsoTo copies the stream to a second writer.
func (s *stream) alsoTo(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.also = w
}

// terminalSize returns the size of the terminal w, or 0 if unknown.
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

// screenOf describes the terminal behind stdout.
func screenOf(g *state.Global) picture.Screen {
	width, _ := terminalSize(g.Stdout)
	return picture.Screen{Width: width, Color: g.ColorStdout(), Plain: !g.StdoutTTY}
}

// stream is one output stream. When its reader has closed the pipe, it calls broken once and discards further output, so that the program stops
// in order instead of failing at each print.
type stream struct {
	mu     sync.Mutex
	w      io.Writer
	also   io.Writer // receives a copy; nil: none
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
		_, _ = also.Write(p) // the viewer may have disconnected
	}
	return s.writeAlone(p)
}

// alone returns a writer to the stream without the copy.
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
