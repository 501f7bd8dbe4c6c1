package baseline

/*
#include "pace.h"
*/
import "C"

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"
)

// Pace configures a paced sender: N packets at PPS a second, by the engine's pacer on the loop engine or by a plain loop that waits
// for each time.
type Pace struct {
	PPS    float64
	N      int
	Engine bool
}

// Gaps describes how the gaps between arrivals kept to the pace. RateError is relative; the errors are |gap - wanted| in ns, half of
// them at most P50.
type Gaps struct {
	N          int     `json:"n"`
	RateError  float64 `json:"rate_error"`
	P50        float64 `json:"p50"`
	P99        float64 `json:"p99"`
	P999       float64 `json:"p999"`
	Max        float64 `json:"max"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"` // of the process, whose receiver never sleeps
}

// RunPace sends conf.N packets and compares their arrivals with the pace. It blocks for the length of the schedule.
func RunPace(conf Pace) (Gaps, error) {
	before := cpuTime()
	c := C.dq_baseline_pace{pps: C.double(conf.PPS), n: C.uint32_t(conf.N), engine: flag(conf.Engine)}
	at := make([]int64, conf.N)
	var got C.uint32_t
	var d C.dq_diag
	if err := result("pacing", C.dq_baseline_pace_run(&c, (*C.int64_t)(unsafe.SliceData(at)), &got, &d), &d); err != nil {
		return Gaps{}, err
	}
	if int(got) < conf.N || conf.N < 2 {
		return Gaps{}, fmt.Errorf("pacing: %d of %d packets arrived", got, conf.N)
	}
	g := gapsOf(at[len(at)/10:], 1e9/conf.PPS) // the first tenth warms up: threads begin, memory is touched
	g.N = len(at)
	g.CPUSeconds = (cpuTime() - before).Seconds()
	return g, nil
}

// gapsOf compares arrival times, in ns, with a wanted gap.
func gapsOf(at []int64, wanted float64) Gaps {
	n := len(at) - 1
	off := make([]float64, n)
	for i := range off {
		off[i] = math.Abs(float64(at[i+1]-at[i]) - wanted)
	}
	slices.Sort(off)
	share := func(p float64) float64 { return off[min(n-1, int(p*float64(n)))] }
	took := max(1, float64(at[n]-at[0])) // all at once, after a long pause of the receiver
	return Gaps{N: len(at), RateError: math.Abs(wanted*float64(n)/took - 1), P50: share(0.5), P99: share(0.99), P999: share(0.999),
		Max: off[n-1], Seconds: took / float64(time.Second)}
}
