package native

/*
#include "yardstick/bare_gpu.h"
*/
import "C"

import "time"

// BareGPU has packets in a GPU's memory and in host memory, for its kernels and copies to be timed. One goroutine.
type BareGPU struct{ p *C.dq_bare_gpu }

// BareGPUJob is what a shipped kernel does: lists of Packets packets, whose payloads begin at Offset, are put together, in
// another type where Types name one. Host: they lie in host memory.
type BareGPUJob struct {
	Payload, Offset, Packets int
	Types                    DataTypes
	Host                     bool
	For                      time.Duration
}

// BareGPUFigures is what was timed: see dq_bare_gpu_figures in bare_gpu.h.
type BareGPUFigures struct {
	BytesPerSecond           float64
	Bytes, Packets, Launches uint64
}

// OpenBareGPU takes up to so many bytes of GPU 0 for packets, and as much for what becomes of them. Close it.
func OpenBareGPU(bytes uint64) (*BareGPU, error) {
	g := &BareGPU{}
	var d C.dq_diag
	return g, result("", C.dq_bare_gpu_open(C.uint64_t(bytes), &g.p, &d), &d)
}

// Run times a kernel, and compares what it did with the host's way.
func (g *BareGPU) Run(job BareGPUJob) (BareGPUFigures, error) {
	c := C.dq_bare_gpu_job{payload: C.uint32_t(job.Payload), payload_offset: C.uint32_t(job.Offset), packets: C.uint32_t(job.Packets),
		types: job.Types.c(), host: flag(job.Host), seconds: C.double(job.For.Seconds())}
	var f C.dq_bare_gpu_figures
	var d C.dq_diag
	err := result("", C.dq_bare_gpu_run(g.p, &c, &f, &d), &d)
	return BareGPUFigures{float64(f.bytes_per_s), uint64(f.bytes), uint64(f.packets), uint64(f.launches)}, err
}

// Copy times the driver's copy to the GPU's memory, from host memory or there: bytes a second.
func (g *BareGPU) Copy(host bool, length time.Duration) (float64, error) {
	var rate C.double
	var d C.dq_diag
	err := result("", C.dq_bare_gpu_copy(g.p, flag(host), C.double(length.Seconds()), &rate, &d), &d)
	return float64(rate), err
}

// Close gives the memory back.
func (g *BareGPU) Close() { C.dq_bare_gpu_close(g.p); g.p = nil }
