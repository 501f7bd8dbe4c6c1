package bench

import (
	"context"
	"fmt"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/baseline"
)

// gpuCase is a case of a GPU's kernels. Its loop has packets whose payloads begin at byte 42, and measures the GPU's own
// copy in the same process, moments before: launches are joined in a graph and timed by the GPU's clock, memory goes
// round so that no cache holds it, and what came out is compared with the host's way.
type gpuCase struct {
	loop, peer string
	names      []string // of the loop's rates, bytes a second; the first is the case's value
	also       []string // figures of the loop as they are
	// ceiling is what the copy's rate allows; nil: that itself.
	ceiling func(name string, copied float64) float64
}

var (
	gpuReorder = gpuCase{loop: "gpu-reorder", peer: "the GPU's copy within its memory",
		names: []string{"8192x16384", "4096x16384", "1024x16384", "8192x1024", "4096x1024", "1024x1024"}}
	gpuConvert = gpuCase{loop: "gpu-convert", peer: "what the GPU's copy within its memory allows: as many bytes read and written",
		names: []string{"int16_fp32", "int8_fp32", "int4_fp16"}, ceiling: trafficBound}
	gpuConvert12 = gpuCase{loop: gpuConvert.loop, peer: gpuConvert.peer, names: []string{"i12_fp32", "u12.lsb_int16", "o4_fp16"}, ceiling: trafficBound}
	gpuGather    = gpuCase{loop: "gpu-gather", peer: "the GPU's copy from pinned memory of the host",
		names: []string{"stage_8192", "stage_4096", "stage_1024", "8192", "4096", "1024"},
		also:  []string{"plan_ns_8192", "plan_ns_4096", "plan_ns_1024"}}
)

// trafficBound is the bytes of input of a conversion, where a copy reads and writes as many as it does.
func trafficBound(name string, copied float64) float64 {
	wider := map[string]float64{"int16_fp32": 2, "int8_fp32": 4, "int4_fp16": 4, "i12_fp32": 32. / 12, "u12.lsb_int16": 16. / 12, "o4_fp16": 4}
	return 2 * copied / (1 + wider[name])
}

// needGPU is the end of a case where there is none.
func needGPU() error {
	if _, err := baseline.GPU(); err != nil {
		return errUnavailable{fmt.Sprintf("needs a GPU: %v", err)}
	}
	return nil
}

// run is gpu_*: its shares are of the ceiling.
func (c gpuCase) run(ctx context.Context, b *bench, r *Result) error {
	if err := needGPU(); err != nil {
		return err
	}
	r.compareWith(c.peer + ", in the same run")
	var ours, ceilings []sample
	for range pairCount {
		d := r.length / pairCount
		f, err := b.last(ctx, d, b.peer(c.loop, "--for", d.String())...)
		if err != nil {
			return err
		}
		mine, ceiling := c.read(f)
		ours, ceilings = append(ours, mine), append(ceilings, ceiling)
	}
	r.take(ours, ceilings)
	return nil
}

// read makes samples of what the loop printed.
func (c gpuCase) read(f figures) (ours, ceiling sample) {
	of := func(name string) float64 {
		if c.ceiling == nil {
			return f["copy"]
		}
		return c.ceiling(name, f["copy"])
	}
	ours = sample{f[c.names[0]] / 1e9, figures{}}
	for _, name := range c.names {
		ours.more["gb_"+name], ours.more["share_"+name] = f[name]/1e9, f[name]/of(name)
	}
	for _, name := range c.also {
		ours.more[name] = f[name]
	}
	return ours, sample{value: of(c.names[0]) / 1e9}
}
