// Package listen bounds what peers of a listening socket cost the process: connections at once, of one listener and of all. A peer that comes when
// there is no room gets that of the connection that was silent for longest, so that no peer locks others out by staying; connections that are
// trusted go last. Guard says which requests of browsers a handler answers.
//
// It imports the standard library alone. All is safe for concurrent use.
package listen

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	mostConns = 64  // of a listener
	mostAll   = 256 // of all listeners of the process
	// reserved is how many descriptors listeners leave to the rest of the process: writers open files while packets come.
	reserved = 64
	fewest   = 8 // connections of all listeners, however few descriptors there are
)

// Listener hands out connections, as net.Listener does, but for what the package's comment says. Accept goes on after errors of the system,
// such as a lack of descriptors, until Close.
type Listener struct {
	net.Listener
	closed chan struct{}
	once   sync.Once
}

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	of      *Listener
	once    sync.Once
	active  time.Time // what follows: under open.mu
	trusted bool
}

// open are the connections of all listeners.
var open = struct {
	mu    sync.Mutex
	conns map[*Conn]bool
}{conns: map[*Conn]bool{}}

// New bounds a listener.
func New(l net.Listener) *Listener { return &Listener{Listener: l, closed: make(chan struct{})} }

// Close ends the listener; its connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept waits for the next connection. Its error is that the listener was closed.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := l.Listener.Accept()
		if err == nil {
			return l.take(c), nil
		}
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			closeSilent(nil)
		}
		select {
		case <-time.After(pause):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// take makes room for a connection.
func (l *Listener) take(c net.Conn) *Conn {
	taken := &Conn{Conn: c, of: l, active: time.Now()}
	for {
		open.mu.Lock()
		mine := 0
		for other := range open.conns {
			if other.of == l {
				mine++
			}
		}
		all := len(open.conns)
		if mine < mostConns && all < room() {
			open.conns[taken] = true
			open.mu.Unlock()
			return taken
		}
		open.mu.Unlock()
		of := l
		if mine < mostConns && mine < all {
			of = nil // others have the room
		}
		closeSilent(of)
	}
}

// room is how many connections all listeners may have.
func room() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 4*mostAll {
		return mostAll
	}
	return min(mostAll, max(fewest, (int(limit.Cur)-reserved)/2))
}

// closeSilent closes the connection that was silent for longest, of a listener, or of all (nil).
func closeSilent(of *Listener) {
	open.mu.Lock()
	var found *Conn
	for c := range open.conns {
		if of != nil && c.of != of {
			continue
		}
		if found == nil || found.trusted && !c.trusted || found.trusted == c.trusted && c.active.Before(found.active) {
			found = c
		}
	}
	open.mu.Unlock()
	if found != nil {
		_ = found.Close()
	}
}

// Trust keeps the connection when others come, as long as there are some that are not trusted.
func (c *Conn) Trust() {
	open.mu.Lock()
	defer open.mu.Unlock()
	c.trusted = true
}

// seen notes that bytes went over the connection.
func (c *Conn) seen(n int) {
	if n > 0 {
		open.mu.Lock()
		c.active = time.Now()
		open.mu.Unlock()
	}
}

// Read reads as net.Conn does.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.seen(n)
	return n, err
}

// Write writes as net.Conn does.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.seen(n)
	return n, err
}

// Close ends the connection and gives its room back. A second call does nothing.
func (c *Conn) Close() (err error) {
	c.once.Do(func() {
		err = c.Conn.Close()
		open.mu.Lock()
		delete(open.conns, c)
		open.mu.Unlock()
	})
	return err
}
