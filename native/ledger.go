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

// LineKind is the kind of object that a ledger line accounts for.
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

// Numbers of drop reasons and additional counters of a line.
const (
	Reasons = int(C.DQ_REASONS)
	Extras  = int(C.DQ_EXTRAS)
)

type name [C.DQ_NAME_LEN]C.char

// Line is one account: In = Out + Held + the sum of Dropped; exact when quiescent. It mirrors dq_line; Dropped and Extra are
// indexed like ReasonRows and ExtraRows.
type Line struct {
	name, queue                              name
	Kind                                     LineKind
	QueueID                                  uint32
	In, InBytes, Out, OutBytes, Bursts, Held uint64
	Dropped                                  [Reasons]uint64
	Extra                                    [Extras]uint64
	PaceBPS, PacePPS                         float64 // transmit: the requested rates
	PaceSpeed                                float64 // transmit: speed at which it follows receive times
}

var _ = [1]struct{}{}[unsafe.Sizeof(Line{})-C.sizeof_dq_line]
var _ = [1]struct{}{}[unsafe.Offsetof(Line{}.PaceSpeed)-unsafe.Offsetof(C.dq_line{}.pace_speed)]

// Name returns the interface or the stage.
func (l *Line) Name() string { return text(l.name[:]) }

// Queue returns the queue's name, for receive and transmit lines.
func (l *Line) Queue() string { return text(l.queue[:]) }

// QueueError is a system error of a queue's socket. It mirrors dq_queue_error.
type QueueError struct {
	name, queue name
	dir         int32
	QueueID     uint32
	errno       int32
	_           int32
	N           uint64 // transmit: packets not sent; receive: how often the socket stopped working
}

var _ = [1]struct{}{}[unsafe.Sizeof(QueueError{})-C.sizeof_dq_queue_error]
var _ = [1]struct{}{}[unsafe.Offsetof(QueueError{}.N)-unsafe.Offsetof(C.dq_queue_error{}.n)]

// Name returns the interface.
func (f *QueueError) Name() string { return text(f.name[:]) }

// Queue returns the queue's name.
func (f *QueueError) Queue() string { return text(f.queue[:]) }

// Send reports whether the queue is a transmit queue.
func (f *QueueError) Send() bool { return f.dir == C.DQ_TX }

// Shut reports whether the socket was shut down.
func (f *QueueError) Shut() bool { return f.errno == C.ESHUTDOWN }

// Err returns the system error; nil stands for several others.
func (f *QueueError) Err() error {
	if f.errno == C.DQ_OTHER_ERRORS {
		return nil
	}
	return syscall.Errno(f.errno)
}

// counted returns the rows of fill, which writes up to room of them and returns how many there are; room is the expected number.
func counted[T any](room C.uint32_t, fill func(to *T, room C.uint32_t) C.uint32_t) []T {
	for {
		list := make([]T, room)
		n := fill(first(list), room)
		if n <= room {
			return list[:n]
		}
		room = n + n/4
	}
}

// QueueErrors returns the system errors of the sockets. Any thread.
func (s *Session) QueueErrors() []QueueError {
	return counted(0, func(to *QueueError, room C.uint32_t) C.uint32_t {
		return C.dq_queue_errors(s.c, (*C.dq_queue_error)(unsafe.Pointer(to)), room)
	})
}

// Buckets is the number of buckets of a histogram.
const Buckets = int(C.DQ_HISTOGRAM_BUCKETS)

// Timing is the pacing accuracy of a transmit queue; it mirrors dq_tx_accuracy.
type Timing struct {
	name, queue                 name
	QueueID                     uint32
	_                           uint32
	WantedNS, TookNS, OverdueNS uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(Timing{})-C.sizeof_dq_tx_accuracy]
var _ = [1]struct{}{}[unsafe.Offsetof(Timing{}.OverdueNS)-unsafe.Offsetof(C.dq_tx_accuracy{}.overdue_ns)]

// Name returns the interface.
func (t *Timing) Name() string { return text(t.name[:]) }

var bucketMost = func() (most [Buckets]uint64) {
	for k := range most {
		most[k] = uint64(C.dq_histogram_most(C.uint32_t(k)))
	}
	return most
}()

// BucketMost returns the largest value of a bucket.
func BucketMost(bucket int) uint64 { return bucketMost[bucket] }

// Timings returns the accuracy of the transmit queues that have used a pace or send times. Any thread.
func (s *Session) Timings() []Timing {
	return counted(0, func(to *Timing, room C.uint32_t) C.uint32_t {
		return C.dq_tx_accuracies(s.c, (*C.dq_tx_accuracy)(unsafe.Pointer(to)), room)
	})
}

// Histogram is a histogram of a queue or a stage. It mirrors dq_histogram.
type Histogram struct {
	name        name
	Kind        int32 // of HistogramRows
	QueueID     uint32
	First, Most uint64 // value of the first bucket; largest possible value, 0: unlimited
	Sum         uint64 // sum of the values, each less First
	N           [Buckets]uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(Histogram{})-C.sizeof_dq_histogram]
var _ = [1]struct{}{}[unsafe.Offsetof(Histogram{}.N)-unsafe.Offsetof(C.dq_histogram{}.n)]

// Name returns the interface or the stage.
func (s *Histogram) Name() string { return text(s.name[:]) }

// Histograms returns the histograms of queues and stages. Any thread.
func (s *Session) Histograms() []Histogram {
	return counted(4, func(to *Histogram, room C.uint32_t) C.uint32_t {
		return C.dq_histograms(s.c, (*C.dq_histogram)(unsafe.Pointer(to)), room)
	})
}

// MaxFlowCounts is the number of flows of a queue with separate counters.
const MaxFlowCounts = C.DQ_FLOW_COUNTS

// FlowCount counts the packets of a flow in a receive queue. It mirrors dq_flow_count.
type FlowCount struct {
	Iface, QueueID, FlowID uint32 // Iface: index in the order of AddIface; FlowID 0: flows without a counter
	_                      uint32
	Packets, Bytes         uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(FlowCount{})-C.sizeof_dq_flow_count]
var _ = [1]struct{}{}[unsafe.Offsetof(FlowCount{}.Bytes)-unsafe.Offsetof(C.dq_flow_count{}.bytes)]

// FlowCounts returns the counts per flow. Any thread.
func (s *Session) FlowCounts() []FlowCount {
	return counted(0, func(to *FlowCount, room C.uint32_t) C.uint32_t {
		return C.dq_flow_counts(s.c, (*C.dq_flow_count)(unsafe.Pointer(to)), room)
	})
}

// SourceKind is the identification of a reorder stage's source.
type SourceKind int32

// Kinds of source.
const (
	SourceNumber  SourceKind = C.DQ_SOURCE_NUMBER
	SourcePeer    SourceKind = C.DQ_SOURCE_PEER
	SourceOthers  SourceKind = C.DQ_SOURCE_OTHERS  // sources without a counter
	SourceUnknown SourceKind = C.DQ_SOURCE_UNKNOWN // packets without the field, and cells of unknown source
)

// SourceCount counts the received and missing packets of a source of a reorder or gaps stage. It mirrors dq_source_count.
type SourceCount struct {
	name                                       name
	peer                                       [C.DQ_PEER_LEN]C.char
	Number                                     uint64
	Kind                                       SourceKind
	_                                          uint32
	Packets, Missing, Late, Duplicate, Dropped uint64
	Reordered, Restarts                        uint64 // of a gaps stage
}

var _ = [1]struct{}{}[unsafe.Sizeof(SourceCount{})-C.sizeof_dq_source_count]
var _ = [1]struct{}{}[unsafe.Offsetof(SourceCount{}.Restarts)-unsafe.Offsetof(C.dq_source_count{}.restarts)]

// Name returns the stage.
func (c *SourceCount) Name() string { return text(c.name[:]) }

// Peer returns HOST:PORT, for SourcePeer.
func (c *SourceCount) Peer() string { return text(c.peer[:]) }

// SourceCounts returns the counts per source of reorder and gaps stages. Any thread.
func (s *Session) SourceCounts() []SourceCount {
	return counted(0, func(to *SourceCount, room C.uint32_t) C.uint32_t {
		return C.dq_source_counts(s.c, (*C.dq_source_count)(unsafe.Pointer(to)), room)
	})
}

// PeerCount counts the packets of a peer in a socket's receive queue. It mirrors dq_peer_count.
type PeerCount struct {
	name           name
	peer           [C.DQ_PEER_LEN]C.char
	QueueID        uint32
	_              uint32
	Packets, Bytes uint64
}

var _ = [1]struct{}{}[unsafe.Sizeof(PeerCount{})-C.sizeof_dq_peer_count]
var _ = [1]struct{}{}[unsafe.Offsetof(PeerCount{}.Bytes)-unsafe.Offsetof(C.dq_peer_count{}.bytes)]

// Name returns the interface.
func (c *PeerCount) Name() string { return text(c.name[:]) }

// Peer returns HOST:PORT; empty: all peers without a counter.
func (c *PeerCount) Peer() string { return text(c.peer[:]) }

// PeerCounts returns the counts per peer. Any thread.
func (s *Session) PeerCounts() []PeerCount {
	return counted(0, func(to *PeerCount, room C.uint32_t) C.uint32_t {
		return C.dq_peer_counts(s.c, (*C.dq_peer_count)(unsafe.Pointer(to)), room)
	})
}

// Ledger returns all lines. Any thread.
func (s *Session) Ledger() []Line {
	return counted(32, func(to *Line, room C.uint32_t) C.uint32_t {
		return C.dq_ledger(s.c, (*C.dq_line)(unsafe.Pointer(to)), room)
	})
}

// ReasonRow describes a drop reason.
type ReasonRow struct {
	Name   string
	Wanted bool // requested by the script: not a loss
	Text   string
	Advice string // remedy
}

// ExtraRow describes an additional counter of a line.
type ExtraRow struct{ Name, Unit, Text string }

// HistogramRow describes a histogram of lines.
type HistogramRow struct {
	Name, Unit string // unit of its values: packets or ns
	Line       LineKind
	Metric     string // OpenTelemetry name without the prefix "daqiri."
	Text       string
	Title      string // in the summary, with %s for the line; empty: not shown there
}

// The engine's tables: indices of Line.Dropped and Line.Extra, and values of Histogram.Kind.
var (
	ReasonRows = rows(C.dq_reasons[:], func(r *C.dq_reason_row) ReasonRow {
		return ReasonRow{C.GoString(r.name), bool(r.wanted), C.GoString(r.text), C.GoString(r.advice)}
	})
	ExtraRows = rows(C.dq_extras[:], func(r *C.dq_extra_row) ExtraRow {
		return ExtraRow{C.GoString(r.name), C.GoString(r.unit), C.GoString(r.text)}
	})
	HistogramRows = rows(C.dq_histogram_rows[:], func(r *C.dq_histogram_row) HistogramRow {
		return HistogramRow{C.GoString(r.name), C.GoString(r.unit), LineKind(r.line), C.GoString(r.metric), C.GoString(r.text), C.GoString(r.title)}
	})
)

func rows[From, To any](table []From, row func(*From) To) []To {
	list := make([]To, len(table))
	for i := range table {
		list[i] = row(&table[i])
	}
	return list
}
