package share

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// client is one end of a connection to a share.
type client struct {
	t *testing.T
	*net.UnixConn
}

func attach(t *testing.T, path string) client {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return client{t, c}
}

// text returns kind and text of the next message; kind 0: the connection has ended.
func (c client) text() (kind uint32, text map[string]any) {
	c.t.Helper()
	p := make([]byte, 4096)
	n, err := c.Read(p)
	if err != nil || n == 0 {
		return 0, nil
	}
	if n < messageBytes || n != messageBytes+int(binary.LittleEndian.Uint32(p[4:])) {
		c.t.Fatalf("a message of %d bytes: %x", n, p[:n])
	}
	if err := json.Unmarshal(p[messageBytes:n], &text); err != nil {
		c.t.Fatal(err)
	}
	return binary.LittleEndian.Uint32(p), text
}

// TestReaders checks who is admitted, that invalid messages end a connection, and what readers get at the end of a stream without blocks.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live")
	s, err := New("live", Options{Path: path, Mode: 0o600, Lend: 3, Readers: 2, Log: func(string, string, map[string]any) {}})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	readers := []client{attach(t, path), attach(t, path)}
	for _, r := range readers {
		kind, text := r.text()
		if kind != kindHello || text["version"] != 1.0 || text["name"] != "live" || text["lend"] != 3.0 || text["pid"] != float64(os.Getpid()) {
			t.Errorf("hello %d: %v", kind, text)
		}
	}
	if kind, text := attach(t, path).text(); kind != kindEnd || !strings.Contains(text["reason"].(string), "has 2 readers") {
		t.Errorf("a third reader: %d %v", kind, text)
	}
	release := make([]byte, messageBytes)
	binary.LittleEndian.PutUint32(release, kindRelease)
	if _, err := readers[0].Write(release); err != nil { // it has no block
		t.Fatal(err)
	}
	if kind, text := readers[0].text(); kind != 0 {
		t.Errorf("after an invalid release: %d %v", kind, text)
	}
	if list := s.Attached(); len(list) != 1 || list[0] != (Reader{PID: os.Getpid()}) {
		t.Errorf("attached: %+v", list)
	}
	s.End("it is over")
	s.End("again")
	if kind, text := readers[1].text(); kind != kindEnd || text["reason"] != "it is over" {
		t.Errorf("at the end: %d %v", kind, text)
	}
	if kind, _ := readers[1].text(); kind != 0 {
		t.Errorf("after the end: %d", kind)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestReleaseAfterDetach checks that a message which a reader sent before its connection ended releases nothing.
func TestReleaseAfterDetach(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live")
	s, err := New("live", Options{Path: path, Mode: 0o600, Lend: 1, Readers: 1, Log: func(string, string, map[string]any) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.End("")
	if kind, _ := attach(t, path).text(); kind != kindHello {
		t.Fatal(kind)
	}
	s.mu.Lock()
	r := s.sorted()[0]
	s.leases[0], r.has[0] = &lease{generation: 7, readers: 2}, 7 // another reader has the block, too
	s.detach(r, "info", "")
	if left := s.leases[0].readers; left != 1 {
		t.Errorf("%d readers have the block", left)
	}
	s.mu.Unlock()
	release := make([]byte, messageBytes)
	binary.LittleEndian.PutUint32(release, kindRelease)
	binary.LittleEndian.PutUint32(release[8:], 7)
	if why := r.take(release); !strings.Contains(why, "a block that it does not have") || s.leases[0].readers != 1 {
		t.Errorf("%q, %d readers have the block", why, s.leases[0].readers)
	}
}

// TestLastMessage checks that a reader gets the last message although the program has not read all of its messages.
func TestLastMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "live")
	s, err := New("live", Options{Path: path, Mode: 0o600, Lend: 1, Readers: 1, Log: func(string, string, map[string]any) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.End("")
	c := attach(t, path)
	if kind, _ := c.text(); kind != kindHello {
		t.Fatal(kind)
	}
	release := make([]byte, messageBytes)
	binary.LittleEndian.PutUint32(release, kindRelease)
	s.mu.Lock() // so that at most one of these is handled
	for range 3 {
		if _, err := c.Write(release); err != nil {
			t.Error(err)
		}
	}
	r := s.sorted()[0]
	if err := send(r.raw, end("it is over", 5)); err != nil {
		t.Error(err)
	}
	s.detach(r, "info", "")
	s.mu.Unlock()
	if kind, text := c.text(); kind != kindEnd || text["reason"] != "it is over" {
		t.Errorf("the last message: %d %v", kind, text)
	}
	if _, err := c.Write(release); err == nil {
		t.Error("the program accepts a message after the last one")
	}
}

// TestTimeoutOfTheEnd checks that each wait for a reader takes the timeout, and that all waits of the end, the one that had begun among them, take it
// together, though the reader releases a block after each wait.
func TestTimeoutOfTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Share{Options: Options{Wait: true, Lend: 1, Timeout: time.Second}}
		s.free = sync.NewCond(&s.mu)
		r := &reader{s: s, has: map[uint32]uint32{0: 1}}
		s.readers = map[*reader]bool{r: true}
		waits := func(n int) time.Duration {
			began := time.Now()
			for range n {
				s.mu.Lock()
				s.await()
				r.slow = false
				s.mu.Unlock()
			}
			return time.Since(began)
		}
		if took := waits(3); took != 3*time.Second {
			t.Errorf("three waits of the run took %v", took)
		}
		time.AfterFunc(time.Second/2, s.close)
		if took := waits(50); took != 3*time.Second/2 {
			t.Errorf("all waits took %v, half a second of them before the end", took)
		}
	})
}
