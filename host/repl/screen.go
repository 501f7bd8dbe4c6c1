package repl

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// screen shares the terminal between the line editor and the program: while a line is edited, what the program
// writes is held, up to limit bytes, and what comes after that is counted until the line is done.
type screen struct {
	mu      sync.Mutex
	notices io.Writer // takes the notice about what was not held
	limit   int
	holding bool
	held    []piece
	bytes   int
	lost    int
	// open is the writer whose last line has no newline yet: the editor would draw over it.
	open io.Writer
}

// piece is held output for one writer.
type piece struct {
	w    io.Writer
	data []byte
}

func newScreen(notices io.Writer, limit int) *screen { return &screen{notices: notices, limit: limit} }

// screenWriter is one of the program's streams on the screen.
type screenWriter struct {
	s *screen
	w io.Writer
}

func (s *screen) writer(w io.Writer) io.Writer { return screenWriter{s, w} }

func (sw screenWriter) Write(p []byte) (int, error) {
	s := sw.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if s.holding {
		s.keep(sw.w, p)
		return len(p), nil
	}
	return s.write(sw.w, p)
}

// keep holds as much of p as there is room for. Once something was lost nothing more is held, so that what is
// printed later has no holes.
func (s *screen) keep(w io.Writer, p []byte) {
	room := s.limit - s.bytes
	if s.lost > 0 {
		room = 0
	}
	n := min(room, len(p))
	s.lost += len(p) - n
	if n == 0 {
		return
	}
	s.bytes += n
	if last := len(s.held) - 1; last >= 0 && s.held[last].w == w {
		s.held[last].data = append(s.held[last].data, p[:n]...)
		return
	}
	s.held = append(s.held, piece{w, bytes.Clone(p[:n])})
}

func (s *screen) write(w io.Writer, p []byte) (int, error) {
	s.open = nil
	if p[len(p)-1] != '\n' {
		s.open = w
	}
	return w.Write(p)
}

// hold begins to hold output, on a fresh line.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLine()
	s.holding = true
}

// release prints what was held and lets output through again.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = false
	for _, p := range s.held {
		_, _ = s.write(p.w, p.data) // as with any print to a terminal that is gone
	}
	if s.lost > 0 {
		s.closeLine()
		_, _ = s.write(s.notices, fmt.Appendf(nil,
			"(%d more bytes of output came while the line was edited and were dropped)\n", s.lost))
	}
	s.held, s.bytes, s.lost = nil, 0, 0
}

// closeLine ends a line that the program left open.
func (s *screen) closeLine() {
	if s.open != nil {
		_, _ = s.write(s.open, []byte("\n"))
	}
}
