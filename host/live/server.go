// Package live serves a page to browsers, and sends them updates. A page is read-only: no request changes the process.
package live

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/daqiri/daqiri-run/runtime/listen"
)

// Server serves a page.
type Server struct {
	listener net.Listener
	http     http.Server

	mu      sync.Mutex
	page    []byte               // complete page, for new viewers
	viewers map[chan []byte]bool // each receives the newest update
	ended   bool
}

// sendTime is the write timeout after which a viewer is disconnected.
const sendTime = 10 * time.Second

// Listen serves the page at HOST:PORT; without a host only on this machine.
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
	go func() { _ = s.http.Serve(s.listener) }() // ends with Close
	return s, nil
}

// URL returns the address of the page.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// Watched reports whether there are viewers, or Send was not called yet: otherwise an update is unnecessary.
func (s *Server) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page == nil || len(s.viewers) > 0
}

// Send sends an update, a line of text, to all viewers; page is what new viewers get. A slow viewer misses updates.
func (s *Server) Send(page, update []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = page
	for v := range s.viewers {
		select {
		case <-v: // an unread update is outdated
		default:
		}
		v <- update
	}
}

// Close ends the event streams and the server.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	for v := range s.viewers {
		close(v)
	}
	clear(s.viewers)
	s.mu.Unlock()
	timer := time.AfterFunc(time.Second, func() { _ = s.http.Close() }) // for viewers that do not read
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
	_, _ = w.Write(text) // fails if the viewer disconnected
}

// events sends each update as a server-sent event (HTML standard, 9.2).
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
			_ = out.SetWriteDeadline(time.Now().Add(sendTime)) // on the connection of net/http
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
