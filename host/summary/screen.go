package summary

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Screen shares a terminal between a live line or block, which is redrawn in place, and everything else that is written
// there: before other output it is cleared. It is safe for concurrent use.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	size  func() (columns, rows int)
	drawn int  // lines of the live block that stand there
	open  bool // the last output ended in the middle of a line, which the live line must not tear
}

// clearLine goes to the start of the line and erases it; clearBelow also erases what is below.
const (
	clearLine  = "\r\x1b[K"
	clearBelow = "\r\x1b[J"
)

// NewScreen makes a screen on the terminal w. size returns its columns and rows, 0 where nobody knows.
func NewScreen(w io.Writer, size func() (columns, rows int)) *Screen {
	return &Screen{w: w, size: size}
}

// Writer returns a writer for output that goes to w, on the same terminal.
func (s *Screen) Writer(w io.Writer) io.Writer { return &screenWriter{s, w} }

// Show draws the live line, or a block of several. What is wider or longer than the terminal is cut off, so that it can be drawn in
// place the next time.
func (s *Screen) Show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		return
	}
	columns, rows := s.size()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if rows > 1 && len(lines) > rows-1 {
		lines = lines[:rows-1]
	}
	for i := range lines {
		lines[i] = cut(lines[i], columns)
	}
	s.write(s.erase() + strings.Join(lines, "\r\n"))
	s.drawn = len(lines)
}

// Clear takes the live block away.
func (s *Screen) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

func (s *Screen) clear() {
	if s.drawn > 0 {
		s.write(s.erase())
		s.drawn = 0
	}
}

// erase takes the block that stands there off the terminal.
func (s *Screen) erase() string {
	if s.drawn < 2 {
		return clearLine
	}
	return fmt.Sprintf("\x1b[%dA", s.drawn-1) + clearBelow
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
