package native

/*
#include "program/cbpf.h"
#include "packet/packet.h"
#include "packet/transform.h"
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Headers says where the headers of a packet are: offsets from its start, -1 where there is
// none.
type Headers struct {
	L3, L4, Payload, PayloadLen, End int
	EtherType                        uint16
	IPProto                          uint8
	Has                              uint8 // enum dq_has of dq_rules.h
}

// ParsePacket finds the headers of an Ethernet frame, as the engine does for every packet
// that is matched or filtered. ok is false when there is no whole Ethernet header.
func ParsePacket(frame []byte) (h Headers, ok bool) {
	var k C.dqi_pkt
	ok = bool(C.dqi_parse((*C.uint8_t)(first(frame)), C.uint32_t(len(frame)), &k))
	return Headers{
		L3:         offset(k.l3),
		L4:         offset(k.l4),
		Payload:    offset(k.payload),
		PayloadLen: int(k.payload_len),
		End:        int(k.end),
		EtherType:  uint16(k.ethertype),
		IPProto:    uint8(k.ip_proto),
		Has:        uint8(k.has),
	}, ok
}

func offset(c C.uint32_t) int {
	if c == C.DQI_NONE {
		return -1
	}
	return int(c)
}

// FillChecksums writes the checksums of a frame in place, and ChecksumsOK compares them.
func FillChecksums(frame []byte) {
	var k C.dqi_pkt
	if p := (*C.uint8_t)(first(frame)); C.dqi_parse(p, C.uint32_t(len(frame)), &k) {
		C.dqi_csum_fill(p, &k)
	}
}

// ChecksumsOK reports whether the checksums that a frame carries are right.
func ChecksumsOK(frame []byte) bool {
	var k C.dqi_pkt
	p := (*C.uint8_t)(first(frame))
	return bool(C.dqi_parse(p, C.uint32_t(len(frame)), &k)) && bool(C.dqi_csum_ok(p, &k))
}

// RunActions carries actions out on the frame that begins room bytes into buf, and gives where it lies then; longest is
// how long it may get. ok is false for a frame that is dropped; the error is of actions that can't be.
func RunActions(actions []Action, buf []byte, room, longest int) (start, length int, ok bool, err error) {
	var a C.dqi_acts
	var d C.dq_diag
	rc := C.dqi_acts_make((*C.dq_action)(unsafe.Pointer(first(actions))), C.uint32_t(len(actions)), &a, &d)
	if err := result("actions", rc, &d); err != nil {
		return 0, 0, false, err
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	base := unsafe.Pointer(unsafe.SliceData(buf))
	pin.Pin(base)
	f := C.dqi_frame{p: (*C.uint8_t)(unsafe.Add(base, room)), len: C.uint32_t(len(buf) - room), room: C.uint32_t(room)}
	why := C.dqi_acts_apply(&a, &f, C.uint32_t(longest))
	return int(uintptr(unsafe.Pointer(f.p)) - uintptr(base)), int(f.len), why == C.DQI_DONE, nil
}

// CheckCBPF refuses a program that the interpreter must not run.
func CheckCBPF(prog []CBPFInsn) error {
	var d C.dq_diag
	return result("cbpf", C.dqi_cbpf_check(cbpfPtr(prog), C.uint32_t(len(prog)), &d), &d)
}

// RunCBPF runs a checked program over a packet that was wireLen bytes long: the bytes to
// keep, 0 for a packet that does not match.
func RunCBPF(prog []CBPFInsn, packet []byte, wireLen int) int {
	return int(C.dqi_cbpf_run(cbpfPtr(prog), C.uint32_t(len(prog)), (*C.uint8_t)(unsafe.Pointer(first(packet))),
		C.uint32_t(wireLen), C.uint32_t(len(packet))))
}
