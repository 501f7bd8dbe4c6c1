package baseline

/*
#include "baseline.h"
#include "convert.h"
#include "flows.h"
#include "reorder.h"
*/
import "C"

import "time"

// Figures are the results of a loop. Missing counts datagrams whose numbers never arrived; a receiver's Seconds run from the first
// datagram to the last; CPUSeconds are the process's.
type Figures struct {
	Packets     uint64  `json:"packets"`
	Bytes       uint64  `json:"bytes"`
	Missing     uint64  `json:"missing"`
	Seconds     float64 `json:"seconds"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	BufferBytes int     `json:"buffer_bytes,omitempty"`
	// OfferedPPS is the rate of the sender in the same process, datagrams a second.
	OfferedPPS float64 `json:"offered_pps,omitempty"`
}

func figures(f *C.dq_baseline_figures) Figures {
	return Figures{Packets: uint64(f.packets), Bytes: uint64(f.bytes), Missing: uint64(f.missing), Seconds: float64(f.seconds),
		CPUSeconds: float64(f.cpu_seconds), BufferBytes: int(f.buffer_bytes)}
}

// Memory configures the loop over packet memory: see dq_baseline_loop_run.
type Memory struct {
	Buffers, Stride, Batch, Bytes, Port int
	Copy                                bool
	For                                 time.Duration
}

// RunMemory takes, fills, matches and returns packet buffers for conf.For.
func RunMemory(conf Memory) (Figures, error) {
	c := C.dq_baseline_loop{buffers: C.uint32_t(conf.Buffers), stride: C.uint32_t(conf.Stride), batch: C.uint32_t(conf.Batch),
		len: C.uint32_t(conf.Bytes), port: C.uint16_t(conf.Port), copy: flag(conf.Copy), seconds: C.double(conf.For.Seconds())}
	var f C.dq_baseline_figures
	var d C.dq_diag
	err := result("baseline loop", C.dq_baseline_loop_run(&c, &f, &d), &d)
	return figures(&f), err
}

// RunFlows classifies frames of 1024 flows by a table of so many rules for length, and returns the ns of a packet.
func RunFlows(rules int, length time.Duration) (float64, error) {
	c := C.dq_baseline_flows{rules: C.uint32_t(rules), seconds: C.double(length.Seconds())}
	var ns C.double
	var d C.dq_diag
	err := result("flow table", C.dq_baseline_flows_run(&c, &ns, &d), &d)
	return float64(ns), err
}

// RunReorder puts payloads of so many bytes in order for length, into batches or heaps, or copies them to the same places. It returns
// the bytes of a CPU second.
func RunReorder(payload int, copies, heaps bool, length time.Duration) (float64, error) {
	f, err := runReorder(&C.dq_baseline_reorder{payload: C.uint32_t(payload), copy: flag(copies), heaps: flag(heaps), seconds: C.double(length.Seconds())})
	return float64(f.bytes_per_s), err
}

func runReorder(conf *C.dq_baseline_reorder) (f C.dq_baseline_reorder_figures, err error) {
	var d C.dq_diag
	err = result("reorder", C.dq_baseline_reorder_run(conf, &f, &d), &d)
	return f, err
}

// RunConvert converts elements of the named types for length; network: their highest byte comes first. Without types it copies bytes.
// It returns the bytes, in and out, of a CPU second.
func RunConvert(from, to string, network bool, length time.Duration) (float64, error) {
	c := C.dq_baseline_convert{types: dataTypes(from, to, network), seconds: C.double(length.Seconds())}
	var rate C.double
	var d C.dq_diag
	err := result("convert", C.dq_baseline_convert_run(&c, &rate, &d), &d)
	return float64(rate), err
}
