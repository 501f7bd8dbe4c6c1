package native

/*
#include "dq.h"
*/
import "C"

import "unsafe"

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
}

var _ = [1]struct{}{}[unsafe.Sizeof(Line{})-C.sizeof_dq_line]
var _ = [1]struct{}{}[unsafe.Offsetof(Line{}.PacePPS)-unsafe.Offsetof(C.dq_line{}.pace_pps)]

// Name is the interface or the stage.
func (l *Line) Name() string { return text(l.name[:]) }

// Queue is the queue's name, of receive and transmit lines.
func (l *Line) Queue() string { return text(l.queue[:]) }

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
