package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sender is a process of its own, so that it can be killed. It numbers its packets and keeps two counters in a file
// that the rig maps too: packets begun and packets that the kernel has taken.
const peerCommand = "peer"

// packetBytes is the length of a packet, without what frames it in a TCP stream.
const packetBytes = 200

// counters are the two numbers of a sender's file.
type counters struct{ begun, done atomic.Uint64 }

func mapCounters(path string) (*counters, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(int64(unsafe.Sizeof(counters{}))); err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(counters{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*counters)(unsafe.Pointer(&data[0])), nil // for the life of the process
}

// sender is a peer at work, seen from the rig.
type sender struct {
	life  int
	cmd   *exec.Cmd
	count *counters
	cut   bool // by the end of its connection
}

// newSender starts a sender to an address: network is udp or tcp; one packet in lossy (0: none) is counted and not sent.
func newSender(network, addr string, life int, lossy uint64, path string) (*sender, error) {
	count, err := mapCounters(path)
	if err != nil {
		return nil, err
	}
	s := &sender{life: life, count: count}
	s.cmd = exec.Command("/proc/self/exe", peerCommand, network, addr, strconv.Itoa(life), strconv.FormatUint(lossy, 10), path)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // Ctrl-C is for the rig
	return s, s.cmd.Start()
}

// end ends a sender and waits for it: in order, or by SIGKILL.
func (s *sender) end(kill bool) {
	sig := syscall.SIGTERM
	if kill {
		sig = syscall.SIGKILL
	}
	_ = s.cmd.Process.Signal(sig) // it may have ended by itself
	_ = s.cmd.Wait()
}

// peer is the sender's main function.
func peer(args []string) int {
	if err := send(args); err != nil {
		fmt.Fprintf(os.Stderr, "soak: sender: %v\n", err)
		return 1
	}
	return 0
}

func send(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("peer NETWORK ADDRESS LIFE LOSSY FILE")
	}
	life, _ := strconv.ParseUint(args[2], 10, 8)
	lossy, _ := strconv.ParseUint(args[3], 10, 64)
	count, err := mapCounters(args[4])
	if err != nil {
		return err
	}
	var stop atomic.Bool
	go onTerm(&stop)
	if args[0] == "udp" {
		return sendUDP(args[1], life, lossy, count, &stop)
	}
	return sendTCP(args[1], life, count, &stop)
}

// number writes the packet's life and number, 48 bits as the scripts read them.
func number(p []byte, life, seq uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], life<<40|seq)
	copy(p, b[2:])
}

// sendUDP sends as fast as it can, from a socket without a peer: nothing reports that no socket listens.
func sendUDP(addr string, life, lossy uint64, count *counters, stop *atomic.Bool) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	c, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return err
	}
	if err := stay(); err != nil {
		return err
	}
	p := make([]byte, packetBytes)
	for seq := uint64(0); !stop.Load(); seq++ {
		number(p, life, seq)
		count.begun.Store(seq + 1)
		if lossy == 0 || seq%lossy != lossy-1 {
			if _, err := c.WriteToUDPAddrPort(p, to); err != nil {
				return err
			}
		}
		count.done.Store(seq + 1)
	}
	return nil
}

// stay keeps the caller on the processor that it is on. The kernel has a queue for lo on each: what is sent on another one can
// overtake what waits on a processor that gets no time.
func stay() error {
	runtime.LockOSThread()
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return fmt.Errorf("getcpu: %w", errno)
	}
	var one unix.CPUSet
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("sched_setaffinity: %w", err)
	}
	return nil
}

// sendTCP sends messages behind their length in two bytes, a few dozen at a time.
func sendTCP(addr string, life uint64, count *counters, stop *atomic.Bool) error {
	const batch = 32
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return err
	}
	p := make([]byte, batch*(2+packetBytes))
	for seq := uint64(0); !stop.Load(); seq += batch {
		for k := range uint64(batch) {
			m := p[k*(2+packetBytes):]
			binary.BigEndian.PutUint16(m, packetBytes)
			number(m[2:], life, seq+k)
		}
		count.begun.Store(seq + batch)
		if _, err := c.Write(p); err != nil {
			return nil // closed under us: what the other side has is a beginning of the stream
		}
		count.done.Store(seq + batch)
	}
	return c.Close()
}

// onTerm sets stop at SIGTERM.
func onTerm(stop *atomic.Bool) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	<-c
	stop.Store(true)
}
