package bench

import (
	"context"
	"fmt"
	"time"
)

// The cases that need nothing but memory. Their CPU seconds are the process's own count of both its modes and all its
// threads (getrusage) over the measured interval, so that the start is not in them.

// runLoop is loop_1024, and loop_copy with copies.
func runLoop(copies bool) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		r.compareWith("a plain C loop that fills, matches and frees buffers of the same layout on one thread")
		args, peerArgs := []string{}, []string{"--size", "64"}
		if copies {
			args, peerArgs = []string{"--copy"}, append(peerArgs, "--copy")
		}
		ours := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.last(ctx, d, b.ours("loop.lua", append(args, "--seconds", text(d*10/11))...)...)
			if err == nil && f["dropped"] != 0 {
				err = fmt.Errorf("loop.lua: %.0f packets were dropped", f["dropped"])
			}
			return perCPU(f), err
		}
		peer := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.last(ctx, d, b.peer("memory", append(peerArgs, "--for", d.String())...)...)
			return perCPU(f), err
		}
		return r.compare(ctx, ours, peer)
	}
}

// perCPU is packets per CPU second, in millions; mpps is by the clock.
func perCPU(f figures) sample {
	return sample{f["packets"] / f["cpu_seconds"] / 1e6, figures{"cpus": f["cpu_seconds"] / f["seconds"], "mpps": f["packets"] / f["seconds"] / 1e6}}
}

// runModify is script_modify.
func runModify(ctx context.Context, b *bench, r *Result) error {
	r.add("no peer: the packets go round, every third is TCP, and every pass changes every packet")
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.ours("modify.lua", "--seconds", text(d*10/11))...)
		if err == nil && (f["lost"] != 0 || f["counted"] == 0) {
			err = fmt.Errorf("modify.lua: %.0f bursts were lost, %.0f packets counted", f["lost"], f["counted"])
		}
		s := perCPU(f)
		s.more["counted_share"] = f["counted"] / f["packets"]
		return s, err
	}, nil)
}

// runRewrite is rewrite: beside the loop that loop_1024 has as its peer, which changes nothing.
func runRewrite(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("a plain C loop that fills, matches and frees buffers of the same layout on one thread")
	r.add("stage_ns: what the stage takes of a packet, less a count stage in its place")
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		args := []string{"--seconds", text(d * 5 / 11)}
		f, err := b.last(ctx, d, b.ours("rewrite.lua", args...)...)
		if err == nil && (f["dropped"] != 0 || f["rewritten"] != f["packets"]) {
			err = fmt.Errorf("rewrite.lua: %.0f of %.0f packets were rewritten", f["rewritten"], f["packets"])
		}
		if err != nil {
			return sample{}, err
		}
		without, err := b.last(ctx, d, b.ours("rewrite.lua", append(args, "--stage=false")...)...)
		s := perCPU(f)
		s.more["stage_ns"] = 1e3/s.value - 1e3/perCPU(without).value
		return s, err
	}
	return r.compare(ctx, ours, func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.peer("memory", "--size", "64", "--for", d.String())...)
		return perCPU(f), err
	})
}

// runGaps is gaps: beside the same pipe with a count stage in its place.
func runGaps(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("the same pipe with s:count instead of s:gaps")
	r.add("stage_ns: what the stage takes of a packet, less a count stage in its place")
	measure := func(ctx context.Context, d time.Duration, args ...string) (sample, error) {
		f, err := b.last(ctx, d, b.ours("gaps.lua", append(args, "--seconds", text(d*5/11))...)...)
		if err == nil && (f["dropped"] != 0 || len(args) == 0 && f["unique"] != f["packets"]) {
			err = fmt.Errorf("gaps.lua: %.0f of %.0f packets had a new number", f["unique"], f["packets"])
		}
		return perCPU(f), err
	}
	without := func(ctx context.Context, d time.Duration) (sample, error) { return measure(ctx, d, "--stage=false") }
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		s, err := measure(ctx, d)
		if err != nil {
			return s, err
		}
		plain, err := without(ctx, d)
		s.more["stage_ns"] = 1e3/s.value - 1e3/plain.value
		return s, err
	}, without)
}

// runColumns is column and place: the CPU time of a burst of which columns are made, less that without.
func runColumns(what string) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		r.add("no peer: the CPU time of a burst of which a handler makes 16 columns, less that without, for each")
		return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
			args := []string{"--what", what, "--seconds", text(d * 5 / 11)}
			with, err := b.last(ctx, d, b.ours("columns.lua", args...)...)
			if err == nil && (with["wrong"] != 0 || with["bursts"] == 0) {
				err = fmt.Errorf("columns.lua: %.0f of %.0f bursts had other numbers", with["wrong"], with["bursts"])
			}
			if err != nil {
				return sample{}, err
			}
			without, err := b.last(ctx, d, b.ours("columns.lua", append(args, "--columns", "0")...)...)
			burst := func(f figures) float64 { return f["cpu_seconds"] / f["bursts"] * 1e6 }
			return sample{(burst(with) - burst(without)) / with["columns"], nil}, err
		}, nil)
	}
}

// runHandler is script_handler: the CPU time of a burst with an on_burst handler less that with a native count stage.
func runHandler(ctx context.Context, b *bench, r *Result) error {
	r.add("no peer: the CPU time of a burst with a handler, less that with a native count stage in its place")
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		args := []string{"--batch", "32", "--seconds", text(d * 5 / 11)}
		with, err := b.last(ctx, d, b.ours("loop.lua", args...)...)
		if err != nil {
			return sample{}, err
		}
		without, err := b.last(ctx, d, b.ours("loop.lua", append(args, "--handler=false")...)...)
		if err != nil {
			return sample{}, err
		}
		burst := func(f figures) float64 { return f["cpu_seconds"] / f["bursts"] * 1e6 }
		return sample{burst(with) - burst(without), figures{"allocations": with["allocations"] / with["bursts"],
			"us_with_handler": burst(with), "us_with_count": burst(without)}}, nil
	}, nil)
}

// runStart is start: the time of a whole process.
func runStart(ctx context.Context, b *bench, r *Result) error {
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		var times []float64
		for end := time.Now().Add(d); len(times) == 0 || time.Now().Before(end); {
			began := time.Now()
			if _, err := b.last(ctx, d, b.ours("start.lua")...); err != nil {
				return sample{}, err
			}
			times = append(times, time.Since(began).Seconds()*1e3)
		}
		return sample{median(times), figures{"runs": float64(len(times))}}, nil
	}, nil)
}
