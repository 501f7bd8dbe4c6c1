package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rdmaAddresses are the IPv4 addresses of two RDMA devices, or one's twice: from what network interface each is is the
// system's to say.
func rdmaAddresses() (at, from string) {
	var found []string
	devices, _ := filepath.Glob("/sys/class/infiniband/*/ports/1/gid_attrs/ndevs/*")
	for _, file := range devices {
		name, err := os.ReadFile(file)
		if err != nil {
			continue // this place of the table is empty
		}
		i, err := net.InterfaceByName(strings.TrimSpace(string(name)))
		if err != nil {
			continue
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !slices.Contains(found, ip.IP.String()) {
				found = append(found, ip.IP.String())
			}
		}
	}
	slices.Sort(found)
	if len(found) == 0 {
		return "", ""
	}
	return found[0], found[len(found)-1]
}

// runRDMA makes rdma_send, rdma_write and rdma_read: 64 KiB each, against perftest's tool for it.
func runRDMA(what, tool string) func(ctx context.Context, b *bench, r *Result) error {
	return func(ctx context.Context, b *bench, r *Result) error {
		at, from := rdmaAddresses()
		if at == "" {
			return errUnavailable{"no RDMA device has an IPv4 address (`rdma link`)"}
		}
		ours := func(ctx context.Context, d time.Duration) (sample, error) {
			f, err := b.rdma(ctx, d, what, at, from)
			if err != nil {
				return sample{}, err
			}
			if what == "latency" {
				return sample{f["mean"], figures{"n": f["n"], "cpus": f["cpu_seconds"] / f["seconds"]}}, nil
			}
			return sample{f["bytes"] * 8 / f["seconds"] / 1e9, figures{"cpus": f["cpu_seconds"] / f["seconds"]}}, nil
		}
		peer := b.find(tool)
		if peer == "" {
			r.add(tool + " is not installed")
			return r.compare(ctx, ours, nil)
		}
		r.compareWith(tool + " of perftest, between the same devices")
		return r.compare(ctx, ours, func(ctx context.Context, d time.Duration) (sample, error) {
			return b.perftest(ctx, d, peer, what, at, from)
		})
	}
}

const rdmaBytes = "65536"

func (b *bench) rdma(ctx context.Context, d time.Duration, what, at, from string) (figures, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	size := rdmaBytes
	if what == "latency" {
		size = "64"
	}
	return b.last(ctx, d, b.ours("rdma.lua", "--what", what, "--at", at, "--from", from, "--port", port, "--size", size, "--seconds", text(d*10/11))...)
}

// resultLine is that of perftest: bytes, iterations and figures.
var resultLine = regexp.MustCompile(`(?m)^\s*\d+\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)(?:\s+([\d.]+))?`)

// perftest runs a tool of perftest against itself; Gbit/s, or of latency the µs one way, both on average.
func (b *bench) perftest(ctx context.Context, d time.Duration, tool, what, at, from string) (sample, error) {
	port, err := freePort()
	if err != nil {
		return sample{}, err
	}
	argv := []string{tool, "-R", "-p", port, "-F"}
	column := 2 // the best, and on average
	if what == "latency" {
		argv = append(argv, "-s", "64", "-n", strconv.Itoa(max(1000, int(d.Seconds()*5000))))
		column = 4 // the shortest, the longest, typical, and on average
	} else {
		argv = append(argv, "-s", rdmaBytes, "-D", strconv.Itoa(max(1, int(d.Seconds()+0.5))), "--report_gbits")
	}
	server, err := b.start(ctx, d, argv...)
	if err != nil {
		return sample{}, err
	}
	defer server.stop()
	var out string
	ctx, cancel := context.WithTimeout(ctx, d+slack)
	defer cancel()
	for try := 0; ; try++ { // it says when it waits to a pipe only at its end
		time.Sleep(200 * time.Millisecond)
		if out, err = b.output(ctx, append(slices.Clone(argv), "--source_ip", from, at)...); err == nil || try == 20 || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return sample{}, err
	}
	m := resultLine.FindStringSubmatch(out)
	if m == nil {
		return sample{}, fmt.Errorf("%s printed %q", filepath.Base(tool), out)
	}
	v, err := strconv.ParseFloat(m[column], 64)
	return sample{value: v}, err
}
