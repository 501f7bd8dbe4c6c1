package native

/*
#include "yardstick/bare_convert.h"
#include "yardstick/bare_reorder.h"
*/
import "C"

import "time"

// BareReorder says what is put in order, and how: see dq_bare_reorder in bare_reorder.h.
type BareReorder struct {
	Payload          int
	Copy, Heaps, GPU bool
	For              time.Duration
}

// BareReorderFigures is how fast it was: see dq_bare_reorder_figures in bare_reorder.h.
type BareReorderFigures struct {
	BytesPerSecond float64
	Packets, Bytes uint64
	PlanNS         float64
}

// RunBareReorder puts packets in order for a while, into batches or heaps, or copies their payloads to the same places.
func RunBareReorder(conf BareReorder) (BareReorderFigures, error) {
	c := C.dq_bare_reorder{payload: C.uint32_t(conf.Payload), copy: flag(conf.Copy), heaps: flag(conf.Heaps), gpu: flag(conf.GPU),
		seconds: C.double(conf.For.Seconds())}
	var f C.dq_bare_reorder_figures
	var d C.dq_diag
	err := result("reorder", C.dq_bare_reorder_run(&c, &f, &d), &d)
	return BareReorderFigures{float64(f.bytes_per_s), uint64(f.packets), uint64(f.bytes), float64(f.plan_ns)}, err
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
