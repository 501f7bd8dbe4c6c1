package summary

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Screen shares a terminal between a live line or block, redrawn in place, and other output, before which the block is cleared. It is safe for
// concurrent use.
type Screen struct {
	mu    sync.Mutex
	w     io.Writer
	size  func() (columns, rows int)
	drawn int  // lines of the block currently drawn
	open  bool // the last output is an unterminated line, which must not be overwritten
}

// clearLine moves to the start of the line and erases it; clearBelow also erases everything below.
const (
	clearLine  = "\r\x1b[K"
	clearBelow = "\r\x1b[J"
)

// NewScreen returns a screen on the terminal w. size returns its columns and rows, 0 if unknown.
func NewScreen(w io.Writer, size func() (columns, rows int)) *Screen {
	return &Screen{w: w, size: size}
}

// Writer returns a writer to w on the same terminal.
func (s *Screen) Writer(w io.Writer) io.Writer { return &screenWriter{s, w} }

// Show draws the live line or block. It truncates text wider or longer than the terminal, so that the block can be redrawn in place.
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

// Clear removes the live block.
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

// erase returns the escape sequences that remove the current block.
func (s *Screen) erase() string {
	if s.drawn < 2 {
		return clearLine
	}
	return fmt.Sprintf("\x1b[%dA", s.drawn-1) + clearBelow
}

// write ignores errors, as the terminal may be closed.
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

// cut truncates a line to the given columns, leaving one for the cursor. Escape sequences have no width.
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
