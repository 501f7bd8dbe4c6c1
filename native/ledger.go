package native

/*
#include <errno.h>
#include "dq.h"
*/
import "C"

import (
	"syscall"
	"unsafe"
)

// LineKind says what a ledger line accounts for.
type LineKind int32

// Kinds of line.
const (
	LineRx     LineKind = C.DQ_LINE_RX
	LineTx     LineKind = C.DQ_LINE_TX
	LineWire   LineKind = C.DQ_LINE_WIRE
	LineStage  LineKind = C.DQ_LINE_STAGE
	LineTap    LineKind = C.DQ_LINE_TAP
	LineWriter LineKind = C.DQ_LINE_WRITER
)

// How many drop reasons and further figures a line has.
const (
	Reasons = int(C.DQ_REASONS)
	Extras  = int(C.DQ_EXTRAS)
)

type name [C.DQ_NAME_LEN]C.char

// Line is one account: In = Out + Held + the sum of Dropped, exactly when quiescent. It
// mirrors dq_line; Dropped and Extra are indexed as ReasonName and ExtraName count.
type Line struct {
	name, queue                              name
	Kind                                     LineKind
	QueueID                                  uint32
	In, InBytes, Out, OutBytes, Bursts, Held uint64
	Dropped                                  [Reasons]uint64
	Extra                                    [Extras]uint64
	PaceBPS, PacePPS                         float64 // transmit: what was asked for
	PaceSpeed                                float64 // transmit: it follows receive times
}

var _ = [1]struct{}{}[unsafe.Sizeof(Line{})-C.sizeof_dq_line]
var _ = [1]struct{}{}[unsafe.Offsetof(Line{}.PaceSpeed)-unsafe.Offsetof(C.dq_line{}.pace_speed)]

// Name is the interface or the stage.
func (l *Line) Name() string { return text(l.name[:]) }

// Queue is the queue's name, of receive and transmit lines.
func (l *Line) Queue() string { return text(l.queue[:]) }

// Fault is a system error that a queue's socket met. It mirrors dq_fault.
type Fault struct {
	name, queue name
	dir         int32
	QueueID     uint32
	errno       int32
	_           int32
	N           uint64 // transmit: packets not sent; receive: how often the socket ceased to work
}

var _ = [1]struct{}{}[unsafe.Sizeof(Fault{})-C.sizeof_dq_fault]
var _ = [1]struct{}{}[unsafe.Offsetof(Fault{}.N)-unsafe.Offsetof(C.dq_fault{}.n)]

// Name is the interface.
func (f *Fault) Name() string { return text(f.name[:]) }

// Queue is the queue's name.
func (f *Fault) Queue() string { return text(f.queue[:]) }

// Send reports whether the queue is a transmit queue.
func (f *Fault) Send() bool { return f.dir == C.DQ_TX }

// Shut reports whether it is that somebody shut the socket down.
func (f *Fault) Shut() bool { return f.errno == C.ESHUTDOWN }

// Err is the system error; nil stands for several others.
func (f *Fault) Err() error {
	if f.errno == C.DQ_FAULT_OTHERS {
		return nil
	}
	return syscall.Errno(f.errno)
}

// Faults reads what the sockets met. Any thread.
func (s *Session) Faults() []Fault {
	for room := 0; ; room += 8 { // hardly ever there is any
		list := make([]Fault, room)
		n := int(C.dq_faults(s.c, (*C.dq_fault)(unsafe.Pointer(first(list))), C.uint32_t(room)))
		if n <= room {
			return list[:n]
		}
	}
}

// Buckets is how many buckets a histogram of times has.
const Buckets = int(C.DQ_SPREAD_BUCKETS)

// Timing says how a transmit queue kept to its pace and to send times: see dq_timing in dq.h, which it mirrors.
type Timing struct {
	name, queue                 name
	QueueID                     uint32
	_                           uint32
	WantedNS, TookNS, OverdueNS uint64
	GapError, TimeError         [Buckets]uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(Timing{})-C.sizeof_dq_timing]
var _ = [1]struct{}{}[unsafe.Offsetof(Timing{}.TimeError)-unsafe.Offsetof(C.dq_timing{}.time_error)]

// Name is the interface.
func (t *Timing) Name() string { return text(t.name[:]) }

var bucketMost = func() (most [Buckets]uint64) {
	for k := range most {
		most[k] = uint64(C.dq_spread_most(C.uint32_t(k)))
	}
	return most
}()

// BucketMost is the largest number of ns that falls into a bucket.
func BucketMost(bucket int) uint64 { return bucketMost[bucket] }

// Timings reads the transmit queues that have had a pace or send times. Any thread.
func (s *Session) Timings() []Timing {
	for room := 0; ; { // most sessions have none
		list := make([]Timing, room)
		n := int(C.dq_timings(s.c, (*C.dq_timing)(unsafe.Pointer(first(list))), C.uint32_t(room)))
		if n <= room {
			return list[:n]
		}
		room = n
	}
}

// SpreadKind says what a histogram counts.
type SpreadKind int32

// Kinds of histogram.
const (
	SpreadBurstSize  SpreadKind = C.DQ_SPREAD_BURST_SIZE  // packets of bursts, less one
	SpreadWriteStall SpreadKind = C.DQ_SPREAD_WRITE_STALL // ns
	SpreadCompletion SpreadKind = C.DQ_SPREAD_COMPLETION  // ns
)

// Spread is a histogram of a queue or a stage. It mirrors dq_spread.
type Spread struct {
	name    name
	Kind    SpreadKind
	QueueID uint32
	Sum     uint64
	N       [Buckets]uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(Spread{})-C.sizeof_dq_spread]
var _ = [1]struct{}{}[unsafe.Offsetof(Spread{}.N)-unsafe.Offsetof(C.dq_spread{}.n)]

// Name is the interface or the stage.
func (s *Spread) Name() string { return text(s.name[:]) }

// Spreads reads the histograms of queues and stages. Any thread.
func (s *Session) Spreads() []Spread {
	for room := 4; ; {
		list := make([]Spread, room)
		n := int(C.dq_spreads(s.c, (*C.dq_spread)(unsafe.Pointer(first(list))), C.uint32_t(room)))
		if n <= room {
			return list[:n]
		}
		room = n + 8
	}
}

// MaxFlowCounts is how many flows of a queue are counted one by one.
const MaxFlowCounts = C.DQ_FLOW_COUNTS

// FlowCount is what a receive queue received of a flow. It mirrors dq_flow_count.
type FlowCount struct {
	Iface, QueueID, FlowID uint32 // the interface's place in the order of AddIface; 0: flows that have no counter
	_                      uint32
	Packets, Bytes         uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(FlowCount{})-C.sizeof_dq_flow_count]
var _ = [1]struct{}{}[unsafe.Offsetof(FlowCount{}.Bytes)-unsafe.Offsetof(C.dq_flow_count{}.bytes)]

// FlowCounts reads what came of each flow. Any thread.
func (s *Session) FlowCounts() []FlowCount {
	for room := 0; ; { // most sessions have none
		list := make([]FlowCount, room)
		n := int(C.dq_flow_counts(s.c, (*C.dq_flow_count)(unsafe.Pointer(first(list))), C.uint32_t(room)))
		if n <= room {
			return list[:n]
		}
		room = n + n/4
	}
}

// SourceKind says what tells a source of a reorder stage.
type SourceKind int32

// Kinds of source.
const (
	SourceNumber  SourceKind = C.DQ_SOURCE_NUMBER
	SourcePeer    SourceKind = C.DQ_SOURCE_PEER
	SourceOthers  SourceKind = C.DQ_SOURCE_OTHERS  // those that found no counter
	SourceUnknown SourceKind = C.DQ_SOURCE_UNKNOWN // packets without the field, cells that nobody has had yet
)

// SourceCount is what a reorder stage got and missed of a source. It mirrors dq_source_count.
type SourceCount struct {
	name                                       name
	peer                                       [C.DQ_PEER_LEN]C.char
	Number                                     uint64
	Kind                                       SourceKind
	_                                          uint32
	Packets, Missing, Late, Duplicate, Dropped uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(SourceCount{})-C.sizeof_dq_source_count]
var _ = [1]struct{}{}[unsafe.Offsetof(SourceCount{}.Dropped)-unsafe.Offsetof(C.dq_source_count{}.dropped)]

// Name is the stage.
func (c *SourceCount) Name() string { return text(c.name[:]) }

// Peer is HOST:PORT, of SourcePeer.
func (c *SourceCount) Peer() string { return text(c.peer[:]) }

// SourceCounts reads what reorder stages got of each source. Any thread.
func (s *Session) SourceCounts() []SourceCount {
	for room := 0; ; { // most sessions have none
		list := make([]SourceCount, room)
		n := int(C.dq_source_counts(s.c, (*C.dq_source_count)(unsafe.Pointer(first(list))), C.uint32_t(room)))
		if n <= room {
			return list[:n]
		}
		room = n + n/4
	}
}

// PeerCount is what a socket's receive queue received of a peer. It mirrors dq_peer_count.
type PeerCount struct {
	name           name
	peer           [C.DQ_PEER_LEN]C.char
	QueueID        uint32
	_              uint32
	Packets, Bytes uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(PeerCount{})-C.sizeof_dq_peer_count]
var _ = [1]struct{}{}[unsafe.Offsetof(PeerCount{}.Bytes)-unsafe.Offsetof(C.dq_peer_count{}.bytes)]

// Name is the interface.
func (c *PeerCount) Name() string { return text(c.name[:]) }

// Peer is HOST:PORT, empty for all those that found no counter.
func (c *PeerCount) Peer() string { return text(c.peer[:]) }

// PeerCounts reads what came of each peer. Any thread.
func (s *Session) PeerCounts() []PeerCount {
	for room := 0; ; { // most sessions have none
		list := make([]PeerCount, room)
		n := int(C.dq_peer_counts(s.c, (*C.dq_peer_count)(unsafe.Pointer(first(list))), C.uint32_t(room)))
		if n <= room {
			return list[:n]
		}
		room = n + n/4
	}
}

// Ledger reads every line. Any thread.
func (s *Session) Ledger() []Line {
	for room := 32; ; {
		lines := make([]Line, room)
		n := int(C.dq_ledger(s.c, (*C.dq_line)(unsafe.Pointer(first(lines))), C.uint32_t(room)))
		if n <= room {
			return lines[:n]
		}
		room = n + 8
	}
}

// The words for reasons and further figures, from the engine's tables.
var (
	reasonNames = words(Reasons, func(i C.int) *C.char { return C.dq_reason_name(i) })
	reasonTexts = words(Reasons, func(i C.int) *C.char { return C.dq_reason_text(i) })
	extraNames  = words(Extras, func(i C.int) *C.char { return C.dq_extra_name(i) })
)

func words(n int, at func(C.int) *C.char) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = C.GoString(at(C.int(i)))
	}
	return list
}

// ReasonName is the word for a reason of dropping.
func ReasonName(reason int) string { return reasonNames[reason] }

// ReasonText says what to do about a reason of dropping.
func ReasonText(reason int) string { return reasonTexts[reason] }

// ExtraName is the word for a further figure.
func ExtraName(extra int) string { return extraNames[extra] }
