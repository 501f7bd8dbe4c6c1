// Package listen limits the number of connections that listening sockets accept, per listener and for the whole process. When the limit is reached, a
// new connection replaces the one that has been idle longest, so idle peers cannot block others; trusted connections are replaced last. Guard filters
// the requests of browsers.
//
// The package imports the standard library only. All of it is safe for concurrent use.
package listen

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	mostConns = 64  // per listener
	mostAll   = 256 // for all listeners of the process
	// reserved is the number of descriptors left for the rest of the process, such as writers that open files.
	reserved = 64
	fewest   = 8 // minimum for all listeners, regardless of the descriptor limit
)

// Listener is a net.Listener with the package's connection limits. Accept retries after system errors, such as a lack of descriptors, until Close.
type Listener struct {
	net.Listener
	closed chan struct{} // changes with open.mu
	conns  sync.WaitGroup
}

// Conn is a connection of a Listener.
type Conn struct {
	net.Conn
	of      *Listener
	once    sync.Once
	active  time.Time // protected by open.mu, as is trusted
	trusted bool
}

// open holds the connections of all listeners.
var open = struct {
	mu    sync.Mutex
	conns map[*Conn]bool
}{conns: map[*Conn]bool{}}

// New returns a Listener that limits the connections of l.
func New(l net.Listener) *Listener { return &Listener{Listener: l, closed: make(chan struct{})} }

// Close closes the listener. Accepted connections remain open.
func (l *Listener) Close() error {
	open.mu.Lock()
	if !l.ended() {
		close(l.closed)
	}
	open.mu.Unlock()
	return l.Listener.Close()
}

func (l *Listener) ended() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Serve calls serve for each connection, in a goroutine of its own, and closes the connection afterwards. It returns after Close.
func (l *Listener) Serve(serve func(*Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			serve(c.(*Conn))
		}()
	}
}

// Conns returns the open connections. After Close no others follow.
func (l *Listener) Conns() (conns []*Conn) {
	open.mu.Lock()
	defer open.mu.Unlock()
	for c := range open.conns {
		if c.of == l {
			conns = append(conns, c)
		}
	}
	return conns
}

// Wait waits until all connections are closed, for the limit at most. The listener is closed.
func (l *Listener) Wait(limit time.Duration) {
	ended := make(chan struct{})
	go func() { l.conns.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// Accept waits for the next connection. It returns an error only after Close.
func (l *Listener) Accept() (net.Conn, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		c, err := l.Listener.Accept()
		if err == nil {
			return l.take(c)
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

// take registers a connection, and closes others while the limits are exceeded. After Close it closes the connection and returns an error.
func (l *Listener) take(c net.Conn) (net.Conn, error) {
	taken := &Conn{Conn: c, of: l, active: time.Now()}
	for {
		open.mu.Lock()
		if l.ended() {
			open.mu.Unlock()
			_ = c.Close()
			return nil, net.ErrClosed
		}
		mine := 0
		for other := range open.conns {
			if other.of == l {
				mine++
			}
		}
		all := len(open.conns)
		if mine < mostConns && all < room() {
			open.conns[taken] = true
			l.conns.Add(1)
			open.mu.Unlock()
			return taken, nil
		}
		open.mu.Unlock()
		of := l
		if mine < mostConns && mine < all {
			of = nil // other listeners use most of the limit
		}
		closeSilent(of)
	}
}

// room returns the maximum number of connections of all listeners.
func room() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 4*mostAll {
		return mostAll
	}
	return min(mostAll, max(fewest, (int(limit.Cur)-reserved)/2))
}

// closeSilent closes the connection that has been idle longest, of one listener or of all (nil). Trusted connections are closed last.
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

// Trust marks the connection as trusted, so that it is replaced only if no untrusted one is left.
func (c *Conn) Trust() {
	open.mu.Lock()
	defer open.mu.Unlock()
	c.trusted = true
}

// seen records activity if n > 0.
func (c *Conn) seen(n int) {
	if n > 0 {
		open.mu.Lock()
		c.active = time.Now()
		open.mu.Unlock()
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.seen(n)
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.seen(n)
	return n, err
}

// Close closes the connection and unregisters it. Further calls do nothing.
func (c *Conn) Close() (err error) {
	c.once.Do(func() {
		err = c.Conn.Close()
		open.mu.Lock()
		delete(open.conns, c)
		open.mu.Unlock()
		c.of.conns.Done()
	})
	return err
}
