package native

/*
#include "dq.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Policy is the reaction of a consumer that falls behind.
type Policy int32

// Policies.
const (
	PolicyDrop Policy = C.DQ_POLICY_DROP // drops packets of its own copy
	PolicyWait Policy = C.DQ_POLICY_WAIT // blocks the queue
)

// String returns the policy's name in scripts.
func (p Policy) String() string {
	if p == PolicyWait {
		return "wait"
	}
	return "drop"
}

// Stage is a processing step of a pipe. It ends with its session.
type Stage struct{ c *C.dq_stage }

// Pipe passes a queue's bursts through stages.
type Pipe struct{ c *C.dq_pipe }

// FilterConf is a filter's condition; exactly one of the three is set.
type FilterConf struct {
	Match *Match
	Insns []Insn
	CBPF  []CBPFInsn
}

// MaxDirs is the maximum number of folders of a writer.
const MaxDirs = C.DQ_MAX_DIRS

// WriterConf describes a writer of files.
type WriterConf struct {
	Format           Format
	Dirs             []string // used in turn, one per burst; at most MaxDirs
	Prefix           string
	PacketDataOffset int // raw: bytes skipped at the start of each packet
	Snaplen          int // pcap; 0: whole packets
	Policy           Policy
	Micro            bool   // pcap: times in us, not ns
	Append           bool   // pcap: append to an existing file
	Overwrite        bool   // replace existing files
	BySlot           bool   // blocks: one bitmap bit per slot, not per packet
	Text             string // pcapng: the section's comment; blocks, zarr: user text in each header; sigmf: JSON members of the global object
	Capture          string // sigmf: JSON members of each capture
	SampleBytes      int    // sigmf, zarr: bytes of one sample; zarr: 0: unknown
	SampleDtype      Dtype  // sigmf: of its parts; DtypeBytes: a type that no stage makes
	Element          string // zarr: data type of the samples' parts; empty: follows from the data
	Complex          bool   // zarr: samples have two parts
	BigEndian        bool   // zarr: byte order of the parts
	Attributes       string // zarr: JSON members of the array's attributes
	Rotate           Rotation
	Quota            uint64 // bytes of all files; 0: unlimited
	DeleteOldest     bool   // at the quota, instead of dropping packets
	Enough           bool   // reaching the quota is success
}

// Rotation are the limits at which a writer starts the next file, whichever is reached first; 0: no limit.
type Rotation struct {
	Bytes, Packets uint64
	After          int64 // ns
}

// TapConf configures a tap.
type TapConf struct {
	Waiter *Waiter
	Tag    uint64
	Depth  int // bursts that may wait
	Policy Policy
	Sample int // one of this many bursts; 1: all
}

// AddFilter adds a stage that passes the packets for which the condition is true.
func (s *Session) AddFilter(name string, conf FilterConf) (Stage, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var c C.dq_filter_conf
	switch {
	case conf.Match != nil:
		pin.Pin(conf.Match)
		c.kind, c.match = C.DQ_FILTER_MATCH, (*C.dq_match)(unsafe.Pointer(conf.Match))
	case len(conf.CBPF) > 0:
		pin.Pin(first(conf.CBPF))
		c.kind, c.cbpf, c.n_cbpf = C.DQ_FILTER_CBPF, cbpfPtr(conf.CBPF), C.uint32_t(len(conf.CBPF))
	default:
		if len(conf.Insns) > 0 {
			pin.Pin(first(conf.Insns))
		}
		c.kind, c.insns, c.n_insns = C.DQ_FILTER_PROG, insnPtr(conf.Insns), C.uint32_t(len(conf.Insns))
	}
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_filter(s.c, n, &c, out, d)
	})
}

// AddCount adds a stage that only counts.
func (s *Session) AddCount(name string) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_count(s.c, n, out, d)
	})
}

// AddSample adds a stage that passes one of every `every` bursts.
func (s *Session) AddSample(name string, every int) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_sample(s.c, n, C.uint32_t(every), out, d)
	})
}

// GapsConf configures a gaps stage; it mirrors dq_gaps_conf, which documents the rules.
type GapsConf struct {
	Counter []Insn
	Bits    int    // width of the counter
	Window  int    // numbers
	Jump    uint64 // numbers
	By      []Insn // stream; empty: one stream
}

// LeastGapBits is the minimum width of the counter of a gaps stage, MaxGapWindow the maximum of its window.
const (
	LeastGapBits = C.DQ_LEAST_GAP_BITS
	MaxGapWindow = C.DQ_MAX_GAP_WINDOW
)

// AddGaps adds a stage that counts missing, reordered and duplicate numbers of packets.
func (s *Session) AddGaps(name string, conf GapsConf) (Stage, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	c := C.dq_gaps_conf{counter: pinnedNumber(&pin, conf.Counter), bits: C.uint32_t(conf.Bits), window: C.uint32_t(conf.Window),
		jump: C.uint64_t(conf.Jump), by: pinnedNumber(&pin, conf.By)}
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_gaps(s.c, n, &c, out, d)
	})
}

// AddForward adds a stage that sends bursts to a transmit queue.
func (s *Session) AddForward(name string, tx Queue, policy Policy) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_forward(s.c, n, tx.c, C.int(policy), out, d)
	})
}

// AddTap adds a stage that passes bursts to a task.
func (s *Session) AddTap(name string, conf TapConf) (Stage, error) {
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_tap(s.c, n, conf.Waiter.c, C.uint64_t(conf.Tag), C.uint32_t(conf.Depth),
			C.int(conf.Policy), C.uint32_t(conf.Sample), out, d)
	})
}

// AddWriter adds a stage that writes files.
func (s *Session) AddWriter(name string, conf WriterConf) (Stage, error) {
	c := C.dq_writer_conf{
		kind:               C.int32_t(conf.Format.kind),
		n_dirs:             C.uint32_t(len(conf.Dirs)),
		packet_data_offset: C.uint32_t(conf.PacketDataOffset),
		snaplen:            C.uint32_t(conf.Snaplen),
		policy:             C.int32_t(conf.Policy),
		micro:              C.bool(conf.Micro),
		append:             C.bool(conf.Append),
		overwrite:          C.bool(conf.Overwrite),
		by_slot:            C.bool(conf.BySlot),
		rotate_bytes:       C.uint64_t(conf.Rotate.Bytes),
		rotate_packets:     C.uint64_t(conf.Rotate.Packets),
		rotate_ns:          C.int64_t(conf.Rotate.After),
		quota:              C.uint64_t(conf.Quota),
		delete_oldest:      C.bool(conf.DeleteOldest),
		enough:             C.bool(conf.Enough),
		sample_bytes:       C.uint32_t(conf.SampleBytes),
		sample_dtype:       C.int32_t(conf.SampleDtype),
		two_parts:          C.bool(conf.Complex),
		big_endian:         C.bool(conf.BigEndian),
	}
	for i, dir := range conf.Dirs[:min(len(conf.Dirs), MaxDirs)] {
		if err := put(c.dirs[i][:], "folder", dir); err != nil {
			return Stage{}, err
		}
	}
	if err := put(c.prefix[:], "prefix", conf.Prefix); err != nil {
		return Stage{}, err
	}
	if err := put(c.text[:], "text", conf.Text); err != nil {
		return Stage{}, err
	}
	if err := put(c.capture[:], "capture", conf.Capture); err != nil {
		return Stage{}, err
	}
	if err := put(c.element[:], "element", conf.Element); err != nil {
		return Stage{}, err
	}
	if err := put(c.attributes[:], "attributes", conf.Attributes); err != nil {
		return Stage{}, err
	}
	return addStage(name, func(n *C.char, out **C.dq_stage, d *C.dq_diag) C.int {
		return C.dq_stage_writer(s.c, n, &c, out, d)
	})
}

func addStage(name string, add func(*C.char, **C.dq_stage, *C.dq_diag) C.int) (Stage, error) {
	n := cString(name)
	defer n.free()
	var st Stage
	var d C.dq_diag
	return st, result("stage "+name, add(n.c, &st.c, &d), &d)
}

// AddPipe passes every burst of q through the stages in order; with a connection, only that connection's bursts. Direct queue:
// owner's thread.
func (q Queue) AddPipe(stages []Stage, conn uint32) (Pipe, error) {
	c := make([]*C.dq_stage, len(stages))
	for i, st := range stages {
		c[i] = st.c
	}
	var p Pipe
	var d C.dq_diag
	return p, result("pipe", C.dq_pipe_add(q.c, first(c), C.uint32_t(len(c)), C.uint32_t(conn), &p.c, &d), &d)
}

// Claim passes every burst of q once through these stages before its pipes, which get the rest. Once, before the start.
func (q Queue) Claim(stages []Stage) error {
	c := make([]*C.dq_stage, len(stages))
	for i, st := range stages {
		c[i] = st.c
	}
	var d C.dq_diag
	return result("claim", C.dq_queue_claim(q.c, first(c), C.uint32_t(len(c)), &d), &d)
}

// Remove ends the pipe. Direct queue: owner's thread.
func (p Pipe) Remove() { C.dq_pipe_remove(p.c) }

// Failure returns why the stage failed, or "". Any thread.
func (st Stage) Failure() string {
	return read(func(buf *C.char, size C.size_t) { C.dq_stage_failure(st.c, buf, size) })
}

// Abandoned reports whether the session's finish has abandoned the stage, which made no progress.
func (st Stage) Abandoned() bool { return bool(C.dq_stage_abandoned(st.c)) }
