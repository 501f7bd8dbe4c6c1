package repl

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// showEvery is the interval at which buffered output is shown while a line is edited, so that typing remains possible while a handler prints
	// continuously.
	showEvery = 200 * time.Millisecond
	// eraseLine erases the edited line on a terminal.
	eraseLine = "\r\x1b[K"
)

// screen shares the terminal between the line editor and the program: while a line is edited, program output is buffered up to limit bytes, until
// it is shown above the line or the line is done. Bytes beyond the limit are counted.
type screen struct {
	mu       sync.Mutex
	notices  io.Writer // receives the notice about dropped output
	terminal io.Writer // terminal of the line editor; nil: output is shown after the line is done
	redraw   func()    // redraws the line editor
	pending  bool      // show is scheduled
	limit    int
	holding  bool
	held     []piece
	bytes    int
	lost     int
	// open is the writer whose last line is not terminated: the editor would overwrite it.
	open io.Writer
}

// piece is buffered output of one writer.
type piece struct {
	w    io.Writer
	data []byte
}

func newScreen(notices io.Writer, limit int) *screen { return &screen{notices: notices, limit: limit} }

// showOn enables showing buffered output on the terminal while a line is edited.
func (s *screen) showOn(terminal io.Writer, redraw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terminal, s.redraw = terminal, redraw
}

// screenWriter is a stream of the program on the screen.
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

// keep buffers as much of p as fits. After bytes were dropped it buffers no more, so that the printed output has no gaps.
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

// hold starts buffering, on a new line.
func (s *screen) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLine()
	s.holding = true
}

// show prints buffered output above the edited line.
func (s *screen) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = false
	if !s.holding || len(s.held) == 0 {
		return
	}
	_, _ = io.WriteString(s.terminal, eraseLine) // as for any write to a closed terminal
	s.print()
	s.closeLine()
	s.redraw()
}

// release prints buffered output and ends buffering.
func (s *screen) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holding = false
	s.print()
}

// print prints buffered output.
func (s *screen) print() {
	for _, p := range s.held {
		_, _ = s.write(p.w, p.data) // as for any write to a closed terminal
	}
	if s.lost > 0 {
		s.closeLine()
		_, _ = s.write(s.notices, fmt.Appendf(nil,
			"(%d more bytes of output came while the line was edited and were dropped)\n", s.lost))
	}
	s.held, s.bytes, s.lost = nil, 0, 0
}

// closeLine terminates an unterminated output line.
func (s *screen) closeLine() {
	if s.open != nil {
		_, _ = s.write(s.open, []byte("\n"))
	}
}
