package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// HostPlan is a plan and what this host has.
type HostPlan struct {
	*spec.Plan
	PTPClocks []string  `json:"ptp_clocks"`          // in words
	GPUs      *GPUPlan  `json:"gpus,omitempty"`      // where the configuration has memory for one
	GPUNetIO  []Feature `json:"gpunetio,omitempty"`  // where the configuration asks for it: what of it is here
	Obstacles []string  `json:"obstacles,omitempty"` // why this build can't open it, each with its place
}

// GPU is one of this host's.
type GPU = native.GPU

// GPUPlan is what the driver says of this host's GPUs.
type GPUPlan struct {
	Driver string `json:"driver,omitempty"` // the version of CUDA that it is for: "12.4"
	GPUs   []GPU  `json:"gpus"`
}

// GPUs asks the driver, which takes a fifth of a second where there is one; an error says what is missing.
func GPUs() (*GPUPlan, error) {
	version, gpus, err := native.GPUs()
	plan := &GPUPlan{GPUs: append([]GPU{}, gpus...)}
	if version > 0 {
		plan.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	}
	return plan, err
}

// Plan is what a configuration resolves to, with the strides that its buffers get (0 where an
// engine is not in this version). It opens no interface.
func Plan(cfg *spec.Config) *HostPlan {
	p := spec.Inspect(cfg)
	for k := range p.MemoryRegions {
		p.MemoryRegions[k].StrideBytes = stride(cfg, cfg.MemoryRegions[k])
	}
	plan := &HostPlan{Plan: p, PTPClocks: PTPClocks()}
	if usesGPU(cfg) {
		plan.GPUs, _ = GPUs() // an error is an obstacle
	}
	if usesGPUNetIO(cfg) {
		plan.GPUNetIO = GPUNetIO()
	}
	for _, issue := range Obstacles(cfg) {
		plan.Obstacles = append(plan.Obstacles, issue.Error())
	}
	return plan
}

func stride(cfg *spec.Config, r *spec.MemoryRegion) (most int) {
	for _, i := range cfg.Interfaces {
		n := native.Stride(r.BufSize, cfg.Queued(r.Name), i.EngineName())
		if n == 0 {
			return 0
		}
		most = max(most, n)
	}
	return most
}
