package summary

import (
	"io"
	"sync"
)

// Screen shares a terminal between the live line, which is redrawn in place, and everything else that is written
// there: before other output the line is cleared. It is safe for concurrent use.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int
	drawn bool
	open  bool // the last output ended in the middle of a line, which the live line must not tear
}

// clearLine goes to the start of the line and erases it.
const clearLine = "\r\x1b[K"

// NewScreen makes a screen on the terminal w. width returns its columns, 0 where nobody knows.
func NewScreen(w io.Writer, width func() int) *Screen { return &Screen{w: w, width: width} }

// Writer returns a writer for output that goes to w, on the same terminal.
func (s *Screen) Writer(w io.Writer) io.Writer { return &screenWriter{s, w} }

// Show draws the live line. Where it is wider than the terminal its end is cut off, so that it stays one line.
func (s *Screen) Show(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return
	}
	s.write(clearLine + cut(line, s.width()))
	s.drawn = true
}

// Clear takes the live line away.
func (s *Screen) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *Screen) clear() {
	if s.drawn {
		s.write(clearLine)
		s.drawn = false
	}
}

// write has nobody to tell when the terminal is gone.
func (s *Screen) write(text string) { _, _ = io.WriteString(s.w, text) }

type screenWriter struct {
	s *Screen
	w io.Writer
}

func (sw *screenWriter) Write(p []byte) (int, error) {
	s := sw.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	s.clear()
	s.open = p[len(p)-1] != '\n'
	return sw.w.Write(p)
}

// cut shortens a line to fit into so many columns, leaving one free for the cursor. Escape sequences take none.
func cut(line string, columns int) string {
	if columns <= 0 {
		return line
	}
	used, escape := 0, false
	for i, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r == '[' || r < '@' || r > '~'
		case used >= columns-1:
			return line[:i] + "\x1b[0m"
		default:
			used++
		}
	}
	return line
}
