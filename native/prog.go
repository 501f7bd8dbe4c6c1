package native

/*
#include "dq.h"
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"slices"
	"unsafe"
)

// Insn is an instruction of a packet program. It mirrors dq_insn; dq_ops.h and runtime/expr define Op, A, B, C and Imm.
type Insn struct {
	Op  uint8
	A   uint8
	B   uint16
	C   uint32
	Imm uint64
}

// CBPFInsn is a classic BPF instruction. It mirrors dq_cbpf_insn.
type CBPFInsn struct {
	Code   uint16
	JT, JF uint8
	K      uint32
}

var _ = [1]struct{}{}[unsafe.Sizeof(Insn{})-C.sizeof_dq_insn]
var _ = [1]struct{}{}[unsafe.Offsetof(Insn{}.Imm)-unsafe.Offsetof(C.dq_insn{}.imm)]
var _ = [1]struct{}{}[unsafe.Sizeof(CBPFInsn{})-C.sizeof_dq_cbpf_insn]
var _ = [1]struct{}{}[unsafe.Offsetof(CBPFInsn{}.K)-unsafe.Offsetof(C.dq_cbpf_insn{}.k)]

// Link types for CompilePcap, numbered as in libpcap.
const (
	LinkEthernet = 1   // frames
	LinkRaw      = 101 // packets that start with the IP header
)

func insnPtr(s []Insn) *C.dq_insn { return (*C.dq_insn)(unsafe.Pointer(first(s))) }

func cbpfPtr(s []CBPFInsn) *C.dq_cbpf_insn { return (*C.dq_cbpf_insn)(unsafe.Pointer(first(s))) }

// Prog is a checked program, ready to run. Safe for concurrent use; freed by the garbage collector.
type Prog struct {
	c     *C.dq_prog
	reads bool
}

// ReadsPacket reports whether the program reads packet data rather than metadata only.
func (p *Prog) ReadsPacket() bool { return p.reads }

// readsPacket reports whether the instruction loads packet data, by the base, meta and need of its field.
func (x Insn) readsPacket() bool {
	f := Field{Base: x.A, Meta: uint8(x.Imm), Need: uint8(x.Imm >> 16)}
	return x.Op == C.DQ_OP_LOAD && f.ReadsPacket() || x.Op == C.DQ_OP_LOAD_AT || x.Op == C.DQ_OP_FIND
}

// NewProg checks and prepares a program.
func NewProg(insns []Insn) (*Prog, error) {
	p := new(Prog)
	var d C.dq_diag
	if err := result("program", C.dq_prog_new(insnPtr(insns), C.uint32_t(len(insns)), &p.c, &d), &d); err != nil {
		return nil, err
	}
	p.reads = slices.ContainsFunc(insns, Insn.readsPacket)
	runtime.AddCleanup(p, func(c *C.dq_prog) { C.dq_prog_free(c) }, p.c)
	return p, nil
}

// Select writes the indices of the packets for which the program is true to idx, which has room for all packets, and returns
// their number.
func (b Burst) Select(p *Prog, idx []uint32) int {
	n := C.dq_burst_select(b.c, p.c, (*C.uint32_t)(first(idx)))
	runtime.KeepAlive(p)
	return int(n)
}

// Count returns the number of packets for which the program is true.
func (b Burst) Count(p *Prog) int {
	n := C.dq_burst_count(b.c, p.c)
	runtime.KeepAlive(p)
	return int(n)
}

// Eval writes the program's number for every packet to out; has[i] is 0 if packet i has none (has may be nil). It returns how
// many packets have one.
func (b Burst) Eval(p *Prog, out []uint64, has []uint8) int {
	n := C.dq_burst_eval(b.c, p.c, (*C.uint64_t)(first(out)), (*C.uint8_t)(first(has)))
	runtime.KeepAlive(p)
	return int(n)
}

// CompilePcap compiles a libpcap filter for a link type. ErrNotSupported if libpcap is not installed.
func CompilePcap(expr string, link int) ([]CBPFInsn, error) {
	e := cString(expr)
	defer e.free()
	var out *C.dq_cbpf_insn
	var n C.uint32_t
	var d C.dq_diag
	if err := result("pcap filter", C.dq_pcap_compile(e.c, C.int(link), &out, &n, &d), &d); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(out))
	return append([]CBPFInsn(nil), unsafe.Slice((*CBPFInsn)(unsafe.Pointer(out)), int(n))...), nil
}
