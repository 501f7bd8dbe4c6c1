package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/baseline"
)

const pipelineSize = 8008 // bytes of a datagram

// pipelineRuns are those beside the rate itself: other sizes of blocks, and latency at rates that leave the GPU idle most of the
// time, at the first of which the receiver sleeps between datagrams. took is the figure, share its part of the time.
var pipelineRuns = []struct {
	name, took string
	share      int
	args       []string
}{
	{"gbit_64", "gbit", 6, []string{"--per", "64"}},
	{"gbit_1024", "gbit", 6, []string{"--per", "1024"}},
	{"20k_", "waits", 8, []string{"--pps", "20000", "--poll", "direct"}},
	{"100k_", "waits", 8, []string{"--pps", "100000", "--poll", "direct"}},
	{"woken_20k_", "waits", 16, []string{"--pps", "20000", "--timeout", "0"}},
	{"woken_100k_", "waits", 16, []string{"--pps", "100000", "--timeout", "0"}},
	{"bare_20k_", "waits", 16, []string{"--gpu=false", "--pps", "20000", "--poll", "direct"}},
	{"bare_100k_", "waits", 16, []string{"--gpu=false", "--pps", "100000", "--poll", "direct"}},
}

// Workloads are what gpu_pipeline can do with a block, beside adding up: what NVIDIA's libraries bring.
func Workloads() []string { return baseline.Workloads() }

// runGPUPipeline is gpu_pipeline: its peer is the same receive without a GPU.
func runGPUPipeline(ctx context.Context, b *bench, r *Result) error {
	if err := needGPU(); err != nil {
		return err
	}
	workload, needs := b.opts.Workload, baseline.Compiler
	if workload == "" {
		workload = "add"
	} else {
		needs = func() error { return baseline.Workload(workload) }
		r.add("workload " + workload)
	}
	if err := needs(); err != nil {
		return errUnavailable{err.Error()}
	}
	senders := max(1, min(3, runtime.NumCPU()/4)) // a thread each, beside the one that receives and those of handlers
	r.compareWith("the same receive, counted and nothing more")
	r.add(fmt.Sprintf("%d senders to one thread that receives, datagrams of %d bytes, blocks of 256, for gbit_64 and gbit_1024 of 64 and 1024; p50 and p99: µs from a block's last datagram to the handler, "+
		"of one sender of 20 or 100 thousand a second, received by the handler's task, or (woken) by a thread that wakes it; bare: to a handler of datagrams, "+
		"without blocks and GPU; list_p50 and kernel_p50: of it, from launches to their ends", senders, pipelineSize))
	run := func(ctx context.Context, d time.Duration, senders int, args ...string) (figures, error) {
		ports := make([]string, senders)
		for i := range ports {
			var err error
			if ports[i], err = freePort(); err != nil {
				return nil, err
			}
		}
		argv := b.ours("gpu_pipeline.lua", append(args, "--workload", workload, "--ports", strings.Join(ports, ","), "--seconds", text(d*10/11))...)
		return b.last(ctx, d, slices.Insert(argv, 2, "--cores", "auto")...)
	}
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := run(ctx, d*2/5, senders)
		if err != nil {
			return sample{}, err
		}
		s := received(f, f["missing"]/max(1, f["sent"]), f["offered_pps"])
		for _, t := range pipelineRuns {
			n := 1
			if t.took == "gbit" {
				n = senders
			}
			if f, err = run(ctx, d/time.Duration(t.share), n, t.args...); err != nil {
				return s, err
			}
			if t.took == "gbit" {
				s.more[t.name] = received(f, 0, 0).value
				continue
			}
			for _, name := range []string{"p50", "p99", "list_p50", "kernel_p50"} {
				if v, ok := f[name]; ok {
					s.more[t.name+name] = v
				}
			}
		}
		return s, nil
	}
	peer := func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := run(ctx, d, senders, "--gpu=false")
		return received(f, f["missing"]/max(1, f["sent"]), f["offered_pps"]), err
	}
	if err := r.compare(ctx, ours, peer); err != nil {
		return err
	}
	r.add("with the GPU " + boundBy(r.Figures["lost"]) + ", without it " + boundBy(r.Figures["peer_lost"]))
	return nil
}

// boundBy returns what limited a run that misses this share of what was sent: a receiver that is slower than its senders
// loses datagrams at its socket.
func boundBy(lost float64) string {
	if lost < 0.01 {
		return "the senders are the limit"
	}
	return fmt.Sprintf("the receiver is the limit, at whose sockets %.0f %% were dropped", 100*lost)
}
