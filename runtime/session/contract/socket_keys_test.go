package contract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
	"github.com/daqiri/daqiri-run/tests/require"
)

// Tests of socket keys by their effect on a plain socket of the operating system at the other end.

// socketYAML returns a configuration of one socket interface with the given lines in its socket_config.
func socketYAML(bufSize int, lines ...string) string {
	return fmt.Sprintf(`daqiri:
  cfg:
    version: 1
    stream_type: socket
    master_core: 0
    memory_regions:
    - {name: out, kind: host, affinity: 0, num_bufs: 256, buf_size: %d}
    - {name: in, kind: host, affinity: 0, num_bufs: 256, buf_size: %[1]d}
    interfaces:
    - name: s
      address: sock
      socket_config:
        %s
      rx:
        queues: [{name: rx0, id: 0, poll_mode: direct, batch_size: 32, memory_regions: [in]}]
      tx:
        queues: [{name: tx0, id: 0, poll_mode: direct, batch_size: 32, memory_regions: [out]}]
`, bufSize, strings.Join(lines, "\n        "))
}

var ownAddresses atomic.Uint32

// ownAddress returns a loopback address that no other test uses, in this process or another.
func ownAddress() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid%250, 1+pid/250%250, ownAddresses.Add(1)%250)
}

// ownEndpoint returns such an address with a free port, as host:port.
func ownEndpoint(t *testing.T) string {
	t.Helper()
	host := ownAddress()
	port, err := require.FreePort(host)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s:%d", host, port)
}

// dial connects to the interface.
func (b *bench) dial(proto string) (net.Conn, error) {
	return net.Dial(proto, strings.TrimPrefix(b.rx.Interface().Address(), proto+"://"))
}

// onServer opens a server with an additional key and a connected peer.
func onServer(t *testing.T, proto, key string, fn func(b *bench, tap *session.Tap, peer net.Conn) error) {
	t.Helper()
	onTaskWith(t, socketYAML(2048, "mode: server", "local_addr: "+proto+"://"+ownEndpoint(t), key), func(b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		peer, err := b.dial(proto)
		if err != nil {
			return err
		}
		defer peer.Close()
		return fn(b, tap, peer)
	})
}

// payloads takes n packets from the receive queue.
func (b *bench) payloads(tap *session.Tap, n int) (list []string, err error) {
	return list, b.receive(tap, n, func(x *session.Burst, i int) error {
		p, err := x.Packet(0, i)
		list = append(list, string(p))
		return err
	})
}

// reply sends one packet from the interface.
func (b *bench) reply(text string) error {
	x, err := b.tx.Alloc(b.l, 1)
	if err != nil {
		return err
	}
	if err := x.SetLen(0, 0, len(text)); err != nil {
		return err
	}
	p, err := x.Packet(0, 0)
	if err != nil {
		return err
	}
	copy(p, text)
	return b.tx.Send(x)
}

// framings returns the values of the key, with functions that encode a text for the wire.
func framings() map[string]func(text string) []byte {
	all := map[string]func(text string) []byte{}
	for _, width := range []int{1, 2, 4, 8} {
		for order, put := range map[string]binary.ByteOrder{"network": binary.BigEndian, "host": binary.NativeEndian} {
			for _, self := range []bool{false, true} {
				name := fmt.Sprintf("{length_prefix: %d, endianness: %s, includes_header: %v}", width, order, self)
				all[name] = func(text string) []byte {
					n, buf := uint64(len(text)), make([]byte, 8)
					if self {
						n += uint64(width)
					}
					put.PutUint64(buf, n)
					if put.Uint16([]byte{0, 1}) == 1 {
						buf = buf[8-width:]
					}
					return append(buf[:width], text...)
				}
			}
		}
	}
	all["{length_prefix: 2}"] = message
	all["{fixed: 6}"] = func(text string) []byte { return []byte((text + " ")[:6]) }
	return all
}

func TestKeyFraming(t *testing.T) {
	for framing, wire := range framings() {
		t.Run(framing, func(t *testing.T) {
			t.Parallel()
			onServer(t, "tcp", "framing: "+framing, func(b *bench, tap *session.Tap, peer net.Conn) error {
				hello, daqiri := wire("hello"), wire("daqiri")
				if _, err := peer.Write(append(append([]byte{}, hello...), daqiri...)); err != nil {
					return err
				}
				got, err := b.payloads(tap, 2)
				if err != nil {
					return err
				}
				if strings.TrimSpace(got[0]) != "hello" || got[1] != "daqiri" {
					t.Errorf("%q of % x % x", got, hello, daqiri)
				}
				if err := b.reply("daqiri"); err != nil {
					return err
				}
				back := make([]byte, len(daqiri))
				read := make(chan error, 1)
				go func() { _, err := io.ReadFull(peer, back); read <- err }()
				if err := b.until(read); err != nil {
					return err
				}
				if !bytes.Equal(back, daqiri) {
					t.Errorf("sent % x, want % x", back, daqiri)
				}
				return nil
			})
		})
	}
}

// until serves the queues until done is signaled.
func (b *bench) until(done chan error) error {
	for at := b.deadline(); b.me.Now() < at; {
		select {
		case err := <-done:
			return err
		default:
		}
		if _, err := b.me.WaitFor(b.me.Now()+int64(time.Millisecond), nothing); err != nil {
			return err
		}
	}
	return errors.New("nothing happened in 20 s")
}

func nothing(*task.Item) bool { return false }

// TestKeyMaxPayloadSize checks that a datagram of max_payload_size bytes is accepted and a longer one dropped and counted, and that a stream is split
// into chunks of that size.
func TestKeyMaxPayloadSize(t *testing.T) {
	t.Run("udp", func(t *testing.T) {
		onServer(t, "udp", "max_payload_size: 100", func(b *bench, tap *session.Tap, peer net.Conn) error {
			for _, n := range []int{101, 1400, 100, 1} {
				if _, err := peer.Write(bytes.Repeat([]byte{'x'}, n)); err != nil {
					return err
				}
			}
			got, err := b.payloads(tap, 2)
			if err != nil {
				return err
			}
			if len(got[0]) != 100 || len(got[1]) != 1 || b.figure("s.rx.dropped.too_long") != 2 {
				t.Errorf("%d and %d bytes came, %v were too long", len(got[0]), len(got[1]), b.figure("s.rx.dropped.too_long"))
			}
			return nil
		})
	})
	t.Run("tcp", func(t *testing.T) {
		onServer(t, "tcp", "max_payload_size: 100", func(b *bench, tap *session.Tap, peer net.Conn) error {
			if _, err := peer.Write(make([]byte, 1000)); err != nil {
				return err
			}
			for all := 0; all < 1000; {
				got, err := b.payloads(tap, 1)
				if err != nil {
					return err
				}
				for _, p := range got {
					all += len(p)
					if len(p) > 100 {
						t.Errorf("a chunk of %d bytes", len(p))
					}
				}
			}
			return nil
		})
	})
}

// opens returns the number of TCP connections started in the namespace, from the kernel's counters.
func opens() (int, error) {
	data, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) > 5 && f[0] == "Tcp:" && f[5] != "ActiveOpens" {
			return strconv.Atoi(f[5])
		}
	}
	return 0, errors.New("no ActiveOpens")
}

// TestKeyRetryConnect counts a client's connection attempts by the kernel's counters: the first retry is after retry_connect_s, and pauses double. A
// slow machine makes fewer attempts, never more.
func TestKeyRetryConnect(t *testing.T) {
	for retry, tries := range map[int]int{1: 3, 3: 2} {
		t.Run(fmt.Sprint(retry), func(t *testing.T) {
			t.Parallel()
			// The session is opened in the namespace of its task's thread, which has no other users.
			onTaskIn(t, func() error {
				if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
					return lacks{"netns", err}
				}
				if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
					return lacks{"netns", fmt.Errorf("ip: %w: %s", err, out)}
				}
				return nil
			}, socketYAML(2048, "mode: client", "remote_addr: tcp://127.0.0.1:9", fmt.Sprintf("retry_connect_s: %d", retry)), func(b *bench) error {
				if err := b.s.Start(b.me); err != nil {
					return err
				}
				from, tried := time.Now(), 0
				for at := b.deadline(); tried < tries && b.me.Now() < at; {
					if _, err := b.me.WaitFor(b.me.Now()+int64(50*time.Millisecond), nothing); err != nil {
						return err
					}
					var err error
					if tried, err = opens(); err != nil {
						return err
					}
					// Attempt k is made after retry * (2^(k-1) - 1) seconds.
					if least := float64(retry) * (math.Pow(2, float64(tried-1)) - 1); time.Since(from).Seconds() < least-0.05 {
						return fmt.Errorf("%d tries in %v, with retry_connect_s %d", tried, time.Since(from), retry)
					}
				}
				if tried < tries {
					t.Errorf("%d tries in 20 s", tried)
				}
				return nil
			})
		})
	}
}

// TestKeysOfAddresses checks that a client connects from its local_addr to its remote_addr.
func TestKeysOfAddresses(t *testing.T) {
	for _, proto := range []string{"udp", "tcp"} {
		t.Run(proto, func(t *testing.T) {
			mine := ownEndpoint(t)
			came := make(chan string, 1)
			peer, err := listen(proto, came)
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			onTaskWith(t, socketYAML(2048, "mode: client", "local_addr: "+proto+"://"+mine, "remote_addr: "+proto+"://"+peer.at), func(b *bench) error {
				if err := b.s.Start(b.me); err != nil {
					return err
				}
				if err := b.reply("hello"); err != nil {
					return err
				}
				done := make(chan error, 1)
				go func() {
					var err error
					if from := <-came; from != mine {
						err = fmt.Errorf("it came from %s, want %s", from, mine)
					}
					done <- err
				}()
				return b.until(done)
			})
		})
	}
}

// listener is a plain socket that reports the addresses of peers.
type listener struct {
	io.Closer
	at string
}

func listen(proto string, came chan string) (*listener, error) {
	if proto == "udp" {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		go func() {
			if _, from, err := c.ReadFrom(make([]byte, 100)); err == nil {
				came <- from.String()
			}
		}()
		return &listener{c, c.LocalAddr().String()}, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			came <- c.RemoteAddr().String()
			c.Close()
		}
	}()
	return &listener{l, l.Addr().String()}, nil
}
