// Package bare runs the yardsticks of daqiri-run bench: plain C loops that make the same system calls as the engines,
// or touch the same memory, and do nothing else; and uploads by the S3 writer's client alone.
//
// It may import native and s3. Each call blocks its thread until it is done; none shares anything with a session.
package bare

import (
	"context"
	"fmt"
	"math"
	"slices"
	"syscall"
	"time"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/s3"
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
	// OfferedPPS is what the sender in the same process sent, datagrams a second.
	OfferedPPS float64 `json:"offered_pps,omitempty"`
}

// What the loops do.
type (
	// Send is a sender of numbered datagrams.
	Send = native.BareSend
	// Recv is a receiver of such datagrams.
	Recv = native.BareRecv
	// Memory is the loop over packet memory.
	Memory = native.BareLoop
	// Pace is a paced sender, the engine's or a bare one.
	Pace = native.BarePace
	// Store is where objects go.
	Store = s3.Config
)

func figures(f native.BareFigures) Figures {
	return Figures{Packets: f.Packets, Bytes: f.Bytes, Missing: f.Missing, Seconds: f.Seconds, CPUSeconds: f.CPUSeconds, BufferBytes: f.BufferBytes}
}

// RunMemory takes, fills, matches and returns packet buffers for conf.For.
func RunMemory(conf Memory) (Figures, error) {
	f, err := native.RunBareLoop(conf)
	return figures(f), err
}

// RunFlows classifies frames of 1024 flows by a table of so many rules for a while: ns of a packet.
func RunFlows(rules int, length time.Duration) (float64, error) {
	return native.RunBareFlows(rules, length)
}

// RunReorder puts payloads of so many bytes in order for a while, into batches or heaps, or copies them to the same places: bytes of a CPU
// second.
func RunReorder(payload int, copies, heaps bool, length time.Duration) (float64, error) {
	f, err := native.RunBareReorder(native.BareReorder{Payload: payload, Copy: copies, Heaps: heaps, For: length})
	return f.BytesPerSecond, err
}

// RunConvert converts elements of the named types for a while, network: from the network's order. Without types it
// copies bytes. It returns the bytes, in and out, of a CPU second.
func RunConvert(from, to string, network bool, length time.Duration) (float64, error) {
	return native.RunBareConvert(native.DataTypes{Input: native.DtypeNamed(from), Output: native.DtypeNamed(to), Network: network}, length)
}

// RunPut uploads n objects of size bytes from one buffer: a packet is an object.
func RunPut(conf Store, size, n int) (Figures, error) {
	began, before := time.Now(), cpuSeconds()
	err := s3.PutReady(context.Background(), conf, size, n)
	return Figures{Packets: uint64(n), Bytes: uint64(n) * uint64(size), Seconds: time.Since(began).Seconds(), CPUSeconds: cpuSeconds() - before}, err
}

// RunSend sends for conf.For.
func RunSend(conf Send) (Figures, error) {
	f, err := native.RunBareSend(conf)
	return figures(f), err
}

// Gaps is how the gaps between packets that arrived kept to the pace. RateError is a part of it; the errors are
// |gap - wanted| in ns, half of them at most P50.
type Gaps struct {
	N          int     `json:"n"`
	RateError  float64 `json:"rate_error"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	P999       float64 `json:"p999"`
	Max        float64 `json:"max"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"` // of the process, whose receiver never sleeps
}

// RunPace sends conf.N packets and looks at when they came.
func RunPace(conf Pace) (Gaps, error) {
	before := cpuSeconds()
	at, err := native.RunBarePace(conf)
	if err != nil {
		return Gaps{}, err
	}
	if len(at) < conf.N || conf.N < 2 {
		return Gaps{}, fmt.Errorf("pacing: %d of %d packets came", len(at), conf.N)
	}
	g := gapsOf(at[len(at)/10:], 1e9/conf.PPS) // the first tenth warms up: threads begin, memory is touched
	g.N = len(at)
	g.CPUSeconds = cpuSeconds() - before
	return g, nil
}

// gapsOf looks at the times at which packets came.
func gapsOf(at []int64, wanted float64) Gaps {
	n := len(at) - 1
	off := make([]float64, n)
	for i := range off {
		off[i] = math.Abs(float64(at[i+1]-at[i]) - wanted)
	}
	slices.Sort(off)
	share := func(p float64) float64 { return off[min(n-1, int(p*float64(n)))] }
	took := max(1, float64(at[n]-at[0])) // all at once, after a long pause of the receiver
	return Gaps{N: len(at), RateError: math.Abs(wanted*float64(n)/took - 1), P50: share(0.5), P99: share(0.99), P999: share(0.999),
		Max: off[n-1], Seconds: took / 1e9}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
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
