package session

import (
	"fmt"
	"math/bits"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec/schema"
)

// Burst is a batch of packets owned by a task. After it has been sent or freed every use is an error. It must be used by its task's goroutine only.
type Burst struct {
	s           *Session
	native      native.Burst
	view        native.View
	home        *Leases // nil: no longer owned
	prev, next  *Burst
	gone        string // reason of the loss of ownership
	kept        bool
	picks, also *Burst // selections made of it before it was kept; next selection of its parent
}

// GoneError is the error of using a burst that the task no longer owns.
type GoneError struct {
	How string // "was sent"
}

// Error returns a message with the reason.
func (e *GoneError) Error() string { return "the burst " + e.How }

// Check returns a *GoneError if the burst must not be used any more.
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

// Gone reports whether the task no longer owns the burst.
func (b *Burst) Gone() bool { return b.home == nil }

// release removes the burst from its leases; its reference now belongs to another owner.
func (b *Burst) release(how string) {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
	b.home.n--
	b.home, b.gone = nil, how
}

// drop releases the reference, unless the session and its memory are gone.
func (b *Burst) drop(how string) {
	if !b.s.closed.Load() {
		b.native.Unref()
	}
	b.release(how)
}

// Free frees the burst's buffers as soon as they have no other readers.
func (b *Burst) Free() error {
	if err := b.Check(); err != nil {
		return err
	}
	b.drop("was freed")
	return nil
}

// Keep extends the lifetime of a burst beyond the handler that it was delivered to. Packets in much larger buffers are copied.
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

// EndHandler frees a burst at the end of its handler, unless it was kept, sent or freed. Its selections are treated in the same way.
func (b *Burst) EndHandler() {
	for p := b.picks; p != nil; p = p.also {
		p.EndHandler()
	}
	b.picks = nil
	if b.home != nil && !b.kept {
		b.drop("ended with its handler; b:keep() keeps a burst")
	}
}

// The following methods read the burst's columns. They require a live burst: call Check first.

// N returns the number of packets.
func (b *Burst) N() int { return int(b.view.N) }

// Bytes returns the total length of all packets.
func (b *Burst) Bytes() uint64 { return b.view.Bytes }

// Segments returns the number of segments of each packet.
func (b *Burst) Segments() int { return int(b.view.Segments) }

// Flags returns the burst's flags, with the reference's values.
func (b *Burst) Flags() uint32 { return b.view.Flags }

// errReadOnly is the error of changing packets with other readers.
var errReadOnly = invalid("its packets are read-only: a second consumer, a writer or a queue that sends them reads them too")

// Writable returns an error if the packets cannot be changed, because the burst is gone or has other readers. The result applies to all bursts that
// share the packets, such as a selection and its parent.
func (b *Burst) Writable() error {
	if err := b.Check(); err != nil {
		return err
	}
	if b.view.Shared() {
		return errReadOnly
	}
	return nil
}

// ConnID returns the connection that the burst was received from or will be sent to; 0: none.
func (b *Burst) ConnID() uint32 { return b.view.Conn }

// Clock returns the clock of the receive times: "realtime", "virtual" or "file".
func (b *Burst) Clock() string {
	switch b.view.Clock {
	case native.ClockVirtual:
		return "virtual"
	case native.ClockFile:
		return "file"
	}
	return "realtime"
}

// Queue returns the queue that received the burst, or that it was allocated for. For output of a configured stage it is the queue that received the
// stage's input.
func (b *Burst) Queue() *Queue {
	q := b.s.queueOf(b.view.Queue())
	if q.home != nil {
		return q.home
	}
	return q
}

// Session returns the session of the burst.
func (b *Burst) Session() *Session { return b.s }

// Lengths returns the packets' lengths in a segment, in bytes. The slice is read-only and valid while the burst lives.
func (b *Burst) Lengths(seg int) ([]uint32, error) {
	if err := b.checkPacket(seg, 0); err != nil && b.view.N > 0 {
		return nil, err
	}
	return b.view.Lengths(seg), nil
}

// Offsets returns where each packet's segment begins, in bytes from the start of its memory region, and the region's name; empty: a region of the
// engine's own.
func (b *Burst) Offsets(seg int) (offsets []uint64, region string, err error) {
	if err := b.checkPacket(seg, 0); err != nil && b.view.N > 0 {
		return nil, "", err
	}
	offsets, in := b.native.Offsets(&b.view, seg)
	for _, r := range b.s.regions {
		if r.native == in {
			region = r.Name()
		}
	}
	return offsets, region, nil
}

// FlowIDs returns the packets' flow ids, 0: none. The slice is valid while the burst lives.
func (b *Burst) FlowIDs() []uint32 { return b.view.Flows() }

// NoTime is the receive time of a packet without one: generated here, or captured without a timestamp.
const NoTime = native.NoTime

// RxTimes returns receive times, ns since the epoch, or NoTime. The slice is valid while the burst lives.
func (b *Burst) RxTimes() []int64 { return b.view.RxTimes() }

// TimeOrigin returns the origin of receive times for scripts: the session's start, or the first packet of the capture.
func (b *Burst) TimeOrigin() int64 { return b.view.Origin }

// TxTimes returns the times at which packets are to be sent, ns since the epoch, 0: immediately. The caller may write to the slice while the burst
// lives. A burst with other readers has no such times, but a selection of it does.
func (b *Burst) TxTimes() ([]int64, error) {
	if err := b.Check(); err != nil {
		return nil, err
	}
	times := b.native.TxTimes(b.view.N)
	if times == nil {
		return nil, fmt.Errorf("send times: the burst has other readers: %w; hint: b:select makes one that has its own", ErrInvalid)
	}
	return times, nil
}

// checkPacket checks the bounds of a segment and a packet index.
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

// onGPU reports whether all device-only segments of the burst are in GPU memory.
func (b *Burst) onGPU() bool {
	q := b.s.queueOf(b.view.Queue())
	for seg := range int(b.view.Segments) {
		if b.view.DeviceOnly>>seg&1 == 0 {
			continue
		}
		if q == nil || q.spec == nil || seg >= len(q.spec.MemoryRegions) {
			return false
		}
		if r := b.s.cfg.Region(q.spec.MemoryRegions[seg]); r == nil || r.Kind != schema.KindDevice {
			return false
		}
	}
	return true
}

// readable returns an error if the CPU cannot read one of the segments in the given bitmap.
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
	if r := b.s.cfg.Region(region); r != nil && r.Kind == schema.KindDevice {
		hint = "s:copy moves bursts from a GPU's memory to the host's"
		if b.view.Heads() {
			hint = fmt.Sprintf("the first %d bytes of each packet can be read; %s", native.HeadBytes, hint)
		}
	}
	return ErrNotSupported.Errorf("the %s segment of the burst's packets lies in memory region %q, which the CPU can't read; hint: %s", native.Ordinal(seg), region, hint)
}

// Packet returns the memory of a packet's segment. It is valid while the burst lives, and may be written to only if Writable returns nil. For a
// packet entirely in GPU memory it returns a read-only copy of the first bytes, up to 128.
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

// Beyond returns an error if Packet does not return a whole segment, which then cannot be written either.
func (b *Burst) Beyond(seg int) error {
	if seg == 0 && b.view.Heads() {
		return b.readable(1)
	}
	return nil
}

// Peer returns the source address of packet i; empty if the queue does not record it.
func (b *Burst) Peer(i int) (string, error) {
	if err := b.checkPacket(0, i); err != nil {
		return "", err
	}
	return b.native.Peer(i), nil
}
