package baseline

/*
#include "gpu.h"
#include "reorder.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/daqiri/daqiri-run/native"
)

// What lies on a GPU while its kernels are timed: caches hold far less. Payloads begin behind Ethernet, IPv4 and UDP.
const (
	gpuBytes      = 1 << 30
	payloadOffset = 42
)

// Rates are bytes a second by name. "copy" is the GPU's own copy in the same run; what was moved is under "bytes" and
// "packets".
type Rates map[string]float64

// GPU returns the name of GPU 0, or an error that names what is missing.
func GPU() (string, error) {
	_, gpus, err := native.GPUs()
	if err != nil {
		return "", err
	}
	if len(gpus) == 0 {
		return "", errors.New("the driver knows of no GPU")
	}
	return gpus[0].Name, nil
}

// Compiler returns an error if NVRTC, which compiles a script's own kernels, is missing.
func Compiler() error {
	_, _, err := native.NVRTCVersion("kernels")
	return err
}

// Workloads are the kernels that NVIDIA's libraries bring.
func Workloads() (names []string) {
	for _, m := range native.MathKernels() {
		names = append(names, m.Name)
	}
	return names
}

// Workload returns an error if a library that a kernel of Workloads needs is missing.
func Workload(name string) error {
	all := native.MathKernels()
	return all[slices.Index(Workloads(), name)].Open("workload " + name)
}

// gpuJob is a task of a shipped kernel: see dq_baseline_gpu_job in gpu.h.
type gpuJob struct {
	payload, packets int
	types            C.dq_data_types // zero: bytes are moved
}

// timedOnGPU opens memory on the GPU, times its copy, and each job for its part of the time. host: the packets lie in host memory.
func timedOnGPU(host bool, length time.Duration, jobs map[string]gpuJob) (Rates, error) {
	var g *C.dq_baseline_gpu
	var d C.dq_diag
	if err := result("", C.dq_baseline_gpu_open(gpuBytes, &g, &d), &d); err != nil {
		return nil, err
	}
	defer C.dq_baseline_gpu_close(g)
	each := (length / time.Duration(len(jobs)+1)).Seconds()
	var rate C.double
	if err := result("", C.dq_baseline_gpu_copy(g, flag(host), C.double(each), &rate, &d), &d); err != nil {
		return nil, err
	}
	rates := Rates{"copy": float64(rate)}
	for name, job := range jobs {
		c := C.dq_baseline_gpu_job{payload: C.uint32_t(job.payload), payload_offset: payloadOffset, packets: C.uint32_t(job.packets),
			types: job.types, host: flag(host), seconds: C.double(each)}
		var f C.dq_baseline_gpu_figures
		if err := result("", C.dq_baseline_gpu_run(g, &c, &f, &d), &d); err != nil {
			return nil, err
		}
		rates[name] = float64(f.bytes_per_s)
		rates["bytes"] += float64(f.bytes)
		rates["packets"] += float64(f.packets)
	}
	return rates, nil
}

// RunGPUReorder times lists of packets that lie on the GPU: "8192x1024" are 1024 packets a list.
func RunGPUReorder(length time.Duration) (Rates, error) {
	jobs := map[string]gpuJob{}
	for _, n := range []int{1024, 16384} {
		for _, payload := range []int{1024, 4096, 8192} {
			jobs[fmt.Sprintf("%dx%d", payload, n)] = gpuJob{payload: payload, packets: n}
		}
	}
	return timedOnGPU(false, length, jobs)
}

// RunGPUConvert times conversions of packets that lie on the GPU, by input: int16 has its highest byte first. Payloads have 4096 bytes, those
// of packed 12-bit elements 4092, which are whole units.
func RunGPUConvert(length time.Duration) (Rates, error) {
	jobs := map[string]gpuJob{}
	for _, c := range []struct {
		from, to string
		network  bool
		payload  int
	}{{"int16", "fp32", true, 4096}, {"int8", "fp32", false, 4096}, {"int4", "fp16", false, 4096},
		{"i12", "fp32", false, 4092}, {"u12.lsb", "int16", false, 4092}, {"o4", "fp16", false, 4096}} {
		jobs[c.from+"_"+c.to] = gpuJob{payload: c.payload, packets: 16384, types: dataTypes(c.from, c.to, c.network)}
	}
	return timedOnGPU(false, length, jobs)
}

// RunGPUGather times packets that lie in pinned host memory and go to the GPU: "8192" by the kernel alone, "stage_8192" by a reorder
// stage, whose own work for a packet takes plan_ns_8192.
func RunGPUGather(length time.Duration) (Rates, error) {
	jobs := map[string]gpuJob{}
	payloads := []int{1024, 4096, 8192}
	for _, payload := range payloads {
		jobs[fmt.Sprint(payload)] = gpuJob{payload: payload, packets: 16384}
	}
	rates, err := timedOnGPU(true, length/2, jobs)
	if err != nil {
		return nil, err
	}
	for _, payload := range payloads {
		seconds := (length / 2 / time.Duration(len(payloads))).Seconds()
		f, err := runReorder(&C.dq_baseline_reorder{payload: C.uint32_t(payload), gpu: 1, seconds: C.double(seconds)})
		if err != nil {
			return nil, err
		}
		rates[fmt.Sprintf("stage_%d", payload)] = float64(f.bytes_per_s)
		rates[fmt.Sprintf("plan_ns_%d", payload)] = float64(f.plan_ns)
		rates["bytes"] += float64(f.bytes)
		rates["packets"] += float64(f.packets)
	}
	return rates, nil
}
