package native

/*
#include "dq.h"
*/
import "C"

import "time"

// PTPClock is a PTP hardware clock, /dev/ptpINDEX: see dq_ptp.
type PTPClock struct {
	Index  int
	Name   string        // as reported by the driver
	Offset time.Duration // device time minus system time
	Within time.Duration // bound of the error of Offset
	Err    error         // why it could not be read
}

// PTPClocks reads the PTP clocks of this host.
func PTPClocks() []PTPClock {
	var index [64]C.int
	n := min(int(C.dq_ptp_list(&index[0], C.uint32_t(len(index)))), len(index))
	clocks := make([]PTPClock, n)
	for k := range clocks {
		clocks[k] = ReadPTP(int(index[k]))
	}
	return clocks
}

// ReadPTP reads one PTP clock.
func ReadPTP(index int) PTPClock {
	var p C.dq_ptp
	err := status(C.dq_ptp_read(C.int(index), &p))
	return PTPClock{int(p.index), text(p.name[:]), time.Duration(p.offset_ns), time.Duration(p.uncertainty_ns), err}
}
