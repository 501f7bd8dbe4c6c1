package native

/*
#include "yardstick/bare_convert.h"
#include "yardstick/bare_reorder.h"
*/
import "C"

import "time"

// RunBareReorder puts packets with so many bytes of payload in order for a while, into batches or heaps, or copies their
// payloads to the same places, and gives the bytes of a CPU second.
func RunBareReorder(payload int, copies, heaps bool, length time.Duration) (float64, error) {
	c := C.dq_bare_reorder{payload: C.uint32_t(payload), copy: flag(copies), heaps: flag(heaps), seconds: C.double(length.Seconds())}
	var rate C.double
	var d C.dq_diag
	err := result("reorder", C.dq_bare_reorder_run(&c, &rate, &d), &d)
	return float64(rate), err
}

// RunBareConvert converts elements from memory to memory for a while and gives the bytes, in and out, of a CPU second.
// DtypeBytes to DtypeBytes is a copy.
func RunBareConvert(types DataTypes, length time.Duration) (float64, error) {
	c := C.dq_bare_convert{types: types.c(), seconds: C.double(length.Seconds())}
	var rate C.double
	var d C.dq_diag
	err := result("convert", C.dq_bare_convert_run(&c, &rate, &d), &d)
	return float64(rate), err
}
