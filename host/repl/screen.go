package repl

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// showEvery is how long the program's output waits while a line is edited, so that a line can be typed beside a handler that
	// prints without end.
	showEvery = 200 * time.Millisecond
	// eraseLine takes the line that is edited off a terminal.
	eraseLine = "\r\x1b[K"
)

// screen shares the terminal between the line editor and the program: while a line is edited, what the program
// writes is held, up to limit bytes, until it is shown above that line, some times a second, or the line is done. What comes beyond
// the limit is counted.
type screen struct {
	mu       sync.Mutex
	notices  io.Writer // takes the notice about what was not held
	terminal io.Writer // that the line is edited on; nil: there is none, and nothing is shown before the line is done
	redraw   func()    // has the editor draw its line anew
	pending  bool      // show will be called
	limit    int
	holding  bool
	held     []piece
	bytes    int
	lost     int
	// open is the writer whose last line has no newline yet: the editor would draw over it.
	open io.Writer
}

// piece is held output for one writer.
type piece struct {
	w    io.Writer
	data []byte
}

func newScreen(notices io.Writer, limit int) *screen { return &screen{notices: notices, limit: limit} }

// showOn has held output shown on the terminal while a line is edited there.
func (s *screen) showOn(terminal io.Writer, redraw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terminal, s.redraw = terminal, redraw
}

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
	if s.redraw != nil && !s.pending {
		s.pending = true
		time.AfterFunc(showEvery, s.show)
	}
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

// show prints what was held above the line that is edited.
func (s *screen) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = false
	if !s.holding || len(s.held) == 0 {
		return
	}
	_, _ = io.WriteString(s.terminal, eraseLine) // as with any print to a terminal that is gone
	s.print()
	s.closeLine()
	s.redraw()
}

// release prints what was held and lets output through again.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = false
	s.print()
}

// print prints what was held.
func (s *screen) print() {
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
