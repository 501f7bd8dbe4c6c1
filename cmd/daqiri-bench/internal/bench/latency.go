package bench

import (
	"context"
	"fmt"
	"time"
)

const latencyPPS = 2000 // of the sender: far enough apart that the receiver sleeps in between

// runLatency is latency: a plain sender on loopback, and the time from the kernel's stamp to the handler, or to a plain
// loop of recvmsg.
func runLatency(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("a plain C loop of recvmsg, behind the same sender")
	r.add(fmt.Sprintf("%d datagrams a second; value, p90, p99 and max are in µs, over_peer is the difference of the medians", latencyPPS))
	const listen = "127.0.0.1"
	count := func(d time.Duration) string { return fmt.Sprint(max(1, int(d.Seconds()*latencyPPS*0.9))) }
	ours := func(ctx context.Context, d time.Duration) (sample, error) {
		port, err := freePort()
		if err != nil {
			return sample{}, err
		}
		return b.latency(ctx, d, port, b.ours("latency.lua", "--listen", listen+":"+port, "--count", count(d)))
	}
	peer := func(ctx context.Context, d time.Duration) (sample, error) {
		return b.latency(ctx, d, "", b.peer("latency", "--host", listen, "--n", count(d)))
	}
	if err := r.compare(ctx, ours, peer); err != nil {
		return err
	}
	r.Figures["over_peer"] = *r.Value - *r.PeerValue
	return nil
}

// latency starts a receiver and sends to its port, or to the one that it prints.
func (b *bench) latency(ctx context.Context, d time.Duration, port string, argv []string) (sample, error) {
	p, err := b.start(ctx, d, argv...)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	ready, err := p.next()
	if err != nil {
		return sample{}, err
	}
	if port == "" {
		port = fmt.Sprint(ready["port"])
	}
	if _, err := b.last(ctx, d, b.peer("udp-send", "--port", port, "--size", "64", "--pps", fmt.Sprint(latencyPPS), "--for", d.String(),
		"--no-marks")...); err != nil {
		return sample{}, err
	}
	f, err := p.next()
	if err != nil {
		return sample{}, err
	}
	return sample{f["p50"], figures{"p90": f["p90"], "p99": f["p99"], "max": f["max"], "n": f["n"]}}, p.finish()
}
