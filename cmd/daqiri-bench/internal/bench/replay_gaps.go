package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	gapMean    = 500 * time.Microsecond // of the frames of the capture, whose gaps are from a tenth of it to 1.9 times as long
	leastGaps  = 100
	stragglers = 3 * time.Second // until tcpdump must have seen what was sent
)

// runReplayGaps is replay_gaps: a capture sent with the gaps that it has, which tcpdump captures at the other end of a veth
// pair. The value is how far a gap of the second capture is off that of the first.
func runReplayGaps(ctx context.Context, b *bench, r *Result) error {
	tcpdump, tcpreplay := b.find("tcpdump"), b.find("tcpreplay")
	if tcpdump == "" {
		return errUnavailable{"needs tcpdump, which captures what is sent"}
	}
	c, err := b.cable(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	resend := func(argv ...string) side {
		return func(ctx context.Context, d time.Duration) (sample, error) { return c.gaps(ctx, d, tcpdump, argv) }
	}
	file := filepath.Join(b.dir, "replay.pcap")
	ours := resend(b.ours("replay.lua", "--file", file, "--to", "veth0", "--once")...)
	if tcpreplay == "" {
		r.add("tcpreplay is not installed")
		return r.compare(ctx, ours, nil)
	}
	r.compareWith("tcpreplay, with the capture's own gaps, too")
	return r.compare(ctx, ours, resend(tcpreplay, "--quiet", "--intf1=veth0", file))
}

// gaps writes a capture that takes d, has a program send it, and compares the gaps.
func (c *cable) gaps(ctx context.Context, d time.Duration, tcpdump string, argv []string) (sample, error) {
	n := max(leastGaps, int(d/gapMean))
	random, at, times := rand.New(rand.NewPCG(1, 2)), int64(0), make([]int64, n)
	for k := range times {
		times[k] = at
		at += int64(gapMean/10) + random.Int64N(int64(gapMean*9/5))
	}
	if _, err := c.b.captureOf(n, func(k int) int64 { return times[k] }); err != nil {
		return sample{}, err
	}
	seen := filepath.Join(c.b.dir, "seen.pcap")
	_ = os.Remove(seen) // of the run before
	p, err := c.b.start(ctx, 2*d+stragglers, c.in(c.recv, []string{tcpdump, "-n", "-i", "veth0", "-Z", "root", "--time-stamp-precision=nano",
		"-w", seen, "-c", strconv.Itoa(n), "udp", "dst", "port", "4096"})...)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	if err := p.awaits(ctx, tcpdumpReady); err != nil {
		return sample{}, err
	}
	if _, err := c.b.output(ctx, c.in(c.send, argv)...); err != nil {
		return sample{}, err
	}
	late := time.AfterFunc(stragglers, func() { _ = p.cmd.Process.Signal(syscall.SIGINT) })
	defer late.Stop()
	if err := p.finish(); err != nil {
		return sample{}, err
	}
	return gapErrors(times, seen)
}

// gapErrors compares the gaps of a capture of numbered frames with those that were wanted, in µs.
func gapErrors(want []int64, path string) (sample, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return sample{}, err
	}
	le, n, last := binary.LittleEndian, 0, int64(0)
	var off []float64
	for data = data[min(pcapHeader, len(data)):]; len(data) >= replayRecord+replaySize; data = data[replayRecord+int(le.Uint32(data[8:])):] {
		at, number := int64(le.Uint32(data))*1e9+int64(le.Uint32(data[4:])), int(le.Uint32(data[replayRecord+replayNumber:]))
		if number != n {
			return sample{}, fmt.Errorf("frame %d came where %d was expected", number, n)
		}
		if n > 0 && n < len(want) {
			off = append(off, float64((at-last-want[n]+want[n-1]))/1e3)
		}
		n, last = n+1, at
	}
	if n != len(want) {
		return sample{}, fmt.Errorf("%d of %d frames arrived", n, len(want))
	}
	for k := range off {
		off[k] = max(off[k], -off[k])
	}
	slices.Sort(off)
	return sample{off[len(off)/2], figures{"p90": off[len(off)*9/10], "p99": off[len(off)*99/100], "max": off[len(off)-1]}}, nil
}
