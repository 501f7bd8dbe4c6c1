package native

/*
#include "yardstick/bare_flows.h"
*/
import "C"

import "time"

// RunBareFlows classifies frames by a table of so many rules for a while and gives the ns of a packet.
func RunBareFlows(rules int, length time.Duration) (float64, error) {
	c := C.dq_bare_flows{rules: C.uint32_t(rules), seconds: C.double(length.Seconds())}
	var ns C.double
	var d C.dq_diag
	err := result("flow table", C.dq_bare_flows_run(&c, &ns, &d), &d)
	return float64(ns), err
}
