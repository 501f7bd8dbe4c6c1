package bare

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

// GPU says what GPU 0 is; an error says what is missing.
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

// Compiler says what is missing for kernels of a script's own, which NVRTC compiles.
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

// Workload says what is missing for a kernel of Workloads.
func Workload(name string) error {
	all := native.MathKernels()
	return all[slices.Index(Workloads(), name)].Open("workload " + name)
}

// timedOnGPU opens memory on the GPU, times its copy, and each job for its part of the time.
func timedOnGPU(host bool, length time.Duration, jobs map[string]native.BareGPUJob) (Rates, error) {
	g, err := native.OpenBareGPU(gpuBytes)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	rates, each := Rates{}, length/time.Duration(len(jobs)+1)
	if rates["copy"], err = g.Copy(host, each); err != nil {
		return nil, err
	}
	for name, job := range jobs {
		job.Offset, job.Host, job.For = payloadOffset, host, each
		f, err := g.Run(job)
		if err != nil {
			return nil, err
		}
		rates[name] = f.BytesPerSecond
		rates["bytes"] += float64(f.Bytes)
		rates["packets"] += float64(f.Packets)
	}
	return rates, nil
}

// RunGPUReorder times lists of packets that lie on the GPU: "8192x1024" are 1024 packets a list.
func RunGPUReorder(length time.Duration) (Rates, error) {
	jobs := map[string]native.BareGPUJob{}
	for _, n := range []int{1024, 16384} {
		for _, payload := range []int{1024, 4096, 8192} {
			jobs[fmt.Sprintf("%dx%d", payload, n)] = native.BareGPUJob{Payload: payload, Packets: n}
		}
	}
	return timedOnGPU(false, length, jobs)
}

// RunGPUConvert times conversions of packets of 4096 bytes that lie on the GPU, by input: int16 has its highest byte first.
func RunGPUConvert(length time.Duration) (Rates, error) {
	jobs := map[string]native.BareGPUJob{}
	for _, c := range []struct {
		from, to string
		network  bool
	}{{"int16", "fp32", true}, {"int8", "fp32", false}, {"int4", "fp16", false}} {
		types := native.DataTypes{Input: native.DtypeNamed(c.from), Output: native.DtypeNamed(c.to), Network: c.network}
		jobs[c.from+"_"+c.to] = native.BareGPUJob{Payload: 4096, Packets: 16384, Types: types}
	}
	return timedOnGPU(false, length, jobs)
}

// RunGPUGather times packets that lie in pinned host memory and go to the GPU: "8192" by the kernel alone, "stage_8192"
// by a reorder stage, whose own work for a packet takes plan_ns_8192.
func RunGPUGather(length time.Duration) (Rates, error) {
	jobs := map[string]native.BareGPUJob{}
	payloads := []int{1024, 4096, 8192}
	for _, payload := range payloads {
		jobs[fmt.Sprint(payload)] = native.BareGPUJob{Payload: payload, Packets: 16384}
	}
	rates, err := timedOnGPU(true, length/2, jobs)
	if err != nil {
		return nil, err
	}
	for _, payload := range payloads {
		f, err := native.RunBareReorder(native.BareReorder{Payload: payload, GPU: true, For: length / 2 / time.Duration(len(payloads))})
		if err != nil {
			return nil, err
		}
		rates[fmt.Sprintf("stage_%d", payload)] = f.BytesPerSecond
		rates[fmt.Sprintf("plan_ns_%d", payload)] = f.PlanNS
		rates["bytes"] += float64(f.Bytes)
		rates["packets"] += float64(f.Packets)
	}
	return rates, nil
}
