// Package inspect calls the engine's functions for single packets and programs, which fuzz targets need. Only tests import it.
package inspect

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/..
#include "packet/packet.h"
#include "packet/transform.h"
#include "program/cbpf.h"
*/
import "C"

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/daqiri/daqiri-run/native"
)

// FillChecksums writes the checksums of a frame in place.
func FillChecksums(frame []byte) {
	var k C.dqi_pkt
	if p := (*C.uint8_t)(unsafe.SliceData(frame)); C.dqi_parse(p, C.uint32_t(len(frame)), &k) {
		C.dqi_csum_fill(p, &k)
	}
}

// ChecksumsOK reports whether the checksums of a frame are correct.
func ChecksumsOK(frame []byte) bool {
	var k C.dqi_pkt
	p := (*C.uint8_t)(unsafe.SliceData(frame))
	return bool(C.dqi_parse(p, C.uint32_t(len(frame)), &k)) && bool(C.dqi_csum_ok(p, &k))
}

// RunActions applies actions to the frame that begins room bytes into buf, and returns its new position; longest is its maximum
// length. ok is false for a dropped frame; err reports invalid actions.
func RunActions(actions []native.Action, buf []byte, room, longest int) (start, length int, ok bool, err error) {
	var a C.dqi_acts
	var d C.dq_diag
	rc := C.dqi_acts_make((*C.dq_action)(unsafe.Pointer(unsafe.SliceData(actions))), C.uint32_t(len(actions)), &a, &d)
	if err := problem(rc, &d); err != nil {
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
func CheckCBPF(prog []native.CBPFInsn) error {
	var d C.dq_diag
	return problem(C.dqi_cbpf_check(insns(prog), C.uint32_t(len(prog)), &d), &d)
}

// RunCBPF runs a checked program over a packet of wireLen bytes and returns the bytes to keep, 0 for a packet that does not
// match.
func RunCBPF(prog []native.CBPFInsn, packet []byte, wireLen int) int {
	return int(C.dqi_cbpf_run(insns(prog), C.uint32_t(len(prog)), (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(packet))),
		C.uint32_t(wireLen), C.uint32_t(len(packet))))
}

func insns(prog []native.CBPFInsn) *C.dq_cbpf_insn {
	return (*C.dq_cbpf_insn)(unsafe.Pointer(unsafe.SliceData(prog)))
}

// problem returns the diagnosis of a call that failed; nil: it did not.
func problem(rc C.int, d *C.dq_diag) error {
	if rc == 0 {
		return nil
	}
	return errors.New(C.GoString(&d.text[0]))
}
