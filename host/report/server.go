package report

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/daqiri/daqiri-run/host/summary"
	"github.com/daqiri/daqiri-run/runtime/listen"
)

// Server shows the page in browsers while the run goes on: it can be looked at, and nothing else.
type Server struct {
	listener net.Listener
	http     http.Server

	mu      sync.Mutex
	page    []byte               // the whole, for who comes
	viewers map[chan []byte]bool // each takes the newest body
	ended   bool
}

// sendTime is how long a viewer may take nothing before it is left.
const sendTime = 10 * time.Second

// Listen opens the page at HOST:PORT; without a host for this machine alone.
func Listen(address string) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not HOST:PORT, such as :8080 (this machine alone) or 0.0.0.0:8080", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	s := &Server{viewers: map[chan []byte]bool{}}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	s.listener = listen.New(l)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.whole)
	mux.HandleFunc("GET /events", s.events)
	s.http = http.Server{Handler: listen.Guard(host, mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	go func() { _ = s.http.Serve(s.listener) }() // it ends with Close
	return s, nil
}

// URL is where the page is.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// Watched says whether somebody looks, or the page was never made: only then is it worth making.
func (s *Server) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page == nil || len(s.viewers) > 0
}

// Show hands the run as it is to everybody who looks. One who reads too slowly misses some.
func (s *Server) Show(r *Recorder, report *summary.Report) error {
	body, whole, err := r.render(report, true)
	if err != nil {
		return err
	}
	text, err := json.Marshal(string(body))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = whole
	for v := range s.viewers {
		select {
		case <-v: // what was not taken is old by now
		default:
		}
		v <- text
	}
	return nil
}

// Close tells viewers that the run has ended, and ends.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	for v := range s.viewers {
		close(v)
	}
	clear(s.viewers)
	s.mu.Unlock()
	timer := time.AfterFunc(time.Second, func() { _ = s.http.Close() }) // a viewer that does not read
	defer timer.Stop()
	_ = s.http.Shutdown(context.Background())
}

func (s *Server) whole(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	text := s.page
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime))
	_, _ = w.Write(text) // a viewer that is gone
}

// events sends the body of the page, as server-sent events (HTML standard, 9.2), each time it is made.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	v := make(chan []byte, 1)
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.viewers[v] = true
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.viewers, v)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	for !ended {
		select {
		case text, more := <-v:
			_ = out.SetWriteDeadline(time.Now().Add(sendTime)) // of the connection, which net/http made
			if ended = !more; ended {
				break
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
	_, _ = fmt.Fprint(w, "event: end\ndata: \n\n")
	_ = out.Flush()
}
