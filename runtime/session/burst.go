package session

import (
	"fmt"
	"math/bits"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// Burst is one delivery of a batch of packets to a task. Once it has been sent or freed
// every use of it is an error, for ever. One goroutine: its task's.
type Burst struct {
	s           *Session
	native      native.Burst
	view        native.View
	home        *Leases // nil: gone
	prev, next  *Burst
	gone        string // what became of it
	kept        bool
	picks, also *Burst // selections made of it before it was kept; the next one of its parent
}

// GoneError is the error of using a burst that is not the task's any more.
type GoneError struct {
	How string // "was sent"
}

// Error tells what became of the burst.
func (e *GoneError) Error() string { return "the burst " + e.How }

// Check returns a *GoneError when the burst must not be used any more.
func (b *Burst) Check() error {
	switch {
	case b.home == nil:
		return &GoneError{b.gone}
	case b.s.closed.Load():
		b.release("went with its session, which is closed")
		return &GoneError{b.gone}
	}
	return nil
}

// Live reports whether the burst can be used.
func (b *Burst) Live() bool { return b.home != nil && !b.s.closed.Load() }

// Gone reports whether the burst was sent, freed or has ended in another way.
func (b *Burst) Gone() bool { return b.home == nil }

// release takes the burst out of its leases; the reference is somebody else's now.
func (b *Burst) release(how string) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	b.home.n--
	b.home, b.gone = nil, how
}

// drop gives the reference back, unless the session has gone and the memory with it.
func (b *Burst) drop(how string) {
	if !b.s.closed.Load() {
		b.native.Unref()
	}
	b.release(how)
}

// Free returns the burst's buffers, as soon as nobody else reads them.
func (b *Burst) Free() error {
	if err := b.Check(); err != nil {
		return err
	}
	b.drop("was freed")
	return nil
}

// Keep lets a burst outlive the handler that it was delivered to. Packets that hold much more
// memory than they need are copied.
func (b *Burst) Keep() error {
	if err := b.Check(); err != nil || b.kept {
		return err
	}
	b.kept = true
	b.native = b.native.Keep()
	b.native.View(&b.view)
	return nil
}

// Kept reports whether Keep was called.
func (b *Burst) Kept() bool { return b.kept }

// EndHandler frees a burst whose handler has ended, unless it was kept, sent or freed, and its selections likewise.
func (b *Burst) EndHandler() {
	for p := b.picks; p != nil; p = p.also {
		p.EndHandler()
	}
	b.picks = nil
	if b.home != nil && !b.kept {
		b.drop("ended with its handler; b:keep() keeps a burst")
	}
}

// The following read the burst's columns. They are for live bursts: Check comes first.

// N is the number of packets.
func (b *Burst) N() int { return int(b.view.N) }

// Bytes is the length of all packets together.
func (b *Burst) Bytes() uint64 { return b.view.Bytes }

// Segments is how many parts each packet has.
func (b *Burst) Segments() int { return int(b.view.Segments) }

// Flags are the burst's flags, as the reference numbers them.
func (b *Burst) Flags() uint32 { return b.view.Flags }

// errReadOnly is the error of changing packets that somebody else reads.
var errReadOnly = invalid("its packets are read-only: a second consumer, a writer or a queue that sends them reads them too")

// Writable returns why the packets can't be changed: the burst is gone, or somebody else reads them. It holds for all
// bursts that share the packets, a selection and what it was made from.
func (b *Burst) Writable() error {
	if err := b.Check(); err != nil {
		return err
	}
	if b.view.Shared() {
		return errReadOnly
	}
	return nil
}

// ConnID is the connection that the burst came from, or is to go to; 0: none.
func (b *Burst) ConnID() uint32 { return b.view.Conn }

// Clock names the clock of the receive times: "realtime", "virtual" or "file".
func (b *Burst) Clock() string {
	switch b.view.Clock {
	case native.ClockVirtual:
		return "virtual"
	case native.ClockFile:
		return "file"
	}
	return "realtime"
}

// Queue is the queue that received the burst, or that it was allocated for.
//
// Of what a stage of the configuration made it is the queue whose packets these were.
func (b *Burst) Queue() *Queue {
	q := b.s.queueOf(b.view.Queue())
	if q.home != nil {
		return q.home
	}
	return q
}

// Session is the session that the burst belongs to.
func (b *Burst) Session() *Session { return b.s }

// Lengths are the packets' bytes in a segment. Valid while the burst lives; not to be
// written.
func (b *Burst) Lengths(seg int) ([]uint32, error) {
	if err := b.checkPacket(seg, 0); err != nil && b.view.N > 0 {
		return nil, err
	}
	return b.view.Lengths(seg), nil
}

// FlowIDs are the packets' flow ids, 0: none. Valid while the burst lives.
func (b *Burst) FlowIDs() []uint32 { return b.view.Flows() }

// NoTime is the receive time of a packet that has none: it was made here, or captured without.
const NoTime = native.NoTime

// RxTimes are receive times, ns since the epoch, or NoTime. Valid while the burst lives.
func (b *Burst) RxTimes() []int64 { return b.view.RxTimes() }

// TimeOrigin is what receive times are counted from for a script: the session's start, or the first packet of the capture.
func (b *Burst) TimeOrigin() int64 { return b.view.Origin }

// TxTimes are the times at which packets are to be sent, ns since the epoch, 0: at once. To
// be written; valid while the burst lives. A burst that somebody else reads has none: a selection of it has.
func (b *Burst) TxTimes() ([]int64, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	times := b.native.TxTimes(b.view.N)
	if times == nil {
		return nil, fmt.Errorf("send times: somebody else reads the burst too: %w; hint: b:select makes one that has its own", ErrInvalid)
	}
	return times, nil
}

// checkPacket is the bounds check of everything that names a packet.
func (b *Burst) checkPacket(seg, i int) error {
	if err := b.Check(); err != nil {
		return err
	}
	if seg < 0 || seg >= int(b.view.Segments) {
		return invalid("segment %d: the burst has segments 0 to %d", seg, int(b.view.Segments)-1)
	}
	if i < 0 || i >= int(b.view.N) {
		return invalid("packet %d: the burst has %d packets", i, b.view.N)
	}
	return nil
}

// onGPU reports whether all that the CPU can't read of the burst lies in GPUs' memory.
func (b *Burst) onGPU() bool {
	q := b.s.queueOf(b.view.Queue())
	for seg := range int(b.view.Segments) {
		if b.view.DeviceOnly>>seg&1 == 0 {
			continue
		}
		if q == nil || q.spec == nil || seg >= len(q.spec.MemoryRegions) {
			return false
		}
		if r := b.s.cfg.Region(q.spec.MemoryRegions[seg]); r == nil || r.Kind != spec.KindDevice {
			return false
		}
	}
	return true
}

// readable returns why the CPU can't read one of these segments, a bit each.
func (b *Burst) readable(segments uint32) error {
	unreadable := b.view.DeviceOnly & segments
	if unreadable == 0 {
		return nil
	}
	seg, region := bits.TrailingZeros32(unreadable), "?"
	if q := b.s.queueOf(b.view.Queue()); q != nil && q.spec != nil && seg < len(q.spec.MemoryRegions) {
		region = q.spec.MemoryRegions[seg]
	}
	hint := "the first one can be read, and the burst be counted, kept, sent on and freed"
	if r := b.s.cfg.Region(region); r != nil && r.Kind == spec.KindDevice {
		hint = "s:copy moves bursts from a GPU's memory to the host's"
		if b.view.Heads() {
			hint = fmt.Sprintf("the first %d bytes of each packet can be read; %s", native.HeadBytes, hint)
		}
	}
	return unsupported("the %s segment of the burst's packets lies in memory region %q, which the CPU can't read; hint: %s", native.Ordinal(seg), region, hint)
}

// Packet is the memory of a packet's segment: a lease that ends with the burst. To be read; to be written while
// Writable says so. Of a packet that lies on a GPU whole it is a copy of the first bytes, up to 128, to be read.
func (b *Burst) Packet(seg, i int) ([]byte, error) {
	if err := b.checkPacket(seg, i); err != nil {
		return nil, err
	}
	if seg == 0 && b.view.Heads() {
		return b.view.Head(i), nil
	}
	if err := b.readable(1 << seg); err != nil {
		return nil, err
	}
	return b.view.Packet(seg, i), nil
}

// Beyond is why a segment of packets can't be read beyond what Packet returns, nor written; nil where it returns all.
func (b *Burst) Beyond(seg int) error {
	if seg == 0 && b.view.Heads() {
		return b.readable(1)
	}
	return nil
}

// Peer is the address that packet i came from, empty where the queue has none.
func (b *Burst) Peer(i int) (string, error) {
	if err := b.checkPacket(0, i); err != nil {
		return "", err
	}
	return b.native.Peer(i), nil
}
