package listen

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// server starts a listener that sends each accepted connection to got.
func server(t *testing.T) (l *Listener, got chan *Conn) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, got = New(inner), make(chan *Conn, 1000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(got)
				return
			}
			got <- c.(*Conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		for c := range got {
			_ = c.Close()
		}
	})
	return l, got
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", l.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestServe checks that each connection has a goroutine, that connections outlive the listener until they are closed, and that Wait ends with the last.
func TestServe(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, served, begun := New(inner), make(chan bool), make(chan bool)
	go func() {
		l.Serve(func(c *Conn) { begun <- true; _, _ = io.Copy(c, c) })
		close(served)
	}()
	peers := []net.Conn{dial(t, l), dial(t, l)}
	for range peers {
		<-begun
	}
	_ = l.Close()
	_ = l.Close()
	<-served
	for _, p := range peers {
		echo := make([]byte, 1)
		if _, err := p.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p, echo); err != nil || echo[0] != 'x' {
			t.Errorf("%q, %v", echo, err)
		}
	}
	if n := len(l.Conns()); n != 2 {
		t.Errorf("%d connections", n)
	}
	l.Wait(time.Nanosecond) // none has ended
	for _, p := range peers {
		_ = p.Close()
	}
	l.Wait(time.Hour)
	if n := len(l.Conns()); n != 0 {
		t.Errorf("%d connections are open after all ended", n)
	}
}

// TestSilentGoFirst checks that a new connection replaces the one that has been idle longest, and that a trusted one stays however long it is idle.
func TestSilentGoFirst(t *testing.T) {
	l, got := server(t)
	trusted, first, second := dial(t, l), dial(t, l), dial(t, l)
	a, b, c := <-got, <-got, <-got
	a.Trust()
	for range mostConns - 3 {
		dial(t, l)
		<-got
	}
	if _, err := b.Write([]byte("x")); err != nil { // makes the second connection the longest idle one
		t.Fatal(err)
	}
	dial(t, l)
	<-got
	_ = second.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := second.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the one that was silent for longest: %v", err)
	}
	for _, there := range []struct {
		peer net.Conn
		c    *Conn
	}{{trusted, a}, {first, b}} {
		if _, err := there.c.Write([]byte("y")); err != nil {
			t.Errorf("another one has gone: %v", err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
}

// TestNoDescriptors checks that without free descriptors Accept continues and closes idle connections, so that the process can open a file again.
func TestNoDescriptors(t *testing.T) {
	l, got := server(t)
	for range 10 {
		dial(t, l)
		<-got
	}
	connectWithout(t, l.Addr().(*net.TCPAddr))
	select {
	case c := <-got:
		if c == nil {
			t.Fatal("Accept has ended")
		}
	case <-time.After(time.Minute):
		t.Fatal("Accept does not go on")
	}
}

// connectWithout connects with a socket opened in advance, while the process cannot open further descriptors.
func connectWithout(t *testing.T, to *net.TCPAddr) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 1, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
	time.Sleep(20 * time.Millisecond) // Accept fails meanwhile
	if back := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil || back != nil {
		t.Fatal(err, back)
	}
}

// TestGuard checks that requests by the machine's own names are answered, and that those of other origins or by other names in a browser are not.
func TestGuard(t *testing.T) {
	machine, _ := os.Hostname()
	h := Guard("recorder.lab", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "figures") }))
	for _, c := range []struct {
		name, host string
		header     map[string]string
		want       int
	}{
		{"prometheus by any name", "alias.lab:9464", nil, 200},
		{"a browser by address", "127.0.0.1:8080", map[string]string{"User-Agent": "Mozilla/5.0"}, 200},
		{"a browser by IPv6 address", "[::1]:8080", map[string]string{"User-Agent": "Mozilla/5.0"}, 200},
		{"a browser by name", "recorder.lab:8080", map[string]string{"User-Agent": "Mozilla/5.0", "Sec-Fetch-Site": "none"}, 200},
		{"a browser by the machine's name", machine + ":8080", map[string]string{"User-Agent": "Mozilla/5.0"}, 200},
		{"the page's own events", "localhost:8080", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8080"}, 200},
		{"a link of another page", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"a frame of another page", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{"a fetch of another page", "localhost:8080", map[string]string{"Origin": "http://evil.example"}, 403},
		{"an image of another page", "localhost:8080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"another port of this machine", "localhost:8080", map[string]string{"Origin": "http://localhost:3000"}, 403},
		{"a name that leads here", "evil.example:8080", map[string]string{"Sec-Fetch-Site": "same-origin"}, 421},
		{"the same of an old browser", "evil.example:8080", map[string]string{"User-Agent": "Mozilla/4.0"}, 421},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = c.host
		for key, value := range c.header {
			r.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want || (w.Code == 200) != strings.Contains(w.Body.String(), "figures") || w.Header().Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %d %q, want %d", c.name, w.Code, w.Body.String(), c.want)
		}
	}
}
