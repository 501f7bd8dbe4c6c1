package bench

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// runPairs is udp_pairs: pairs of a sender and a receiver of datagrams of 1024 bytes with a core each, in one process of
// ours, beside as many baseline loops with two threads each.
func runPairs(ctx context.Context, b *bench, r *Result) error {
	const size = 1024
	n := max(1, runtime.NumCPU()/2)
	r.compareWith("as many plain C loops of sendmmsg with UDP_SEGMENT and recvmmsg with UDP_GRO at once")
	r.add(fmt.Sprintf("%d pairs; the value is the sum", n))
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		ports := make([]string, n)
		for i := range ports {
			var err error
			if ports[i], err = freePort(); err != nil {
				return sample{}, err
			}
		}
		f, err := b.last(ctx, d, b.ours("udp_pairs.lua", "--ports", strings.Join(ports, ","), "--size", fmt.Sprint(size),
			"--seconds", text(d*10/11))...)
		return received(f, f["missing"]/max(1, f["sent"]), f["offered_pps"]), err
	}
	peer := func(ctx context.Context, d time.Duration) (sample, error) { return b.peerPairs(ctx, d, n, size) }
	return r.compare(ctx, ours, peer)
}

// peerPairs runs n baseline loops at once and adds up what they did.
func (b *bench) peerPairs(ctx context.Context, d time.Duration, n, size int) (sample, error) {
	var loops []*process
	sum := figures{}
	for range n {
		p, err := b.start(ctx, d, b.peer("udp", "--gro", "--size", fmt.Sprint(size), "--segments", fmt.Sprint(min(64, maxMessage/size)),
			"--for", d.String())...)
		if err != nil {
			return sample{}, err
		}
		defer p.stop()
		loops = append(loops, p)
	}
	for _, p := range loops {
		f, err := p.next()
		if err != nil {
			return sample{}, err
		}
		if err := p.finish(); err != nil {
			return sample{}, err
		}
		for _, name := range []string{"packets", "bytes", "missing", "cpu_seconds", "offered_pps"} {
			sum[name] += f[name]
		}
		sum["seconds"] += f["seconds"] / float64(n)
	}
	return received(sum, share(sum), sum["offered_pps"]), nil
}
