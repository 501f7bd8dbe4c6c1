package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// flowTables are measured one after the other; the first is the case's value.
var flowTables = []struct {
	rules int
	name  string
}{{100, ""}, {1, "ns_1"}, {64, "ns_64"}, {10000, "ns_10000"}}

// runFlows is flows: the flow table alone, and a script that adds flows to an interface.
func runFlows(ctx context.Context, b *bench, r *Result) error {
	r.add("no peer: 1024 flows of UDP meet rules on addresses and ports, prefixes, ports and ranges of ports; adds: flows that a script adds in a " +
		"second to a table of 1 to 10,000, one by one and in groups of 100, and deletes; xdp_changes: one is added and deleted on a Linux " +
		"interface, where the kernel's program has 1, 100 and 10,000")
	c, err := b.cable(ctx)
	if err == nil {
		defer c.close()
	} else if !errors.As(err, new(errUnavailable)) {
		return err
	} else {
		r.add("no changes of flows on a Linux interface: " + err.Error())
	}
	return r.compare(ctx, func(ctx context.Context, d time.Duration) (sample, error) {
		s := sample{more: figures{}}
		for _, t := range flowTables {
			f, err := b.last(ctx, d, b.peer("flows", "--n", fmt.Sprint(t.rules), "--for", (d/8).String())...)
			if err != nil {
				return s, err
			}
			if t.name == "" {
				s.value = f["ns"]
				continue
			}
			s.more[t.name] = f["ns"]
		}
		f, err := b.last(ctx, d, b.ours("flows.lua", "--seconds", text(d/2))...)
		for name, v := range f {
			s.more[name] = v
		}
		if err != nil || c == nil {
			return s, err
		}
		f, err = b.last(ctx, d, c.in(c.send, b.ours("flows.lua", "--device", "veth0", "--seconds", text(d/2)))...)
		for name, v := range f {
			s.more[name] = v
		}
		return s, err
	}, nil)
}
