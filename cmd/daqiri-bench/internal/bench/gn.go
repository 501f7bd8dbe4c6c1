package bench

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"time"

	"github.com/daqiri/daqiri-run/cmd/daqiri-bench/internal/baseline"
)

const (
	gnRings   = 4    // of the runs with several, with two proxies
	gnPayload = 8192 // bytes of a message, where payload is what counts
)

// gnSide returns where kernels of rings run, "gpu" or "host", and adds a note on it to the result.
func (b *bench) gnSide(r *Result) (string, error) {
	name, err := baseline.GPU()
	if err == nil {
		err = baseline.Compiler()
	}
	if err == nil {
		r.add("kernels run on " + name)
		return "gpu", nil
	}
	for _, compiler := range []string{"c++", "g++", "clang++", "cc", "gcc", "clang"} {
		if b.find(compiler) != "" {
			r.add("no GPU with NVRTC: kernels run on the host, in threads of the CPU, which the figures are of")
			return "host", nil
		}
	}
	return "", errUnavailable{errors.Join(err, exec.ErrNotFound).Error()}
}

// rings runs kernels against the proxy alone.
func (b *bench) rings(ctx context.Context, d time.Duration, where string, args ...string) (figures, error) {
	return b.last(ctx, d, b.ours("gn_rings.lua", append(args, "--memory", where, "--seconds", text(d*10/11))...)...)
}

// engine runs the loop engine, driven by a kernel or by the CPU.
func (b *bench) engine(ctx context.Context, d time.Duration, where string, args ...string) (figures, error) {
	return b.last(ctx, d, b.ours("gn_engine.lua", append(args, "--memory", where, "--seconds", text(d*10/11))...)...)
}

// runGNEcho is gn_echo.
func runGNEcho(ctx context.Context, b *bench, r *Result) error {
	where, err := b.gnSide(r)
	if err != nil {
		return err
	}
	r.add("no peer; of the highest figures, 262144 stands for that and more")
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.rings(ctx, d, where, "--what", "echo")
		return sample{f["p50"], figures{"p999": f["p999"], "n": f["n"]}}, err
	}, nil)
}

// runGNRate is gn_rate.
func runGNRate(ctx context.Context, b *bench, r *Result) error {
	where, err := b.gnSide(r)
	if err != nil {
		return err
	}
	r.add("no peer; rings_4: through four rings and two proxies; gb_out: GB/s that a kernel writes into the host's memory, gb_in: that it reads there of packets that four queues receive, " +
		"8192 bytes a descriptor")
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		s := sample{0, figures{}}
		rate := func(f figures) float64 { return f["descriptors"] / f["seconds"] / 1e6 }
		one, err := b.rings(ctx, d/4, where, "--what", "post")
		if err != nil {
			return s, err
		}
		s.value = rate(one)
		several, err := b.rings(ctx, d/4, where, "--what", "post", "--rings", strconv.Itoa(gnRings), "--proxies", "2")
		if err != nil {
			return s, err
		}
		out, err := b.rings(ctx, d/4, where, "--what", "post", "--bytes", strconv.Itoa(gnPayload), "--rings", strconv.Itoa(gnRings), "--warps", "16")
		if err != nil {
			return s, err
		}
		in, err := b.engine(ctx, d/4, where, "--what", "receive", "--read", "--size", strconv.Itoa(gnPayload), "--queues", strconv.Itoa(gnRings), "--batch", "4")
		s.more = figures{"rings_4": rate(several), "gb_out": out["bytes"] / out["seconds"] / 1e9, "gb_in": in["bytes"] / in["seconds"] / 1e9}
		return s, err
	}, nil)
}

// runGNEngine is gn_send and gn_receive: their peer is the same engine without a kernel.
func runGNEngine(what string) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		where, err := b.gnSide(r)
		if err != nil {
			return err
		}
		r.compareWith("the same engine without a kernel: a template sends, a stage counts")
		if what == "send" {
			r.add("least_share: what the ring that sent least of four of one queue has of its share")
		}
		mpps := func(f figures) sample { return sample{f["packets"] / f["seconds"] / 1e6, figures{}} }
		ours := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.engine(ctx, d/2, where, "--what", what)
			if err != nil || what != "send" {
				return mpps(f), err
			}
			s := mpps(f)
			several, err := b.engine(ctx, d/2, where, "--what", what, "--rings", strconv.Itoa(gnRings))
			s.more["least_share"], s.more["rings_4"] = several["least_share"], mpps(several).value
			return s, err
		}
		peer := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.engine(ctx, d, where, "--what", what, "--by", "cpu")
			return mpps(f), err
		}
		return r.compare(ctx, ours, peer)
	}
}
