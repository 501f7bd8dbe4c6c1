// Package baseline measures what plain C reaches with the system calls of the engines, or on the same memory, and what the engine's
// parts reach by themselves: the peers of the cases of daqiri-bench. Each call blocks its thread until it is done.
package baseline

/*
#cgo CFLAGS: -std=c11 -O3 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/../../../../native
#include "core/dq_core.h"
#include "reorder/dq_reorder.h"

#include <stdlib.h>
*/
import "C"

import (
	"unsafe"

	"github.com/daqiri/daqiri-run/native"
	_ "github.com/daqiri/daqiri-run/native/core"
	_ "github.com/daqiri/daqiri-run/native/cuda"
	_ "github.com/daqiri/daqiri-run/native/kernels"
	_ "github.com/daqiri/daqiri-run/native/neighbour"
	_ "github.com/daqiri/daqiri-run/native/packet"
	_ "github.com/daqiri/daqiri-run/native/pipeline"
	_ "github.com/daqiri/daqiri-run/native/pipeline/stages"
	_ "github.com/daqiri/daqiri-run/native/program"
	_ "github.com/daqiri/daqiri-run/native/reorder"
)

// result returns the error that a call reports by its code and its text; nil for DQ_OK.
func result(op string, rc C.int, d *C.dq_diag) error {
	if rc == C.DQ_OK {
		return nil
	}
	return &native.Error{Op: op, Object: C.GoString(&d.text[0]), Code: native.Err(rc)}
}

// put copies text into a C array with its terminating zero, and reports whether there is room.
func put(dst []C.char, text string) bool {
	if len(text) >= len(dst) {
		return false
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), len(dst)), text+"\x00")
	return true
}

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}

// dataTypes are elements by the names of their types, or of a type of samples; no name: bytes.
func dataTypes(from, to string, network bool) C.dq_data_types {
	t := C.dq_data_types{input: C.int32_t(native.DtypeNamed(from)), output: C.int32_t(native.DtypeNamed(to)), network: flag(network)}
	if t.input == C.DQ_DTYPE_BYTES && from != "" {
		name := C.CString(from)
		defer C.free(unsafe.Pointer(name))
		C.dq_sample_parse(name, &t.sample, nil)
	}
	return t
}
