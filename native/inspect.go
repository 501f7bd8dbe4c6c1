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

// Headers are the offsets of a packet's headers from its start; -1: absent.
type Headers struct {
	L3, L4, Payload, PayloadLen, End int
	EtherType                        uint16
	IPProto                          uint8
	Has                              uint8 // enum dq_has of dq_rules.h
}

// ParsePacket finds the headers of an Ethernet frame, as the engine does for matching and filtering. ok is false if there is no
// complete Ethernet header.
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

// FillChecksums writes the checksums of a frame in place.
func FillChecksums(frame []byte) {
	var k C.dqi_pkt
	if p := (*C.uint8_t)(first(frame)); C.dqi_parse(p, C.uint32_t(len(frame)), &k) {
		C.dqi_csum_fill(p, &k)
	}
}

// ChecksumsOK reports whether the checksums of a frame are correct.
func ChecksumsOK(frame []byte) bool {
	var k C.dqi_pkt
	p := (*C.uint8_t)(first(frame))
	return bool(C.dqi_parse(p, C.uint32_t(len(frame)), &k)) && bool(C.dqi_csum_ok(p, &k))
}

// RunActions applies actions to the frame that begins room bytes into buf, and returns its new position; longest is its maximum
// length. ok is false for a dropped frame; err reports invalid actions.
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

// CheckCBPF rejects a program that is not safe to run.
func CheckCBPF(prog []CBPFInsn) error {
	var d C.dq_diag
	return result("cbpf", C.dqi_cbpf_check(cbpfPtr(prog), C.uint32_t(len(prog)), &d), &d)
}

// RunCBPF runs a checked program over a packet of wireLen bytes and returns the bytes to keep, 0 for a packet that does not
// match.
func RunCBPF(prog []CBPFInsn, packet []byte, wireLen int) int {
	return int(C.dqi_cbpf_run(cbpfPtr(prog), C.uint32_t(len(prog)), (*C.uint8_t)(unsafe.Pointer(first(packet))),
		C.uint32_t(wireLen), C.uint32_t(len(packet))))
}
