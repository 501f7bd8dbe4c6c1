package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/daqiri/daqiri-run/runtime/bare"
)

const (
	pipelineSize = 8008 // bytes of a datagram
	pipelinePPS  = 20e3 // at which latency is measured
)

// Workloads are what gpu_pipeline can do with a block, beside adding up: what NVIDIA's libraries bring.
func Workloads() []string { return bare.Workloads() }

// runGPUPipeline is gpu_pipeline: its peer is the same receive without a GPU. A third of the time measures latency, at a
// rate that leaves the GPU idle most of the time.
func runGPUPipeline(ctx context.Context, b *bench, r *Result) error {
	if err := needGPU(); err != nil {
		return err
	}
	workload, needs := b.opts.Workload, bare.Compiler
	if workload == "" {
		workload = "add"
	} else {
		needs = func() error { return bare.Workload(workload) }
		r.add("workload " + workload)
	}
	if err := needs(); err != nil {
		return errUnavailable{err.Error()}
	}
	r.compareWith("the same receive, counted and nothing more")
	r.add(fmt.Sprintf("datagrams of %d bytes, blocks of 64; p50 and p99: µs from a block's last datagram to the handler, at %.0f datagrams a second",
		pipelineSize, float64(pipelinePPS)))
	run := func(ctx context.Context, d time.Duration, args ...string) (figures, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		return b.last(ctx, d, b.ours("gpu_pipeline.lua", append(args, "--workload", workload, "--port", port, "--seconds", text(d*10/11))...)...)
	}
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := run(ctx, d*2/3)
		if err != nil {
			return sample{}, err
		}
		paced, err := run(ctx, d/3, "--pps", fmt.Sprint(int(pipelinePPS)))
		s := received(f, f["missing"]/max(1, f["sent"]), f["offered_pps"])
		s.more["p50"], s.more["p99"] = paced["p50"], paced["p99"]
		return s, err
	}
	peer := func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := run(ctx, d, "--gpu=false")
		return received(f, f["missing"]/max(1, f["sent"]), f["offered_pps"]), err
	}
	return r.compare(ctx, ours, peer)
}
