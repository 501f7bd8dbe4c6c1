package native

/*
#include "dq.h"
#include <stdlib.h>
*/
import "C"

import "unsafe"

// Insn is an instruction of a packet program. It mirrors dq_insn; the numbers of Op and
// what A, B, C and Imm mean stand in dq_prog.h and in runtime/expr.
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

// Link types for CompilePcap, as libpcap numbers them.
const (
	LinkEthernet = 1   // frames
	LinkRaw      = 101 // packets that start with the IP header
)

func insnPtr(s []Insn) *C.dq_insn { return (*C.dq_insn)(unsafe.Pointer(first(s))) }

func cbpfPtr(s []CBPFInsn) *C.dq_cbpf_insn { return (*C.dq_cbpf_insn)(unsafe.Pointer(first(s))) }

// Select writes the indices of the packets that the program accepts into idx, which has
// room for all packets, and returns how many they are.
func (b Burst) Select(prog []Insn, idx []uint32) (int, error) {
	n := C.dq_burst_select(b.c, insnPtr(prog), C.uint32_t(len(prog)), (*C.uint32_t)(first(idx)))
	if n < 0 {
		return 0, Err(n)
	}
	return int(n), nil
}

// CompilePcap compiles libpcap's text for a link type. ErrNotSupported when libpcap is not
// there.
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
