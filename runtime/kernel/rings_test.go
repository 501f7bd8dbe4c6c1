package kernel

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/daqiri/daqiri-run/native"
)

// warps uses the thread functions of gn.h and opens a context that consists of its header only.
const warps = `
#include "gn.h"
__global__ void warps(unsigned *context, int *out)
{
    gn_side s;
    int err = gn_open(&s, context);
    gn_tx none;
    unsigned lane = gn_lane(), mask = gn_ballot(lane % 3 == 0);
    out[threadIdx.x * 4] = err == GN_OK ? gn_tx_open(&none, &s, 0) : err;
    out[threadIdx.x * 4 + 1] = mask;
    out[threadIdx.x * 4 + 2] = gn_shuffle(threadIdx.x * 10, 7);
    gn_timer t = gn_timer_start(&s, 2000000);
    int tries = 0;
    if (err == GN_OK) while ((err = gn_go_on(&s, &t, 0, 0)) == GN_OK) tries++;
    out[threadIdx.x * 4 + 3] = err;
    gn_block_sync();
}
`

// ringsVersion returns the halves of GN_ABI from native/gpunetio/device/gn_ring.h.
func ringsVersion(t *testing.T) (low, high uint32) {
	t.Helper()
	header, err := os.ReadFile("../../native/gpunetio/device/gn_ring.h")
	if err != nil {
		t.Fatal(err)
	}
	is := regexp.MustCompile(`#define GN_ABI 0x([0-9a-f]{8})([0-9a-f]{8})ull`).FindSubmatch(header)
	if is == nil {
		t.Fatal("gn_ring.h has no GN_ABI")
	}
	for k, half := range []*uint32{&high, &low} {
		v, _ := strconv.ParseUint(string(is[k+1]), 16, 32)
		*half = uint32(v)
	}
	return low, high
}

// TestRings checks that a source can include gn.h, and that the host emulates its warps.
func TestRings(t *testing.T) {
	cacheHere(t)
	ringsLow, ringsHigh := ringsVersion(t)
	const invalid, timeout, differs = 7, 2, 8 // GN_INVALID, GN_TIMEOUT, GN_ABI_DIFFERS
	for _, c := range []struct {
		name             string
		low, high, where float64 // halves of the version; offset of the kernel's words
		open, wait       int64
	}{
		{"context", float64(ringsLow), float64(ringsHigh), 512, invalid, timeout},
		{"other version", float64(ringsLow), float64(ringsHigh + 1), 512, differs, differs},
		{"no context", 0, 0, 0, differs, differs},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := build(t, onHost(warps))
			header := make([]float64, 256)
			header[0], header[1], header[2] = c.low, c.high, c.where
			header[18] = 640 // offset of the proxy's words, which are 0
			context := array(t, "host", "uint32", native.HostGPU, header...)
			out := array(t, "host", "int32", native.HostGPU, make([]float64, 64*4)...)
			launch(t, k, 1, 64, context, out)
			for thread := range 64 {
				for i, want := range []int64{c.open, 0x49249249, int64(thread/32*320 + 70), c.wait} {
					if got, _ := out.Get(thread*4 + i); got != want {
						t.Fatalf("thread %d: word %d is %v, want %v", thread, i, got, want)
					}
				}
			}
			low, _ := context.Get(128)
			high, _ := context.Get(129)
			if got, want := fmt.Sprint(low, high), fmt.Sprint(ringsLow, ringsHigh); c.where > 0 && got != want {
				t.Errorf("the kernel's version in the context is %s, want %s", got, want)
			}
		})
	}
}
