package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/spec"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// server opens a TCP server with framing in worker or direct mode and calls fn, which communicates with it through the operating system's own
// sockets.
func server(t *testing.T, direct bool, fn func(b *bench, address string) error) {
	t.Helper()
	e := engine{name: "tcp", endpoint: "tcp://127.0.0.1", framed: true, direct: direct}
	text, err := e.yaml("")
	var l lacks
	if errors.As(err, &l) {
		skip(t, l)
	}
	text = text[:strings.Index(text, "    - name: a\n")] + text[strings.Index(text, "    - name: b\n"):]
	text = strings.Replace(text, "      rx:\n", "      tx:\n        queues: [{name: tx0, id: 0, poll_mode: direct, batch_size: 8, memory_regions: [out]}]\n      rx:\n", 1)
	onTask(t, func(me *task.Task) error {
		cfg, _, err := spec.ParseText("server.yaml", text, spec.Options{})
		if err != nil {
			return err
		}
		s, err := session.Open(cfg, session.Env{Scheduler: me.Scheduler(), Owner: me})
		if err != nil {
			return err
		}
		b := &bench{engine: e, s: s, me: me, l: session.NewLeases()}
		i, err := s.Interface("b")
		if err != nil {
			return err
		}
		b.rx, b.tx = i.RxQueues()[0], i.TxQueues()[0]
		err = fn(b, strings.TrimPrefix(i.Address(), "tcp://"))
		b.quiesce()
		if bad := s.Ledger().Balance(); bad != nil {
			t.Errorf("accounts: %v", bad)
		}
		b.l.ReleaseAll()
		if n := s.Close(); n != 0 {
			t.Errorf("%d buffers are missing", n)
		}
		return err
	})
}

// message returns a payload preceded by its length in two bytes.
func message(text string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)
}

// next waits for an item of a kind; other items are kept.
func (b *bench) next(kind task.Kind) (*task.Item, error) {
	it, err := b.me.WaitFor(b.deadline(), func(it *task.Item) bool { return it.Kind == kind })
	if err == nil && it == nil {
		err = fmt.Errorf("no item of kind %d came", kind)
	}
	return it, err
}

func bothModes(t *testing.T, fn func(t *testing.T, direct bool)) {
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct %v", direct), func(t *testing.T) {
			t.Parallel()
			fn(t, direct)
		})
	}
}

func TestConnectionsHaveTheirOwnTaps(t *testing.T) {
	bothModes(t, func(t *testing.T, direct bool) {
		server(t, direct, func(b *bench, address string) error {
			i := b.rx.Interface()
			if err := i.Listen(b.me, "listener"); err != nil {
				return err
			}
			rest, err := b.rx.Tap(b.me, "rest", session.TapOptions{})
			if err != nil {
				return err
			}
			if err := b.s.Start(b.me); err != nil {
				return err
			}
			first, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer first.Close()
			it, err := b.next(task.Connect)
			if err != nil {
				return err
			}
			if it.Target != "listener" || it.Event.Code != 0 {
				t.Errorf("target %v, code %v", it.Target, it.Event.Code)
			}
			c := i.Conn(it.Event.Conn)
			info, err := c.Info()
			if err != nil || info.Peer != first.LocalAddr().String() || info.Local != address || !info.Open {
				return fmt.Errorf("connection %+v, peer is %s: %w", info, first.LocalAddr(), err)
			}
			own, err := c.Tap(b.me, "own", session.TapOptions{})
			if err != nil {
				return err
			}
			second, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			defer second.Close()
			if err := errors.Join(b.passes(own, first, "from the first"), b.passes(rest, second, "from the second")); err != nil {
				return err
			}
			return b.answer(t, c, first)
		})
	})
}

// passes sends a message from outside and checks that a tap delivers it with its sender's address.
func (b *bench) passes(tap *session.Tap, from net.Conn, text string) error {
	if _, err := from.Write(message(text)); err != nil {
		return err
	}
	x, err := tap.Next(b.l, b.deadline())
	if err != nil {
		return err
	}
	defer x.EndHandler()
	p, err := x.Packet(0, 0)
	if err != nil || string(p) != text {
		return fmt.Errorf("got %q, want %q, %w", p, text, err)
	}
	if peer, err := x.Peer(0); peer != from.LocalAddr().String() || err != nil {
		return fmt.Errorf("peer %q is %s: %w", peer, from.LocalAddr(), err)
	}
	return nil
}

// answer sends on a connection, sets an option on it, and closes the peer.
func (b *bench) answer(t *testing.T, c *session.Conn, peer net.Conn) error {
	x, err := b.tx.Alloc(b.l, 1)
	if err != nil {
		return err
	}
	p := message("answer")[2:]
	if err := x.SetLen(0, 0, len(p)); err != nil {
		return err
	}
	room, err := x.Packet(0, 0)
	if err != nil {
		return err
	}
	copy(room, p)
	if err := c.Send(x); err != nil {
		return err
	}
	got := make(chan []byte, 1)
	go func() {
		buf := make([]byte, 8)
		n, _ := io.ReadFull(peer, buf)
		got <- buf[:n]
		_ = b.me.Post(func() {})
	}()
	if _, err := b.next(task.Call); err != nil {
		return err
	}
	if data := <-got; !slices.Equal(data, message("answer")) {
		t.Errorf("the peer got %q", data)
	}
	on := binary.NativeEndian.AppendUint32(nil, 1)
	if err := c.SetSockopt(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, on); err != nil {
		t.Error(err)
	}
	if err := c.SetSockopt(syscall.SOL_SOCKET, 9999, on); !errors.Is(err, syscall.ENOPROTOOPT) {
		t.Errorf("an option that there is not: %v", err)
	}
	peer.Close()
	it, err := b.next(task.Disconnect)
	if err != nil {
		return err
	}
	if it.Event.Conn != c.ID() || it.Source != c.Interface() {
		t.Errorf("connection %d of %v", it.Event.Conn, it.Source)
	}
	return nil
}

func TestPeerClosesInMidStream(t *testing.T) {
	bothModes(t, func(t *testing.T, direct bool) {
		server(t, direct, func(b *bench, address string) error {
			if err := b.rx.Interface().Listen(b.me, nil); err != nil {
				return err
			}
			tap, err := b.begin(session.Drop)
			if err != nil {
				return err
			}
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			if _, err := conn.Write(append(message("whole"), message("cut short")[:5]...)); err != nil {
				return err
			}
			conn.Close()
			x, err := tap.Next(b.l, b.deadline())
			if err != nil {
				return err
			}
			if p, err := x.Packet(0, 0); err != nil || string(p) != "whole" || x.N() != 1 {
				t.Errorf("got %d packets, first %q, %v", x.N(), p, err)
			}
			_, err = b.next(task.Disconnect)
			return err
		})
	})
}

func TestPortInUse(t *testing.T) {
	e := engine{name: "tcp", endpoint: "tcp://127.0.0.1", framed: true}
	text, err := e.yaml("")
	var l lacks
	if errors.As(err, &l) {
		skip(t, l)
	}
	cfg, _, err := spec.ParseText("server.yaml", text, spec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	local := cfg.Interface("b").SocketConfig.Local
	taken, err := net.Listen("tcp", fmt.Sprintf("%s:%d", local.Host, local.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := session.Open(cfg, session.Env{Scheduler: task.NewScheduler()})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "interface b") {
		t.Errorf("got %v", err)
	}
}
