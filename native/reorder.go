package native

/*
#include "dq.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// FillKeep leaves the old buffer content in gaps.
const FillKeep = int(C.DQ_FILL_KEEP)

// MaxWindow is the maximum number of open batches of a reorder stage.
const MaxWindow = int(C.DQ_MAX_WINDOW)

// LeastBatches is the minimum number of batches that the numbers of a reorder stage must distinguish.
const LeastBatches = int(C.DQ_LEAST_BATCHES)

// ReorderConf configures a reorder stage; it mirrors dq_reorder_conf, which documents the rules. Empty programs are absent.
type ReorderConf struct {
	Region                          Region
	Seq, Batch, Slot, Offset, Extra []Insn
	Source                          []Insn // packets are counted by it, or
	SourcePeer                      bool   // by peer
	SeqBits                         int
	Wrap                            uint64
	Slots, SlotBytes, PacketBytes   int
	Segment, PayloadOffset          int
	AtPayload                       bool
	Header, Length                  []Insn // bytes before the payload, and of it, if variable
	Types                           DataTypes
	Window                          int
	TimeoutNS                       int64
	Fill                            int // a byte, or FillKeep
	DropIncomplete, Wait            bool
	Policy                          Policy
	ByGPU                           bool // a GPU moves the payloads, for any region
	Ring                            bool // batch k goes to buffer k of Region
	FlowIDs                         []uint32
}

// AddReorder adds a stage that assembles packets into aggregates, and the receive queue that delivers them.
func (s *Session) AddReorder(name string, conf ReorderConf) (Stage, Queue, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	number := func(insns []Insn) C.dq_number { return pinnedNumber(&pin, insns) }
	c := C.dq_reorder_conf{
		region: conf.Region.c,
		seq:    number(conf.Seq), seq_bits: C.uint32_t(conf.SeqBits),
		batch: number(conf.Batch), slot: number(conf.Slot), wrap: C.uint64_t(conf.Wrap),
		offset: number(conf.Offset), extra: number(conf.Extra), source: number(conf.Source), source_peer: flag(conf.SourcePeer),
		slots: C.uint32_t(conf.Slots), slot_bytes: C.uint32_t(conf.SlotBytes), packet_bytes: C.uint32_t(conf.PacketBytes),
		segment: C.uint32_t(conf.Segment), payload_offset: C.uint32_t(conf.PayloadOffset), at_payload: flag(conf.AtPayload),
		header: number(conf.Header), length: number(conf.Length), types: conf.Types.c(&pin),
		window: C.uint32_t(conf.Window), timeout_ns: C.int64_t(conf.TimeoutNS), fill: C.int32_t(conf.Fill),
		drop_incomplete: flag(conf.DropIncomplete), wait: flag(conf.Wait), policy: C.int32_t(conf.Policy), by_gpu: flag(conf.ByGPU),
		ring:       flag(conf.Ring),
		n_flow_ids: C.uint32_t(len(conf.FlowIDs)),
	}
	if len(conf.FlowIDs) > 0 {
		pin.Pin(first(conf.FlowIDs))
		c.flow_ids = (*C.uint32_t)(first(conf.FlowIDs))
	}
	var q Queue
	st, err := addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_reorder(s.c, n, &c, out, &q.c, d)
	})
	return st, q, err
}

// pinnedNumber returns a program for C, valid while pin lasts; without instructions it is absent.
func pinnedNumber(pin *runtime.Pinner, insns []Insn) C.dq_number {
	if len(insns) == 0 {
		return C.dq_number{}
	}
	pin.Pin(first(insns))
	return C.dq_number{insns: insnPtr(insns), n: C.uint32_t(len(insns))}
}

// Flags of an aggregate.
const (
	AggregateTimeout = uint32(C.DQ_AGGREGATE_TIMEOUT)
	AggregatePushed  = uint32(C.DQ_AGGREGATE_PUSHED)
	AggregateFirst   = uint32(C.DQ_AGGREGATE_FIRST)
	AggregateStopped = uint32(C.DQ_AGGREGATE_STOPPED)
)

// Aggregate is a reorder stage's description of its burst; it mirrors dq_aggregate. The slices are C memory, valid while a
// reference to the burst lasts.
type Aggregate struct {
	BatchID, Ordinal uint64
	Slots, SlotBytes int
	Cells, CellBytes int
	PresentCells     int
	Packets          int
	Dtype            Dtype // of the data
	Flags            uint32
	FirstNS, LastNS  int64
	PresentBits      []uint64 // bitmap: bit c % 64 of word c / 64: cell c is present
	Extra            []uint64 // one per slot; nil: no rule for it
	Items            []uint64 // of a heap: distinct items of its packets' lists
}

// Block returns the block file header of a reordered burst (BLOCKS.md), and the bytes of padding after the data; nil for any
// other burst.
func (b Burst) Block() (header []byte, padding int) {
	var n C.uint32_t
	bytes := C.dq_block_bytes(b.c, &n)
	if bytes == 0 {
		return nil, 0
	}
	header = make([]byte, n)
	C.dq_block_header(b.c, (*C.uint8_t)(unsafe.Pointer(&header[0])))
	a := C.dq_burst_aggregate(b.c)
	return header, int(bytes) - len(header) - int(a.slots)*int(a.slot_bytes)
}

// BlockFileHeaderBytes is the length of BlockFileHeader.
const BlockFileHeaderBytes = C.DQ_BLOCK_FILE_HEADER

// BlockFileHeader returns the header of a file of such blocks, with the user's text and the file's index. For reordered bursts.
func (b Burst) BlockFileHeader(writer, text string, index uint64) []byte {
	name, words := cString(writer), cString(text)
	defer name.free()
	defer words.free()
	header := make([]byte, C.DQ_BLOCK_FILE_HEADER)
	C.dq_block_file_header(b.c, name.c, words.c, C.uint64_t(index), (*C.uint8_t)(unsafe.Pointer(&header[0])))
	return header
}

// Aggregate returns a reorder stage's description; false for any other burst.
func (b Burst) Aggregate() (Aggregate, bool) {
	c := C.dq_burst_aggregate(b.c)
	if c == nil {
		return Aggregate{}, false
	}
	a := Aggregate{
		BatchID: uint64(c.batch_id), Ordinal: uint64(c.ordinal),
		Slots: int(c.slots), SlotBytes: int(c.slot_bytes), Cells: int(c.cells), CellBytes: int(c.cell_bytes),
		PresentCells: int(c.present_cells), Packets: int(c.packets), Dtype: Dtype(c.dtype), Flags: uint32(c.flags),
		FirstNS: int64(c.first_ns), LastNS: int64(c.last_ns),
		PresentBits: unsafe.Slice((*uint64)(unsafe.Pointer(c.present)), (c.cells+63)/64),
	}
	if c.extra != nil {
		a.Extra = unsafe.Slice((*uint64)(unsafe.Pointer(c.extra)), c.slots)
	}
	a.Items = unsafe.Slice((*uint64)(unsafe.Pointer(c.items)), c.n_items)
	return a, true
}
