package preflight

import (
	"fmt"

	"github.com/daqiri/daqiri-run/native"
	"github.com/daqiri/daqiri-run/runtime/spec"
)

// HostPlan is a plan and the relevant properties of this host.
type HostPlan struct {
	*spec.Plan
	PTPClocks []string  `json:"ptp_clocks"`          // descriptions
	GPUs      *GPUPlan  `json:"gpus,omitempty"`      // if the configuration has GPU memory
	GPUNetIO  []Feature `json:"gpunetio,omitempty"`  // supported features, if the configuration uses GPUNetIO
	Obstacles []string  `json:"obstacles,omitempty"` // reasons why this build cannot open it, with positions
}

// GPU is a GPU of this host.
type GPU = native.GPU

// GPUPlan is the driver's information on this host's GPUs.
type GPUPlan struct {
	Driver string `json:"driver,omitempty"` // supported CUDA version: "12.4"
	GPUs   []GPU  `json:"gpus"`
}

// GPUs queries the driver, which takes a fifth of a second if one is present. The error names what is missing.
func GPUs() (*GPUPlan, error) {
	version, gpus, err := native.GPUs()
	plan := &GPUPlan{GPUs: append([]GPU{}, gpus...)}
	if version > 0 {
		plan.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	}
	return plan, err
}

// Plan returns the resolved configuration with the strides of its buffers (0 if an engine is not in this version). It opens no interface.
func Plan(cfg *spec.Config) *HostPlan {
	p := spec.Inspect(cfg)
	for k := range p.MemoryRegions {
		p.MemoryRegions[k].StrideBytes = stride(cfg, cfg.MemoryRegions[k])
	}
	plan := &HostPlan{Plan: p, PTPClocks: PTPClocks()}
	if UsesGPU(cfg) {
		plan.GPUs, _ = GPUs() // an error is reported as an obstacle
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
