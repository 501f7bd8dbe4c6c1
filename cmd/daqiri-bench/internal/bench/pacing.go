package bench

import (
	"context"
	"fmt"
	"time"
)

// pacingRates are measured one after the other; the first is the case's value.
var pacingRates = []struct {
	pps  float64
	name string
}{{1e6, ""}, {1e5, "_100k"}, {1e4, "_10k"}}

// runPacing is pacing: the engine's pacer on the loop engine, and a baseline loop that spins until each time has come. Both
// have the same receiver, which spins on a thread of its own and reads the clock when it sees a packet.
func runPacing(ctx context.Context, b *bench, r *Result) error {
	r.compareWith("a plain C loop that spins until each packet's time")
	r.add("p50, p99, p999, max: |gap - wanted| in ns at the receiver, whose thread shares the host with the sender's; rate_error: a part of the " +
		"rate; cpus: with the receiver's, which never sleeps")
	pace := func(engine bool) side {
		return func(ctx context.Context, d time.Duration) (sample, error) {
			s := sample{more: figures{}}
			for _, rate := range pacingRates {
				f, err := b.last(ctx, d, b.peer("pace", "--pps", fmt.Sprint(rate.pps), "--for", (d/3).String(), fmt.Sprintf("--engine=%v", engine))...)
				if err != nil {
					return s, err
				}
				for _, name := range []string{"p50", "p99", "p999", "max", "rate_error"} {
					s.more[name+rate.name] = f[name]
				}
				s.more["cpus"+rate.name] = f["cpu_seconds"] / f["seconds"]
			}
			s.value = s.more["p99"]
			return s, nil
		}
	}
	return r.compare(ctx, pace(true), pace(false))
}
