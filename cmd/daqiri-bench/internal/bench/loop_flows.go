package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// maxQueues is how many queues of a direction an interface has at most.
const maxQueues = 32

// runLoopFlows is loop_flows_*: some flows to as many queues, at most 16, beside one flow to one.
func runLoopFlows(flows int, args ...string) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		r.compareWith("the same with one flow and one queue")
		return r.compare(ctx, b.loopFlows(flows, args), b.loopFlows(1, args))
	}
}

func (b *bench) loopFlows(n int, args []string) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.ours("loop_flows.lua", append(slices.Clone(args), "--flows", fmt.Sprint(n), "--seconds", text(d*10/11))...)...)
		if err == nil && (f["dropped"] != 0 || f["empty"] != 0) {
			err = fmt.Errorf("loop_flows.lua: %.0f packets were dropped, %.0f flows got none", f["dropped"], f["empty"])
		}
		return perCPU(f), err
	}
}

// runLoopQueues is loop_queues: as many tasks with a queue each as there are cores, beside one task. The values are
// rates of the clock for one task, so that the ratio is how far they scale.
func runLoopQueues(ctx context.Context, b *bench, r *Result) error {
	tasks := min(runtime.NumCPU(), maxQueues)
	r.compareWith("the same with one task and one queue")
	r.add(fmt.Sprintf("%d tasks on as many cores; the value is the rate of one of them", tasks))
	return r.compare(ctx, b.loopQueues(tasks), b.loopQueues(1))
}

func (b *bench) loopQueues(tasks int) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.ours("loop_queues.lua", "--tasks", fmt.Sprint(tasks), "--seconds", text(d*10/11))...)
		if err == nil && f["dropped"] != 0 {
			err = fmt.Errorf("loop_queues.lua: %.0f packets were dropped", f["dropped"])
		}
		s := sample{f["packets"] / f["seconds"] / float64(tasks) / 1e6, perCPU(f).more}
		s.more["mpps_per_cpu_second"] = perCPU(f).value
		return s, err
	}
}

// runLoopChanges is loop_changes: a queue beside which others come and go, beside the same queue alone. The CPU time is that of the
// queue's thread, so that a host busy with other threads, those of the other queues among them, does not count.
func runLoopChanges(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("the same without other queues")
	return r.compare(ctx, b.loopChanges(100), b.loopChanges(0))
}

func (b *bench) loopChanges(queues int) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.ours("loop_changes.lua", "--queues", fmt.Sprint(queues), "--seconds", text(d*10/11))...)
		if err == nil && (f["dropped"] != 0 || (f["changed"] == 0) != (queues == 0)) {
			err = fmt.Errorf("loop_changes.lua: %.0f packets were dropped, %.0f of %d queues came and went", f["dropped"], f["changed"], queues)
		}
		s := perCPU(f)
		s.more["changed"] = f["changed"]
		return s, err
	}
}
