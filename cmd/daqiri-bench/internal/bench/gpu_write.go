package bench

import (
	"context"
	"fmt"
	"time"
)

const (
	gpuWriteForm = "blocks"
	gpuWriteSize = 8192 // bytes of a packet in a block
)

// runGPUWrite is gpu_write: blocks that a GPU put in order go to the disk out of its memory; its peer is the same out of the
// host's. A first write from there finds out how many bytes take as long as the case may.
func runGPUWrite(ctx context.Context, b *bench, r *Result) error {
	if err := needGPU(); err != nil {
		return err
	}
	bytes := uint64(probeBytes)
	if err := b.room(bytes); err != nil {
		return err
	}
	probe, err := b.write(ctx, r.length, gpuWriteForm, gpuWriteSize, bytes, "host")
	if err != nil {
		return err
	}
	bytes = max(probeBytes, uint64(probe.value*1e9*r.length.Seconds()/(2*pairCount))/ddBlock*ddBlock)
	if err := b.room(bytes); err != nil {
		return err
	}
	r.compareWith("the same from the host's memory")
	r.add(fmt.Sprintf("%.2f GB a file, in %s; DAQIRI_CUFILE=off: not by cuFile", float64(bytes)/1e9, b.opts.TempDir))
	from := func(memory string) side {
		return func(ctx context.Context, d time.Duration) (sample, error) {
			return b.write(ctx, d, gpuWriteForm, gpuWriteSize, bytes, memory)
		}
	}
	return r.compare(ctx, from("gpu"), from("host"))
}
