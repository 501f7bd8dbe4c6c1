package session

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// HostPlan is a plan and what this host has.
type HostPlan struct {
	*spec.Plan
	PTPClocks []string `json:"ptp_clocks"`          // in words
	GPUs      *GPUPlan `json:"gpus,omitempty"`      // where the configuration has memory for one
	Obstacles []string `json:"obstacles,omitempty"` // why this build can't open it, each with its place
}

// GPUPlan is what the driver says of this host's GPUs.
type GPUPlan struct {
	Driver string       `json:"driver,omitempty"` // the version of CUDA that it is for: "12.4"
	GPUs   []native.GPU `json:"gpus"`
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
		version, gpus, _ := native.GPUs() // an error is an obstacle
		plan.GPUs = &GPUPlan{GPUs: append([]native.GPU{}, gpus...)}
		if version > 0 {
			plan.GPUs.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
		}
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
