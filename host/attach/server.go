package attach

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daqiri/daqiri-run/host/repl"
	"github.com/daqiri/daqiri-run/runtime/listen"
)

const (
	// sendTime is the write timeout after which a viewer is disconnected.
	sendTime = 2 * time.Second
	// greetTime is the time allowed for a client's hello.
	greetTime = 5 * time.Second
)

// Options configure a job's server.
type Options struct {
	Version, Script string
	// Serve runs requests on the main task until the channel is closed; interrupt ends the running chunk.
	Serve func(requests <-chan repl.Request) (interrupt func(), err error)
	// Log records attached clients and chunks typed.
	Log func(text string, fields map[string]any)
}

// Server is the job's side of all connections.
type Server struct {
	opts     Options
	path     string
	listener *listen.Listener

	mu     sync.Mutex
	peers  map[*peer]bool // viewers and prompts
	writer *peer          // the prompt
}

// peer is an attached client with a queue of outgoing messages. A slow client is disconnected and never blocks the job.
type peer struct {
	*wire
	conn net.Conn
	out  chan message
}

// peerQueue is the maximum number of queued messages per peer.
const peerQueue = 256

// send queues a message; if the queue is full it closes the connection.
func (p *peer) send(m message) {
	select {
	case p.out <- m:
	default:
		_ = p.conn.Close() // ends its reader
	}
}

// deliver writes queued messages until gone is closed.
func (p *peer) deliver(gone <-chan struct{}) {
	for {
		select {
		case m := <-p.out:
			if p.write(m) != nil {
				_ = p.conn.Close()
			}
		case <-gone:
			return
		}
	}
}

// Listen opens the socket with access for its owner only. It replaces the socket of a job that no longer runs.
func Listen(path string, o Options) (*Server, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := shared(filepath.Dir(path)); err != nil {
		return nil, err
	}
	address := &net.UnixAddr{Name: path, Net: "unix"}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if c, err := net.DialUnix("unix", nil, address); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s: another job listens there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	old := syscall.Umask(0o177) // so that others never have access
	l, err := net.ListenUnix("unix", address)
	syscall.Umask(old)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, path: path, listener: listen.New(l), peers: map[*peer]bool{}}
	go s.listener.Serve(s.serve)
	return s, nil
}

// Path returns the path of the socket.
func (s *Server) Path() string { return s.path }

// Close ends all connections and removes the socket.
func (s *Server) Close() {
	_ = s.listener.Close() // also removes the file
	for _, c := range s.listener.Conns() {
		_ = c.Close()
	}
}

// serve handles one connection.
func (s *Server) serve(c *listen.Conn) {
	w := &peer{wire: newWire(timed{c}), conn: c, out: make(chan message, peerQueue)}
	gone := make(chan struct{})
	defer func() {
		close(gone)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.peers, w)
		if s.writer == w {
			s.writer = nil
		}
	}()
	pid, err := sameUser(c.Conn)
	if err != nil {
		_ = w.write(hello{Protocol: protocol, Error: err.Error() + ": only its user may attach to a job"})
		return
	}
	if w.write(hello{Protocol: protocol, Version: s.opts.Version, PID: os.Getpid(), Script: s.opts.Script}) != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(greetTime))
	var h hello
	if w.read(&h) != nil || h.Protocol != protocol {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	s.mu.Lock()
	taken := h.Mode == "prompt" && s.writer != nil
	if h.Mode == "prompt" && !taken {
		s.writer = w
	}
	s.mu.Unlock()
	if h.Mode == "prompt" && !taken {
		c.Trust() // viewers are evicted first when connections are exhausted
	}
	if taken {
		_ = w.write(hello{Protocol: protocol, Error: "another client has the prompt of this job: use --view"})
		return
	}
	_ = w.write(hello{Protocol: protocol})
	go w.deliver(gone)
	s.mu.Lock()
	s.peers[w] = true
	s.mu.Unlock()
	if h.Mode != "prompt" {
		s.opts.Log("a viewer has attached", map[string]any{"pid": pid})
		var m message
		for w.read(&m) == nil { // until it disconnects; viewers send nothing
		}
		return
	}
	s.opts.Log("a prompt has attached", map[string]any{"pid": pid})
	s.prompt(w)
	s.opts.Log("the prompt has gone", map[string]any{"pid": pid})
}

// prompt serves a prompt until the connection ends.
func (s *Server) prompt(w *peer) {
	requests := make(chan repl.Request)
	defer close(requests)
	interrupt, err := s.opts.Serve(requests)
	if err != nil {
		w.send(message{Text: err.Error() + "\n"})
		return
	}
	// A separate goroutine waits for the main task, so that interrupts are received meanwhile.
	waiting := make(chan repl.Request, 16)
	gone := make(chan struct{})
	var passing sync.WaitGroup
	defer passing.Wait() // it sends to requests, which is closed next
	defer close(gone)
	passing.Go(func() { pass(waiting, requests, gone) })
	for {
		var m message
		if w.read(&m) != nil {
			interrupt() // no client to answer any more
			return
		}
		switch {
		case m.Interrupt:
			interrupt()
		case m.Exec != nil:
			s.opts.Log("typed", map[string]any{"chunk": strings.TrimSpace(m.Exec.Source)})
			waiting <- question{w, m}
		case m.Complete != nil:
			waiting <- question{w, m}
		}
	}
}

// pass forwards requests until gone is closed.
func pass(from <-chan repl.Request, to chan<- repl.Request, gone <-chan struct{}) {
	for {
		select {
		case r := <-from:
			select {
			case to <- r:
			case <-gone:
				return
			}
		case <-gone:
			return
		}
	}
}

// question is a request received from a client.
type question struct {
	w *peer
	m message
}

// Serve answers the request, on the main task.
func (q question) Serve(e repl.Executor) {
	answer := message{ID: q.m.ID, Done: true}
	if q.m.Exec != nil {
		output, err := e.Exec(q.m.Exec.Name, q.m.Exec.Source)
		answer.Output = output
		if err != nil {
			answer.Error = err.Error()
		}
	} else {
		answer.Head, answer.Words, answer.Tail = e.Complete(q.m.Complete.Line, q.m.Complete.Pos)
	}
	q.w.send(answer)
}

// Watched reports whether a client is attached.
func (s *Server) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.peers) > 0
}

// Show sends the live line and the full view to all clients.
func (s *Server) Show(line, view string) { s.send(message{Line: line, View: view}) }

// Write sends the job's output to the prompt; it never fails because of a client.
func (s *Server) Write(p []byte) (int, error) {
	s.mu.Lock()
	w := s.writer
	s.mu.Unlock()
	if w != nil {
		w.send(message{Text: string(p)})
	}
	return len(p), nil
}

func (s *Server) send(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.peers {
		w.send(m)
	}
}

// timed is a connection with a write timeout.
type timed struct{ net.Conn }

func (t timed) Write(p []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(sendTime)); err != nil {
		return 0, err
	}
	return t.Conn.Write(p)
}

// sameUser returns the peer's process id; the peer must belong to the user of this process.
func sameUser(c net.Conn) (pid int, err error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var fault error
	if err := raw.Control(func(fd uintptr) { cred, fault = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || fault != nil {
		return 0, errors.Join(err, fault)
	}
	if int(cred.Uid) != os.Getuid() {
		return 0, fmt.Errorf("user %d is at one end, and user %d at the other", os.Getuid(), cred.Uid)
	}
	return int(cred.Pid), nil
}
