package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/daqiri/daqiri-run/runtime/session"
	"github.com/daqiri/daqiri-run/runtime/task"
)

// A stranger sends numbered packets to interface b continuously and records the times. It is not part of the session.
type stranger struct {
	b       *bench
	send    func(p []byte) error
	close   func()
	allowed atomic.Uint64 // sequence numbers must stay below
	quit    atomic.Bool
	began   []int64 // session clock before each send
	ended   []int64 // session clock after each send
	done    chan error
}

// newStranger returns the sender for an engine that receives packets from outside its session, or nil.
func newStranger(b *bench) (*stranger, error) {
	x := &stranger{b: b, done: make(chan error, 1)}
	switch {
	case b.endpoint != "":
		i, err := b.s.Interface("b")
		if err != nil {
			return nil, err
		}
		network, address, _ := strings.Cut(i.Address(), "://")
		c, err := net.Dial(network, address)
		if err != nil {
			return nil, err
		}
		x.close = func() { c.Close() }
		x.send = func(p []byte) error {
			if b.framed {
				p = append(binary.BigEndian.AppendUint16(nil, uint16(len(p))), p...)
			}
			_, err := c.Write(p)
			return err
		}
	case b.veth:
		left, err := net.InterfaceByName("left")
		if err != nil {
			return nil, err
		}
		fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 0) // in the task's network namespace
		if err != nil {
			return nil, err
		}
		to := &syscall.SockaddrLinklayer{Ifindex: left.Index, Halen: 6}
		x.close = func() { syscall.Close(fd) }
		x.send = func(p []byte) error { return syscall.Sendto(fd, p, 0, to) }
	default:
		return nil, nil
	}
	return x, nil
}

// stayOnCore pins the calling thread, which ends with its goroutine, to one core. Packets sent by one core over lo or a veth pair arrive in order,
// but each core has its own backlog in the kernel, and that of a busy core may be overtaken.
func stayOnCore() error {
	runtime.LockOSThread()
	var all, one task.CPUs
	mask := func(call uintptr, c *task.CPUs) error {
		if _, _, err := syscall.RawSyscall(call, 0, unsafe.Sizeof(*c), uintptr(unsafe.Pointer(c))); err != 0 {
			return err
		}
		return nil
	}
	if err := mask(syscall.SYS_SCHED_GETAFFINITY, &all); err != nil {
		return err
	}
	core := all.List()[0]
	one[core/64] = 1 << (core % 64)
	return mask(syscall.SYS_SCHED_SETAFFINITY, &one)
}

// run sends until quit is set. While packets are received it is at most 64 packets ahead.
func (x *stranger) run() {
	if err := stayOnCore(); err != nil {
		x.done <- err
		return
	}
	p := make([]byte, headers+100)
	for seq := uint64(0); !x.quit.Load(); {
		if seq >= x.allowed.Load() {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		x.b.put(p, seq, 7148)
		x.began = append(x.began, x.b.s.Now())
		if err := x.send(p); err != nil {
			x.done <- err
			return
		}
		x.ended = append(x.ended, x.b.s.Now())
		seq++
		time.Sleep(20 * time.Microsecond)
	}
	x.done <- nil
}

// TestContractStopIsOneMoment checks that receiving ends at one moment: of a stranger that keeps sending through the stop, all packets sent before it
// are delivered, in order and without a gap, and no later packet is in any account.
func TestContractStopIsOneMoment(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.begin(session.Wait)
		if err != nil {
			return err
		}
		x, err := newStranger(b)
		if err != nil || x == nil {
			return err
		}
		defer x.close()
		const ahead, enough = 64, 300
		x.allowed.Store(ahead)
		go x.run()
		got := uint64(0)
		take := func(it *session.Burst) error {
			for i := range it.N() {
				p, err := it.Packet(0, i)
				if err != nil {
					return err
				}
				if seq, err := b.seq(p); err != nil || seq != got {
					return errors.Join(err, fmt.Errorf("packet %d was due, and %d came", got, seq))
				}
				got++
			}
			x.allowed.Store(got + ahead)
			return it.Free()
		}
		for got < enough && err == nil {
			var it *session.Burst
			if it, err = tap.Next(b.l, b.deadline()); err == nil {
				err = take(it)
			}
		}
		x.allowed.Store(1 << 40)
		for left := uint64(1); left > 0 && err == nil; { // packets received before the stop, handled as a script would
			left = b.s.Quiesce(time.Second)
			it, more := b.me.Wait(b.me.Now())
			for ; more == nil && it != nil && err == nil; it, more = b.me.Wait(b.me.Now()) {
				if it.Kind == task.Burst {
					err = take(b.l.Take(it))
				}
			}
		}
		time.Sleep(20 * time.Millisecond) // the stranger keeps sending
		x.quit.Store(true)
		if err = errors.Join(err, <-x.done); err != nil {
			return err
		}
		if err := b.s.Finish(); err != nil {
			return err
		}
		x.judge(t, got)
		return nil
	})
}

// judge compares the delivered packets with the ledger and with the times of the sender.
func (x *stranger) judge(t *testing.T, got uint64) {
	l := x.b.s.Ledger()
	for name, want := range map[string]uint64{"b.rx.in": got, "b.rx.out": got, "b.rx.dropped": 0, "b.rx.held": 0, "tap1.in": got, "tap1.dropped": 0} {
		if is, ok := l.Lookup(name); !ok || uint64(is) != want {
			t.Errorf("%s is %v, want %d; the sender got to %d", name, is, want, len(x.began))
		}
	}
	if uint64(len(x.ended)) <= got {
		t.Errorf("%d packets of %d were delivered: the stop did not end it", got, len(x.ended))
	}
	if x.b.dpdk || x.b.framed || x.b.driver == "AF_XDP" {
		return // device frames and stream bytes have no timestamps: the moment is that of a reading of their progress
	}
	// The kernel timestamps a packet when it is sent, and has 5 ms to deliver it at the stop.
	const clocks, late = int64(50 * time.Microsecond), int64(20 * time.Millisecond)
	for seq := range x.ended {
		if x.ended[seq] < l.EndNS-late && uint64(seq) >= got {
			t.Fatalf("packet %d was sent %v before the stop, and not delivered", seq, time.Duration(l.EndNS-x.ended[seq]))
		}
		if x.began[seq] > l.EndNS+clocks && uint64(seq) < got {
			t.Fatalf("packet %d was sent %v after the stop, and delivered", seq, time.Duration(x.began[seq]-l.EndNS))
		}
	}
}

// TestContractStopSendsFirst checks that packets pending in transmit queues at the stop are sent, and received if they are looped back within the
// session. The session's time ends after that.
func TestContractStopSendsFirst(t *testing.T) {
	withBench(t, "", func(t *testing.T, b *bench) error {
		tap, err := b.rx.Tap(b.me, nil, session.TapOptions{Policy: session.Wait})
		if err != nil {
			return err
		}
		if err := b.tx.Pace(0, 10000); err != nil {
			return err
		}
		if err := b.s.Start(b.me); err != nil {
			return err
		}
		const bursts, n = 10, 20
		for k := range uint64(bursts) {
			if err := b.send(k*n, n, 7148); err != nil {
				return err
			}
		}
		b.quiesce()
		l := b.s.Ledger()
		sent, _ := l.Lookup("a.tx.out")
		dropped, _ := l.Lookup("a.tx.dropped")
		if sent != bursts*n || dropped != 0 {
			t.Errorf("%v of %d packets were sent, %v dropped", sent, bursts*n, dropped)
		}
		if least := float64(bursts*n-1) / 10000; l.Seconds() < least {
			t.Errorf("the session ran for %v s, and its packets took %v s to leave", l.Seconds(), least)
		}
		got, _ := l.Lookup("b.rx.in")
		unheard := b.veth || b.dpdk || b.devices != "" || b.rdma == "UC" || b.rdma == "UD" // the arrival of packets is not reported
		if !unheard && got != sent {
			t.Errorf("%v packets were received of %v", got, sent)
		}
		for it, err := b.me.Wait(b.me.Now()); err == nil && it != nil; it, err = b.me.Wait(b.me.Now()) {
			if it.Kind == task.Burst {
				_ = b.l.Take(it).Free()
			}
		}
		_ = tap
		return nil
	})
}
