// Package control is a socket on which other programs tell a running script what to do: a line each way, whose meaning is
// the script's. It knows no Lua and no session.
//
// A Server is safe for concurrent use. Each connection has a goroutine; its lines are answered one after the other.
package control

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

const (
	// MaxLine is how many bytes a line may have.
	MaxLine  = 64 << 10
	mostConn = 64
	// sendTime is how long a peer may take nothing before it is left.
	sendTime = 5 * time.Second
	// endTime is how long the end waits for answers that are under way.
	endTime = 100 * time.Millisecond
)

// Options say where a server listens: at a unix socket, or at a TCP address.
type Options struct {
	Unix string
	Mode fs.FileMode // of the unix socket's file
	TCP  string      // IP:PORT; port 0: any that is free
	// Answer gives the answer to a line, without the line's end. It may take as long as it needs.
	Answer func(peer string, line []byte) []byte
}

// Server listens until it is closed.
type Server struct {
	opts     Options
	listener net.Listener

	mu      sync.Mutex
	conns   map[net.Conn]bool
	closed  bool
	serving sync.WaitGroup // connections
}

// Listen opens the socket. A unix socket's file that nobody listens at any more is replaced.
func Listen(o Options) (*Server, error) {
	l, err := listen(o)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, listener: l, conns: map[net.Conn]bool{}}
	go s.accept()
	return s, nil
}

func listen(o Options) (net.Listener, error) {
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
		full := s.closed || len(s.conns) >= mostConn
		if !full {
			s.conns[c] = true
			s.serving.Add(1)
		}
		s.mu.Unlock()
		if full {
			_ = c.Close()
			continue
		}
		go s.serve(c)
	}
}

func (s *Server) serve(c net.Conn) {
	defer func() {
		defer s.serving.Done()
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	peer := "unix"
	if s.opts.Unix == "" {
		peer = c.RemoteAddr().String()
	}
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 4096), MaxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		answer := s.opts.Answer(peer, lines.Bytes())
		_ = c.SetWriteDeadline(time.Now().Add(sendTime))
		if _, err := c.Write(append(answer, '\n')); err != nil {
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		_ = c.SetWriteDeadline(time.Now().Add(sendTime))
		_, _ = fmt.Fprintf(c, "{\"error\":\"a line has at most %d bytes\",\"ok\":false}\n", MaxLine)
	}
}
