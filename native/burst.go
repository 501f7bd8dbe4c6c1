package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

// Flags of a burst.
const (
	BurstShared         = uint32(C.DQ_BURST_SHARED) // packets are read-only
	BurstReordered      = uint32(C.DQ_BURST_REORDERED)
	BurstReorderTimeout = uint32(C.DQ_BURST_REORDER_TIMEOUT)
)

// HeadBytes is the maximum number of bytes that the host has of a packet in GPU memory.
const HeadBytes = int(C.DQ_HEAD)

// Clock identifies the clock of a burst's receive times.
type Clock int32

// Clocks.
const (
	ClockRealtime Clock = C.DQ_CLOCK_REALTIME
	ClockVirtual  Clock = C.DQ_CLOCK_VIRTUAL
	ClockFile     Clock = C.DQ_CLOCK_FILE
)

// View contains a burst's columns. It mirrors dq_view: the pointers are C's and valid while the caller's reference to the burst
// lasts.
type View struct {
	base       unsafe.Pointer
	N          uint32 // packets
	Segments   uint32
	Flags      uint32
	Clock      Clock
	Origin     int64   // origin of the receive times that scripts see: the session's start, or the first packet of the capture
	owner      *uint32 // flags of the burst that owns the packets' buffers
	Conn       uint32  // connection; 0: none
	Bytes      uint64
	DeviceOnly uint32  // bit s: the CPU can't read segment s
	head       *uint64 // whole packets in GPU memory: their first bytes; nil: none
	headLen    *uint32
	off        [MaxSegs]*uint64
	len        [MaxSegs]*uint32
	flow       *uint32
	ts         *int64
	queue      *C.dq_queue
	handles    *C.dq_burst // burst whose columns must be filled before they are read; nil: they are filled
}

var _ = [1]struct{}{}[unsafe.Sizeof(View{})-C.sizeof_dq_view]
var _ = [1]struct{}{}[unsafe.Offsetof(View{}.handles)-unsafe.Offsetof(C.dq_view{}.handles)]

// Shared reports whether the packets are read-only at present, because they have another reader.
func (v *View) Shared() bool { return (v.Flags|*v.owner)&BurstShared != 0 }

// Queue returns the queue that received the burst or that it was allocated for.
func (v *View) Queue() Queue { return Queue{v.queue} }

// fill fills the columns of a burst that was delivered as handles.
func (v *View) fill() {
	if v.handles != nil {
		C.dq_burst_columns(v.handles)
		v.handles = nil
	}
}

// Offsets returns the arena offsets of the packets' segment.
func (v *View) Offsets(seg int) []uint64 {
	v.fill()
	return unsafe.Slice(v.off[seg], v.N)
}

// Lengths returns the bytes of each packet in a segment.
func (v *View) Lengths(seg int) []uint32 {
	v.fill()
	return unsafe.Slice(v.len[seg], v.N)
}

// Flows returns the packets' flow ids; 0: none.
func (v *View) Flows() []uint32 {
	v.fill()
	return unsafe.Slice(v.flow, v.N)
}

// NoTime is the receive time of a packet without one.
const NoTime int64 = C.DQ_NO_TIME

// RxTimes returns receive times in ns since the epoch, or NoTime.
func (v *View) RxTimes() []int64 {
	v.fill()
	return unsafe.Slice(v.ts, v.N)
}

// Heads reports whether the packets are whole in GPU memory and their first bytes, up to 128, can be read.
func (v *View) Heads() bool { return v.head != nil }

// Head returns the first bytes of packet i.
func (v *View) Head(i int) []byte {
	at, n := unsafe.Slice(v.head, v.N)[i], unsafe.Slice(v.headLen, v.N)[i]
	return unsafe.Slice((*byte)(unsafe.Add(v.base, at)), n)
}

// Packet returns the bytes of a packet's segment. The caller must check seg and i.
func (v *View) Packet(seg, i int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(v.base, v.Offsets(seg)[i])), v.Lengths(seg)[i])
}

// Ordinal returns the name of a segment in messages: "first" is segment 0.
func Ordinal(seg int) string { return C.GoString(C.dq_ordinal(C.uint32_t(seg))) }

// Burst is one reference to a burst.
type Burst struct{ c *C.dq_burst }

// View reads the burst's columns into v.
func (b Burst) View(v *View) {
	var c C.dq_view // not v itself: the cgo check would scan all of the object that contains v
	C.dq_burst_view(b.c, &c)
	*v = *(*View)(unsafe.Pointer(&c))
}

// Ref adds a reference.
func (b Burst) Ref() { C.dq_burst_ref(b.c) }

// Offsets returns where segment seg of each packet of the view begins, in bytes from the start of its region.
func (b Burst) Offsets(v *View, seg int) ([]uint64, Region) {
	r := Region{C.dq_burst_region(b.c, C.uint32_t(seg))}
	if r.c == nil {
		return nil, r
	}
	start := r.Info().Offset
	from := make([]uint64, v.N)
	for i, off := range unsafe.Slice(v.off[seg], v.N) {
		from[i] = off - start
	}
	return from, r
}

// Unref drops a reference; the last one frees the burst. Any thread.
func (b Burst) Unref() { C.dq_burst_unref(b.c) }

// TxTimes returns the requested send times of n packets for writing, ns since the epoch, 0: at once. It returns nil if the burst
// is shared.
func (b Burst) TxTimes(n uint32) []int64 {
	times := (*int64)(C.dq_burst_times(b.c))
	if times == nil {
		return nil
	}
	return unsafe.Slice(times, n)
}

// Peer returns the source address of packet i, empty where the queue has none.
func (b Burst) Peer(i int) string {
	var buf [64]C.char
	C.dq_burst_peer(b.c, C.uint32_t(i), &buf[0], C.size_t(len(buf)))
	return text(buf[:])
}

// SetLen sets the length of packet i in a segment, or of all if i < 0.
func (b Burst) SetLen(seg, i, n int) error {
	return status(C.dq_burst_set_len(b.c, C.uint32_t(seg), C.int64_t(i), C.uint32_t(n)))
}

// Truncate keeps the first n packets.
func (b Burst) Truncate(n int) error { return status(C.dq_burst_truncate(b.c, C.uint32_t(n))) }

// FreePacket frees the buffers of packet i.
func (b Burst) FreePacket(i int) error { return status(C.dq_burst_free_packet(b.c, C.uint32_t(i))) }

// FreeSegment frees the buffers of one segment of all packets.
func (b Burst) FreeSegment(seg int) error {
	return status(C.dq_burst_free_segment(b.c, C.uint32_t(seg)))
}

// Keep prepares the burst for being kept for long: if it occupies much more memory than its packets need, they are copied. It
// returns the burst to use in place of b.
func (b Burst) Keep() Burst {
	var out Burst
	C.dq_burst_compact(b.c, &out.c)
	return out
}

// FreePacketSegment frees the buffer of one segment of packet i.
func (b Burst) FreePacketSegment(seg, i int) error {
	return status(C.dq_burst_free_packet_segment(b.c, C.uint32_t(seg), C.uint32_t(i)))
}

// Checksums computes the checksums of packet i, or of all if i < 0.
func (b Burst) Checksums(i int) error { return status(C.dq_burst_checksums(b.c, C.int64_t(i))) }

// Pick returns a burst of the packets idx, which references b.
func (b Burst) Pick(idx []uint32) (Burst, error) {
	var out Burst
	return out, status(C.dq_burst_pick(b.c, (*C.uint32_t)(first(idx)), C.uint32_t(len(idx)), &out.c))
}

// Redirect directs the packets to a connection; 0 is the interface's default peer. It returns the burst to use in place of b, as
// a shared burst's columns are not changed. ErrNoBurst if no descriptor is free.
func (b Burst) Redirect(conn uint32) (Burst, error) {
	out := b
	return out, status(C.dq_burst_redirect(b.c, C.uint32_t(conn), &out.c))
}
