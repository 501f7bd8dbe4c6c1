package bench

import (
	"context"
	"strconv"
	"time"
)

// runReorder is reorder_*: packets of so many bytes into blocks, against memcpy of the same bytes.
func runReorder(size int) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		r.compareWith("memcpy of the same bytes to the same places")
		args := []string{"--size", strconv.Itoa(size)}
		return r.compare(ctx, b.rate("reorder", args...), b.rate("reorder", append(args, "--copy")...))
	}
}

// runHeaps is heaps_*: the same by a heaps stage.
func runHeaps(size int) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		r.compareWith("memcpy of the same bytes to the same places")
		args := []string{"--size", strconv.Itoa(size)}
		return r.compare(ctx, b.rate("reorder", append(args, "--heaps")...), b.rate("reorder", append(args, "--copy")...))
	}
}

// conversions are measured one after the other; the first is the case's value.
var conversions = []struct {
	name, from, to string
	network        bool
}{
	{"", "int16", "fp32", true}, {"int8_fp32", "int8", "fp32", false}, {"int4_fp32", "int4", "fp32", false},
	{"int16_fp16", "int16", "fp16", true}, {"int32_fp32", "int32", "fp32", true},
}

// runConvert is convert: its peer has as many bytes to read and to write, and nothing to compute.
func runConvert(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("a loop that only widens, int16 to int32: as many bytes in and out")
	r.add("bytes in and out; peer_copy: memcpy")
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		s := sample{more: figures{}}
		for _, c := range conversions {
			args := []string{"--from", c.from, "--to", c.to}
			if c.network {
				args = append(args, "--network")
			}
			got, err := b.rate("convert", args...)(ctx, d/time.Duration(len(conversions)))
			if err != nil {
				return s, err
			}
			if c.name == "" {
				s.value = got.value
			} else {
				s.more[c.name] = got.value
			}
		}
		return s, nil
	}
	peer := func(ctx context.Context, d time.Duration) (sample, error) {
		s, err := b.rate("convert", "--from", "int16", "--to", "int32")(ctx, d/2)
		if err != nil {
			return s, err
		}
		copied, err := b.rate("convert")(ctx, d/2)
		s.more = figures{"copy": copied.value}
		return s, err
	}
	return r.compare(ctx, ours, peer)
}

// runConvert12 is convert_12: packed 12-bit elements against int16 of the network's order, in bytes of fp32.
func runConvert12(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("int16 of the network's order to fp32, bytes out")
	r.add("bytes out")
	// outputs measures the bytes out of a CPU second, of an input of which an element has so many bits.
	outputs := func(from string, bits float64) side {
		measured := b.rate("convert", "--from", from, "--to", "fp32", "--network")
		return func(ctx context.Context, d time.Duration) (sample, error) {
			s, err := measured(ctx, d)
			s.value *= 32 / (32 + bits)
			return s, err
		}
	}
	return r.compare(ctx, outputs("i12", 12), outputs("int16", 16))
}

// rate measures a baseline loop in GB a CPU second.
func (b *bench) rate(loop string, args ...string) side {
	return func(ctx context.Context, d time.Duration) (sample, error) {
		f, err := b.last(ctx, d, b.peer(loop, append([]string{"--for", d.String()}, args...)...)...)
		return sample{value: f["bytes_per_second"] / 1e9}, err
	}
}
