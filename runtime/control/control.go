// Package control is a socket on which other programs tell a running script what to do: a line each way, whose meaning is
// the script's. It knows no Lua and no session.
//
// A peer over TCP has to show first that it may ask, and no web page gets an answer (Options).
//
// It imports runtime/listen. A Server is safe for concurrent use. Each connection has a goroutine; its lines are answered one after the other.
package control

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/daqiri/daqiri-run/runtime/listen"
)

const (
	// MaxLine is how many bytes a line may have.
	MaxLine = 64 << 10
	// sendTime is how long a peer may take nothing before it is left.
	sendTime = 5 * time.Second
	// endTime is how long the end waits for answers that are under way.
	endTime = 100 * time.Millisecond
	// strangeTime is how long a peer of a TCP socket may take until it has shown that it may ask.
	strangeTime = 10 * time.Second
)

// Options say where a server listens: at a unix socket, or at a TCP address.
type Options struct {
	Unix string
	Mode fs.FileMode // of the unix socket's file
	TCP  string      // IP:PORT; port 0: any that is free
	// Answer gives the answer to a line, without the line's end. It may take as long as it needs.
	Answer func(p *Peer, line []byte) []byte
}

// Peer is who asks on a connection.
type Peer struct {
	Name  string // "unix", or IP:PORT
	Known bool   // it may ask: Answer says so
}

// Server listens until it is closed.
type Server struct {
	opts     Options
	listener *listen.Listener

	mu      sync.Mutex
	conns   map[net.Conn]bool
	closed  bool
	serving sync.WaitGroup // connections
}

// Listen opens the socket. A unix socket's file that nobody listens at any more is replaced.
func Listen(o Options) (*Server, error) {
	l, err := open(o)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, listener: listen.New(l), conns: map[net.Conn]bool{}}
	go s.accept()
	return s, nil
}

func open(o Options) (net.Listener, error) {
	if o.Unix == "" {
		if _, err := netip.ParseAddrPort(o.TCP); err != nil {
			return nil, fmt.Errorf("%q is not IP:PORT, such as 127.0.0.1:7150", o.TCP)
		}
		return net.Listen("tcp", o.TCP)
	}
	if info, err := os.Lstat(o.Unix); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("%s is there, and is no socket", o.Unix)
		}
		if c, err := net.Dial("unix", o.Unix); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("%s: somebody listens there", o.Unix)
		}
		if err := os.Remove(o.Unix); err != nil {
			return nil, err
		}
	}
	// Under a name of its own until its mode is right: it is never open to others.
	made := fmt.Sprintf("%s.%d", o.Unix, os.Getpid())
	l, err := net.Listen("unix", made)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(made, o.Mode); err == nil {
		err = os.Rename(made, o.Unix)
	}
	if err != nil {
		_ = l.Close()
		_ = os.Remove(made)
		return nil, err
	}
	return l, nil
}

// Address is where it listens.
func (s *Server) Address() string {
	if s.opts.Unix != "" {
		return s.opts.Unix
	}
	return s.listener.Addr().String()
}

// Close ends all connections: nothing more is read, and what was answered is sent, as the answer to the line that had it
// closed. A second call does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	conns := s.conns
	s.conns = map[net.Conn]bool{}
	s.mu.Unlock()
	if was {
		return
	}
	_ = s.listener.Close()
	if s.opts.Unix != "" {
		_ = os.Remove(s.opts.Unix)
	}
	for c := range conns {
		_ = c.SetReadDeadline(time.Now())
	}
	ended := make(chan struct{})
	go func() { s.serving.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(endTime):
	}
	for c := range conns {
		_ = c.Close()
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.mu.Lock()
		ended := s.closed
		if !ended {
			s.conns[c] = true
			s.serving.Add(1)
		}
		s.mu.Unlock()
		if ended {
			_ = c.Close()
			continue
		}
		go s.serve(c.(*listen.Conn))
	}
}

func (s *Server) serve(c *listen.Conn) {
	defer func() {
		defer s.serving.Done()
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	peer := &Peer{Name: "unix"}
	if s.opts.Unix == "" {
		peer.Name = c.RemoteAddr().String()
		s.deadline(c, time.Now().Add(strangeTime))
	}
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 4096), MaxLine)
	for lines.Scan() {
		line := lines.Bytes()
		if s.opts.Unix == "" && http.Match(line) {
			return // a browser asks on behalf of a page, or a client takes this for a web server
		}
		if len(line) > 0 && !s.answer(c, peer, line) {
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		_ = c.SetWriteDeadline(time.Now().Add(sendTime))
		_, _ = fmt.Fprintf(c, "{\"error\":\"a line has at most %d bytes\",\"ok\":false}\n", MaxLine)
	}
}

// http is the first line of a request, or a line of a header (RFC 9112): no message has these.
var http = regexp.MustCompile(`^[A-Z]+ \S+ HTTP/\d|^PRI \* HTTP|^[A-Za-z-]+: `)

// answer sends the answer to a line; false: the connection is over.
func (s *Server) answer(c *listen.Conn, peer *Peer, line []byte) bool {
	was := peer.Known
	text := s.opts.Answer(peer, line)
	if peer.Known && !was {
		s.deadline(c, time.Time{})
		c.Trust()
	}
	_ = c.SetWriteDeadline(time.Now().Add(sendTime))
	_, err := c.Write(append(text, '\n'))
	return err == nil
}

// deadline ends the connection's reads at a time, unless the server has ended them.
func (s *Server) deadline(c net.Conn, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = c.SetReadDeadline(at)
	}
}
