package bench

import (
	"context"
	"fmt"
	"time"
)

const maxMessage = 65507 // bytes of a message of segments, and its largest number of segments is 64

// runUDP is udp_*: ours sends and receives in one process, and so does the baseline loop, with a thread each.
func runUDP(size int) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		r.compareWith("a plain C loop of sendmmsg with UDP_SEGMENT and recvmmsg with UDP_GRO")
		ours := func(ctx context.Context, d time.Duration) (sample, error) {
			port, err := freePort()
			if err != nil {
				return sample{}, err
			}
			f, err := b.last(ctx, d, b.ours("udp.lua", "--port", port, "--size", fmt.Sprint(size), "--seconds", text(d*10/11))...)
			return received(f, f["missing"]/max(1, f["sent"]), f["offered_pps"]), err
		}
		args := []string{"--gro", "--size", fmt.Sprint(size)}
		if n := min(64, maxMessage/size); n > 1 {
			args = append(args, "--segments", fmt.Sprint(n))
		}
		peer := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.last(ctx, d, b.peer("udp", append(args, "--for", d.String())...)...)
			return received(f, share(f), f["offered_pps"]), err
		}
		return r.compare(ctx, withSoftirq(ours), withSoftirq(peer))
	}
}

// runPlain is udp_plain_*: a plain sender without UDP_SEGMENT, in a namespace of its own, sends to ours and to a plain
// loop of recvmmsg.
func runPlain(size int) func(context.Context, *bench, *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		c, err := b.cable(ctx)
		if err != nil {
			return err
		}
		defer c.close()
		r.compareWith("a plain C loop of recvmmsg, behind the same sender")
		r.add("the sender is the limit where nothing is lost: then cpu_ns, the receiver's time for a packet, is what differs")
		ours := func(ctx context.Context, d time.Duration) (sample, error) { return c.plainOurs(ctx, d, size) }
		peer := func(ctx context.Context, d time.Duration) (sample, error) { return c.plainBare(ctx, d, size) }
		return r.compare(ctx, withSoftirq(ours), withSoftirq(peer))
	}
}

// plainOurs counts what is missing from what the sender reports as sent.
func (c *cable) plainOurs(ctx context.Context, d time.Duration, size int) (sample, error) {
	const port = "7152" // the namespace is ours alone
	p, err := c.b.start(ctx, d, c.in(c.recv, c.b.ours("udp_receive.lua", "--listen", "0.0.0.0:"+port, "--size", fmt.Sprint(size),
		"--seconds", text(d*8/11)))...)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	if _, err := p.next(); err != nil {
		return sample{}, err
	}
	sent, err := c.sendTo(ctx, d, port, size, 0, false)
	if err != nil {
		return sample{}, err
	}
	f, err := p.next()
	if err != nil {
		return sample{}, err
	}
	return received(f, (sent["packets"]-f["received"])/sent["packets"], sent["packets"]/sent["seconds"]), p.finish()
}

func (c *cable) plainBare(ctx context.Context, d time.Duration, size int) (sample, error) {
	p, err := c.b.start(ctx, d, c.in(c.recv, c.b.peer("udp-recv", "--host", recvAddr, "--size", fmt.Sprint(size)))...)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	ready, err := p.next()
	if err != nil {
		return sample{}, err
	}
	sent, err := c.sendTo(ctx, d, fmt.Sprint(ready["port"]), size, 0, true)
	if err != nil {
		return sample{}, err
	}
	f, err := p.next()
	if err != nil {
		return sample{}, err
	}
	return received(f, share(f), sent["packets"]/sent["seconds"]), p.finish()
}

// received is the rate of a receiver, its CPU time for a packet, what the sender offered, and the share of it that is missing.
func received(f figures, lost, offered float64) sample {
	return sample{f["bytes"] * 8 / f["seconds"] / 1e9, figures{"cpu_ns": f["cpu_seconds"] / f["packets"] * 1e9, "lost": lost,
		"mpps": f["packets"] / f["seconds"] / 1e6, "offered_mpps": offered / 1e6}}
}

// share is the part of the datagrams that a plain receiver misses.
func share(f figures) float64 { return f["missing"] / max(1, f["missing"]+f["packets"]) }
