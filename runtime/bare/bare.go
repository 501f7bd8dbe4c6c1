// Package bare runs the yardsticks of daqiri-run bench: plain C loops that make the same system calls as the engines,
// or touch the same memory, and do nothing else.
//
// It may import native. Each call blocks its thread until it is done; none shares anything with a session.
package bare

import (
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// Figures is what a loop did. Missing counts datagrams whose numbers never came; a receiver's Seconds run from the
// first datagram to the last; CPUSeconds are the process's.
type Figures struct {
	Packets     uint64  `json:"packets"`
	Bytes       uint64  `json:"bytes"`
	Missing     uint64  `json:"missing"`
	Seconds     float64 `json:"seconds"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	BufferBytes int     `json:"buffer_bytes,omitempty"`
}

// What the loops do.
type (
	// Send is a sender of numbered datagrams.
	Send = native.BareSend
	// Recv is a receiver of such datagrams.
	Recv = native.BareRecv
	// Memory is the loop over packet memory.
	Memory = native.BareLoop
)

func figures(f native.BareFigures) Figures {
	return Figures{f.Packets, f.Bytes, f.Missing, f.Seconds, f.CPUSeconds, f.BufferBytes}
}

// RunMemory takes, fills, matches and returns packet buffers for conf.For.
func RunMemory(conf Memory) (Figures, error) {
	f, err := native.RunBareLoop(conf)
	return figures(f), err
}

// RunSend sends for conf.For.
func RunSend(conf Send) (Figures, error) {
	f, err := native.RunBareSend(conf)
	return figures(f), err
}

// Receiver is a bound socket; Close must be the last call.
type Receiver struct{ r *native.BareReceiver }

// Listen binds a receiver to a free port.
func Listen(conf Recv) (*Receiver, error) {
	r, err := native.OpenBareReceiver(conf)
	return &Receiver{r}, err
}

// Port is what the receiver is bound to.
func (r *Receiver) Port() int { return r.r.Port }

// Receive receives until a sender's end mark, or until nothing came for idle after the first datagram.
func (r *Receiver) Receive(idle time.Duration) (Figures, error) {
	f, err := r.r.Receive(idle)
	return figures(f), err
}

// Latency receives n datagrams, fewer when none comes for idle: for each the ns since the kernel had it.
func (r *Receiver) Latency(n int, idle time.Duration) ([]int64, error) { return r.r.Latency(n, idle) }

// Close closes the socket.
func (r *Receiver) Close() { r.r.Close() }
