package bench

import (
	"math"
	"testing"
)

// TestBoundBy: a receiver that loses what it is sent is the only limit.
func TestBoundBy(t *testing.T) {
	if got, want := boundBy(0.115), "the receiver is the limit, at whose sockets 12 % were dropped"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := boundBy(0.001), "the senders are the limit"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestGPUShares: a copy reads and writes a byte for each that it counts, and so what a conversion may reach is known.
func TestGPUShares(t *testing.T) {
	f := figures{"copy": 3e12, "int16_fp32": 1.8e12, "int8_fp32": 1e12, "int4_fp16": 6e11}
	ours, ceiling := gpuConvert.read(f)
	if ours.value != 1800 || math.Abs(ceiling.value-2000) > 1e-9 {
		t.Errorf("%v of %v, want 1800 of 2000", ours.value, ceiling.value)
	}
	for name, want := range map[string]float64{"share_int16_fp32": 0.9, "share_int8_fp32": 1e12 / 1.2e12, "share_int4_fp16": 0.5, "gb_int4_fp16": 600} {
		if math.Abs(ours.more[name]-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, ours.more[name], want)
		}
	}
	ours, ceiling = gpuGather.read(figures{"copy": 50e9, "stage_8192": 45e9, "1024": 40e9, "plan_ns_1024": 30})
	if ours.value != 45 || ceiling.value != 50 || ours.more["share_1024"] != 0.8 || ours.more["plan_ns_1024"] != 30 {
		t.Errorf("%+v of %v", ours, ceiling.value)
	}
}
