// Package control serves a line-based control socket for a running script: each request line gets one response line, and the script defines their
// meaning. The package does not depend on Lua or on sessions.
//
// A peer that connects over TCP must first authenticate itself, and requests of web pages are not answered (see Options).
//
// The package imports runtime/listen. A Server is safe for concurrent use. Each connection has a goroutine, which answers its lines in order.
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
	// MaxLine is the maximum length of a line, in bytes.
	MaxLine = 64 << 10
	// sendTime is the write timeout, after which a peer that does not read is disconnected.
	sendTime = 5 * time.Second
	// endTime is how long Close waits for pending responses.
	endTime = 100 * time.Millisecond
	// strangeTime is the time within which a peer of a TCP socket must authenticate itself.
	strangeTime = 10 * time.Second
)

// Options selects where a server listens: on a unix socket or on a TCP address.
type Options struct {
	Unix string
	Mode fs.FileMode // permissions of the unix socket's file
	TCP  string      // IP:PORT; port 0 selects a free one
	// Answer returns the response to a line, both without a line end. It may block.
	Answer func(p *Peer, line []byte) []byte
}

// Peer is the remote end of a connection.
type Peer struct {
	Name  string // "unix", or IP:PORT
	Known bool   // authenticated; set by Answer
}

// Server accepts connections until it is closed.
type Server struct {
	opts     Options
	listener *listen.Listener

	mu     sync.Mutex
	closed bool
}

// Listen opens the socket. It replaces the file of a unix socket that no process listens on.
func Listen(o Options) (*Server, error) {
	l, err := open(o)
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, listener: listen.New(l)}
	go s.listener.Serve(s.serve)
	return s, nil
}

func open(o Options) (net.Listener, error) {
	if o.Unix == "" {
		if _, err := netip.ParseAddrPort(o.TCP); err != nil {
			return nil, fmt.Errorf("%q is not IP:PORT, such as 127.0.0.1:7150", o.TCP)
		}
		return net.Listen("tcp", o.TCP)
	}
	return listen.Unix("unix", o.Unix, o.Mode)
}

// Address returns the address or path that the server listens on.
func (s *Server) Address() string {
	if s.opts.Unix != "" {
		return s.opts.Unix
	}
	return s.listener.Addr().String()
}

// Close ends all connections: it stops reading, but sends pending responses, such as the one to the request that caused Close. Further calls do
// nothing.
func (s *Server) Close() {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return
	}
	_ = s.listener.Close()
	if s.opts.Unix != "" {
		_ = os.Remove(s.opts.Unix)
	}
	conns := s.listener.Conns()
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now())
	}
	s.listener.Wait(endTime)
	for _, c := range conns {
		_ = c.Close()
	}
}

func (s *Server) serve(c *listen.Conn) {
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
			return // a request of a web page, or of a client that expects a web server
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

// http matches the first line of an HTTP request, or a header line (RFC 9112). Control messages match neither.
var http = regexp.MustCompile(`^[A-Z]+ \S+ HTTP/\d|^PRI \* HTTP|^[A-Za-z-]+: `)

// answer sends the response to a line. It returns false if the connection has ended.
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

// deadline sets the connection's read deadline, unless Close has already set one.
func (s *Server) deadline(c net.Conn, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = c.SetReadDeadline(at)
	}
}
