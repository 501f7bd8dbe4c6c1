package control

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func echo(p *Peer, line []byte) []byte {
	p.Known = p.Known || string(line) == "it is me"
	return append([]byte("you said "), line...)
}

func dial(t *testing.T, network, address string) (*bufio.Reader, net.Conn) {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return bufio.NewReader(c), c
}

func ask(t *testing.T, r *bufio.Reader, c net.Conn, line string) string {
	t.Helper()
	if _, err := c.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	answer, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(answer, "\n")
}

// TestUnix checks the socket file's mode, that the file of a dead process is replaced and that of a live one is not, and that Close removes it.
func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ctl.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
	s, err := Listen(Options{Unix: path, Mode: 0o660, Answer: echo})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || s.Address() != path {
		t.Errorf("%v, %v at %s", info.Mode(), err, s.Address())
	}
	if _, err := Listen(Options{Unix: path, Mode: 0o600, Answer: echo}); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Errorf("a second one: %v", err)
	}
	r, c := dial(t, "unix", path)
	if got := ask(t, r, c, "hello\n"); got != "you said hello" {
		t.Error(got)
	}
	s.Close()
	s.Close()
	if _, err := r.ReadByte(); err == nil {
		t.Error("the connection is still open")
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Options{Unix: path, Mode: 0o600, Answer: echo}); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("a file that is no socket: %v", err)
	}
}

// TestLines sends several lines in one write, a last line without a line end, and one that is too long.
func TestLines(t *testing.T) {
	s, err := Listen(Options{TCP: "127.0.0.1:0", Answer: echo})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, c := dial(t, "tcp", s.Address())
	if got := ask(t, r, c, "one\n\ntwo\nthree"); got != "you said one" {
		t.Error(got)
	}
	if got, _ := r.ReadString('\n'); got != "you said two\n" {
		t.Error(got)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	if got, _ := r.ReadString('\n'); got != "you said three\n" {
		t.Error(got)
	}
	r, c = dial(t, "tcp", s.Address())
	if got := ask(t, r, c, string(bytes.Repeat([]byte{'x'}, MaxLine+1))+"\n"); !strings.Contains(got, "at most 65536 bytes") {
		t.Errorf("%.100s", got)
	}
	if _, err := Listen(Options{TCP: "somewhere", Answer: echo}); err == nil || !strings.Contains(err.Error(), "is not IP:PORT") {
		t.Error(err)
	}
}

// TestCrowd checks that silent connections never keep a new peer out, and that an authenticated one stays connected.
func TestCrowd(t *testing.T) {
	s, err := Listen(Options{TCP: "127.0.0.1:0", Answer: echo})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	known, k := dial(t, "tcp", s.Address())
	if got := ask(t, known, k, "it is me\n"); got != "you said it is me" {
		t.Fatal(got)
	}
	for range 200 {
		dial(t, "tcp", s.Address())
	}
	r, c := dial(t, "tcp", s.Address())
	if got := ask(t, r, c, "hi\n"); got != "you said hi" {
		t.Error(got)
	}
	if got := ask(t, known, k, "still me\n"); got != "you said still me" {
		t.Error(got)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // closed connections may take a moment to end
		n := len(s.listener.Conns())
		if n <= 64 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections", n)
		}
	}
}

// TestWebPage checks that an HTTP request closes the connection before any line of it is answered.
func TestWebPage(t *testing.T) {
	var output []string
	s, err := Listen(Options{TCP: "127.0.0.1:0", Answer: func(p *Peer, line []byte) []byte { output = append(output, string(line)); return line }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, first := range []string{"POST / HTTP/1.1\r\n", "OPTIONS * HTTP/1.0\n", "PRI * HTTP/2.0\r\n", "Host: localhost\r\n"} {
		r, c := dial(t, "tcp", s.Address())
		if _, err := c.Write([]byte(first + "Content-Type: text/plain\r\n\r\n{\"verb\":\"stop\"}\n")); err != nil {
			t.Fatal(err)
		}
		if text, _ := r.ReadString('\n'); text != "" {
			t.Errorf("%q is answered %q", first, text)
		}
	}
	s.Close()
	if len(output) > 0 {
		t.Errorf("lines were answered: %q", output)
	}
}

// TestLastAnswer checks that the response to the line that caused Close is sent before the connection ends.
func TestLastAnswer(t *testing.T) {
	var s *Server
	closed := make(chan struct{})
	s, err := Listen(Options{TCP: "127.0.0.1:0", Answer: func(*Peer, []byte) []byte {
		go func() { s.Close(); close(closed) }()
		for down := false; !down; {
			s.mu.Lock()
			down = s.closed
			s.mu.Unlock()
		}
		time.Sleep(10 * time.Millisecond)
		return []byte("bye")
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, c := dial(t, "tcp", s.Address())
	if got := ask(t, r, c, "stop\n"); got != "bye" {
		t.Errorf("%q", got)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the connection is still open")
	}
	<-closed
}
